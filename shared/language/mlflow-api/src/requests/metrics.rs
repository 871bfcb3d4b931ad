//! Requests for the histories of metrics.

use serde_json::Value;

use crate::checks::as_integer;
use crate::messages;

/// Maximum number of runs in a bulk request.
pub const MAX_BULK_RUNS: usize = 100;
/// Maximum number of points per run in the response of `get-history-bulk-interval`.
pub const MAX_SAMPLE_POINTS: i64 = 2_500;

messages! {
    /// The request message of `metrics/get-history`.
    GetHistory {
        run_id: String [Text, Required],
        metric_key: String [Text, Required],
        page_token: String [Text],
        max_results: Option<i32>,
        run_uuid: String,
    } arguments [run_id, run_uuid, metric_key, page_token, max_results]
    /// The request message of `metrics/get-history-bulk-interval`.
    GetHistoryBulkInterval {
        run_ids: Vec<String> [Required, List, TextItems, Custom(at_most_bulk_runs)],
        metric_key: String [Required, Text],
        start_step: Option<i32> [Integer],
        end_step: Option<i32> [Integer],
        max_results: Option<i32> [Integer, Custom(within_sample_points)],
    }
}

fn at_most_bulk_runs(value: &Value) -> Result<(), Option<String>> {
    match value.as_array().map(Vec::len) {
        Some(runs) if runs > MAX_BULK_RUNS => Err(Some(format!(
            "GetMetricHistoryBulkInterval request must specify at most {MAX_BULK_RUNS} run_ids. Received {runs} run_ids."
        ))),
        _ => Ok(()),
    }
}

fn within_sample_points(value: &Value) -> Result<(), Option<String>> {
    match as_integer(value) {
        Some(points) if !(1..=MAX_SAMPLE_POINTS).contains(&points) => {
            Err(Some(format!("max_results must be between 1 and {MAX_SAMPLE_POINTS}.")))
        }
        _ => Ok(()),
    }
}
