//! Requests about runs, except those that log data.

use crate::checks::at_most;
use crate::key_value::KeyValue;
use crate::limits;
use crate::messages;
use crate::tracking::{RunStatus, ViewType};

messages! {
    /// The request message of `runs/create`.
    CreateRun {
        experiment_id: String [Text],
        start_time: i64 [Integer],
        run_name: String [Text],
        user_id: String,
        tags: Vec<KeyValue>,
    }
    /// The request message of `runs/get`.
    GetRun {
        run_id: String [Required, Text],
        run_uuid: String,
    }
    /// The request message of `runs/delete` and `runs/restore`.
    RunById {
        run_id: String [Required, Text],
    }
    /// The request message of `runs/search`.
    SearchRuns {
        experiment_ids: Vec<String> [List],
        filter: String [Text],
        max_results: Option<i32> [Integer, Custom(|value| at_most(value, limits::SEARCH_RESULTS))],
        order_by: Vec<String> [List, TextItems],
        run_view_type: Option<ViewType>,
        page_token: String,
    }
    /// The request message of `runs/update`.
    UpdateRun {
        run_id: String [Required, Text],
        end_time: Option<i64> [Integer],
        status: Option<RunStatus> [Text],
        run_name: Option<String> [Text],
        run_uuid: String,
    }
}

/// Returns the id of the run in a message: `run_id`, or `run_uuid`, its old name, if `run_id` is
/// empty.
#[must_use]
pub fn new_or_old<'a>(run_id: &'a str, run_uuid: &'a str) -> &'a str {
    if run_id.is_empty() { run_uuid } else { run_id }
}
