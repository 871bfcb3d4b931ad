//! Requests about traces. Some requests contain values that the fields of these messages cannot
//! represent, so they are read directly from the JSON: requests with assessments, and `POST traces`
//! in version 3 of the API.

use serde_json::Value;

use crate::Result;
use crate::checks::at_most;
use crate::experiment_tag_formats;
use crate::messages;
use crate::trace_metrics::{AggregationType, ViewOfMetrics};
use crate::traces::TraceState;

/// Checks that each entry of a list has a key (`_assert_map_key_present` in MLflow's
/// `handlers.py`).
fn keys_are_there(entries: &Value) -> Result<(), Option<String>> {
    let entries = entries.as_array().ok_or(None)?;
    let has_key = |entry: &Value| entry.get("key").is_some_and(|key| !key.is_null() && key != "");
    if entries.iter().all(has_key) { Ok(()) } else { Err(None) }
}

messages! {
    /// An entry of the metadata, or a tag.
    Entry {
        key: String,
        value: String,
    }
    /// The request message of `traces/get`.
    GetTrace {
        trace_id: String [Text, Required],
        allow_partial: bool [Bool],
    }
    /// The request message of `traces/batchGet` and `traces/batchGetInfos`. If there is no list of
    /// experiments, all traces are returned. If the list is empty, none are.
    BatchGet {
        trace_ids: Vec<String> [List, Required, TextItems],
        experiment_ids: Option<Vec<String>> [List, TextItems],
    }
    /// The request message of `traces/delete-traces`.
    DeleteTraces {
        experiment_id: String [Text, Required],
        max_timestamp_millis: Option<i64> [Integer],
        max_traces: Option<i32> [Integer],
        request_ids: Vec<String> [List, TextItems],
    }
    /// The request message for setting a tag, `traces/{trace_id}/tags`.
    SetTag {
        key: String [Text, Required],
        value: String [Text],
    }
    /// The request message for deleting a tag, `traces/{trace_id}/tags`.
    DeleteTag {
        key: String [Text, Required],
    }
    /// The request message of `traces/link-to-run`.
    LinkToRun {
        trace_ids: Vec<String> [List, Required, TextItems],
        run_id: String [Text, Required],
    }
    /// A version of a prompt.
    PromptVersion {
        name: String,
        version: String,
    }
    /// The request message of `traces/link-prompts`.
    LinkPrompts {
        trace_id: String [Text, Required],
        prompt_versions: Vec<PromptVersion> [List, Required],
    }
    /// The request message of `traces` for starting a trace, in version 2 of the API.
    StartTrace {
        experiment_id: String [Text],
        timestamp_ms: i64 [Integer],
        request_metadata: Vec<Entry> [Custom(keys_are_there)],
        tags: Vec<Entry> [Custom(keys_are_there)],
    }
    /// The request message of `traces/{request_id}` for ending a trace, in version 2 of the API.
    EndTrace {
        timestamp_ms: i64 [Integer],
        status: Option<TraceState> [Text],
        request_metadata: Vec<Entry> [Custom(keys_are_there)],
        tags: Vec<Entry> [Custom(keys_are_there)],
    }
    /// An experiment, as a location of traces.
    ExperimentPlace {
        experiment_id: String,
    }
    /// A location of traces.
    TraceLocation {
        mlflow_experiment: Option<ExperimentPlace>,
    }
    /// The request message of `traces/search`.
    SearchTraces {
        locations: Vec<TraceLocation> [List, Required],
        filter: String [Text],
        max_results: Option<i32> [Integer, Custom(|value| at_most(value, experiment_tag_formats::SEARCH_RESULTS))],
        order_by: Vec<String> [List, TextItems],
        page_token: String [Text],
    }
    /// The request message of `traces` for a search, in version 2 of the API.
    SearchTracesV2 {
        experiment_ids: Vec<String> [List, TextItems, Required],
        filter: String [Text],
        max_results: Option<i32> [Integer, Custom(|value| at_most(value, experiment_tag_formats::SEARCH_RESULTS))],
        order_by: Vec<String> [List, TextItems],
        page_token: String [Text],
    }
    /// An aggregation in a request to `traces/metrics`.
    MetricAggregation {
        aggregation_type: Option<AggregationType>,
        percentile_value: Option<f64>,
    }
    /// The request message of `traces/metrics`.
    QueryTraceMetrics {
        experiment_ids: Vec<String> [List, Required, TextItems],
        view_type: Option<ViewOfMetrics> [Required],
        metric_name: String [Text, Required],
        aggregations: Vec<MetricAggregation> [List, Required],
        dimensions: Vec<String> [List, TextItems],
        filters: Vec<String> [List, TextItems],
        time_interval_seconds: Option<i64> [Integer],
        start_time_ms: Option<i64> [Integer],
        end_time_ms: Option<i64> [Integer],
        max_results: Option<i32> [Integer],
        page_token: String [Text],
    }
    /// The request message of `traces/calculate-filter-correlation`.
    CalculateCorrelation {
        experiment_ids: Vec<String> [List, Required, TextItems],
        filter_string1: String [Text, Required],
        filter_string2: String [Text, Required],
        base_filter: Option<String> [Text],
    }
}
