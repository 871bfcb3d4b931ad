//! Requests about review queues.

use serde_json::Value;

use crate::Result;
use crate::checks::as_integer;
use crate::limits::SEARCH_RESULTS;
use crate::messages;
use crate::review_queues::{ReviewItemType, ReviewQueueType, ReviewStatus};

/// Checks the number of results of a list (`_review_queue_max_results_validator` in MLflow's
/// `handlers.py`).
pub(super) fn is_page_size(value: &Value) -> Result<(), Option<String>> {
    if as_integer(value).is_some_and(|number| (1..=SEARCH_RESULTS).contains(&number)) {
        Ok(())
    } else {
        Err(Some(format!("max_results must be between 1 and {SEARCH_RESULTS}.")))
    }
}

messages! {
    /// The request message of `review-queues/create`. The creator in the request is ignored.
    CreateReviewQueue {
        experiment_id: String [Required, Text],
        name: String [Required, Text],
        queue_type: Option<ReviewQueueType>,
        users: Vec<String>,
        schema_ids: Vec<String>,
    }
    /// The request message of `review-queues/get-or-create-user`.
    GetOrCreateUserQueue {
        experiment_id: String [Required, Text],
        user: String [Required, Text],
    }
    /// The request message of `review-queues/get` and `delete`.
    OneReviewQueue {
        queue_id: String [Required, Text],
    }
    /// The request message of `review-queues/get-by-name`.
    GetReviewQueueByName {
        experiment_id: String [Required, Text],
        name: String [Required, Text],
    }
    /// The request message of `review-queues/list`.
    ListReviewQueues {
        experiment_id: String [Required, Text],
        user: Option<String>,
        max_results: Option<i32> [Integer, Custom(is_page_size)],
        page_token: String,
        item_id: Option<String>,
    }
    /// The request message of `review-queues/update`.
    UpdateReviewQueue {
        queue_id: String [Required, Text],
        update_users: bool,
        users: Vec<String>,
        update_schema_ids: bool,
        schema_ids: Vec<String>,
        name: Option<String>,
        new_owner: Option<String>,
    }
    /// The request message of `review-queues/items/add`.
    AddReviewItems {
        queue_id: String [Required, Text],
        item_type: Option<ReviewItemType>,
        item_ids: Vec<String>,
    }
    /// The request message of `review-queues/items/remove`.
    RemoveReviewItems {
        queue_id: String [Required, Text],
        item_ids: Vec<String>,
    }
    /// The request message of `review-queues/items/list`.
    ListReviewItems {
        queue_id: String [Required, Text],
        status: Option<ReviewStatus>,
        max_results: Option<i32> [Integer, Custom(is_page_size)],
        page_token: String,
    }
    /// The request message of `review-queues/items/set-status`.
    SetReviewStatus {
        queue_id: String [Required, Text],
        item_id: String [Required, Text],
        status: Option<ReviewStatus>,
        completed_by: Option<String>,
    }
}
