//! Requests about issues. The metadata is a map, which endpoints read from the JSON of the request.

use crate::messages;

messages! {
    /// The request message of `POST issues`.
    CreateIssue {
        name: String [Required, Text],
        description: String [Required, Text],
        experiment_id: String [Required, Text],
        status: Option<String> [Text],
        severity: Option<String> [Text],
        root_causes: Vec<String> [List, TextItems],
        source_run_id: String [Text],
        created_by: String [Text],
        categories: Vec<String> [List, TextItems],
        issue_id: Option<String> [Text],
        last_seen_timestamp: Option<i64>,
    }
    /// The request message of `PATCH issues/{issue_id}`. The issue is the one in the path,
    /// regardless of the id in the body.
    UpdateIssue {
        issue_id: String [Required, Text],
        name: Option<String> [Text],
        description: Option<String> [Text],
        status: Option<String> [Text],
        severity: Option<String> [Text],
        categories: Option<Vec<String>> [List, TextItems],
        last_seen_timestamp: Option<i64>,
        last_updated_by: String [Text],
        delete_metadata_keys: Vec<String> [List, TextItems],
    }
    /// The request message of `issues/search`.
    SearchIssues {
        experiment_id: String [Text],
        filter_string: String [Text],
        max_results: Option<i32> [Integer],
        page_token: String [Text],
        include_trace_count: bool [Bool],
        name: Option<String> [Text],
        statuses: Vec<String> [List, TextItems],
        severities: Vec<String> [List, TextItems],
        categories: Vec<String> [List, TextItems],
        order_by: Vec<String> [List, TextItems],
        include_total_count: bool [Bool],
        view: Option<String> [Text],
    }
}
