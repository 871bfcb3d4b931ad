//! Traces without their spans, in versions 3 and 2 of MLflow's API (`TraceInfoV3` and `TraceInfo`
//! in `service.proto`).

pub use model::TraceState;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::assessments::Assessment;
use crate::json::read_value;
use crate::limits::truncated;
use crate::proto_json::{duration_text, time_text};
use crate::{AssessmentId, ExperimentId, TraceId};

/// The tag that contains the name of a trace.
pub const NAME_TAG: &str = "mlflow.traceName";
/// The tag that contains the location of a trace's artifacts.
pub const ARTIFACT_LOCATION_TAG: &str = "mlflow.artifactLocation";
/// The tag that specifies where the spans of a trace are stored.
pub const SPANS_LOCATION_TAG: &str = "mlflow.trace.spansLocation";
/// The value of [`SPANS_LOCATION_TAG`] for spans that are stored with the trace.
pub const TRACKING_STORE: &str = "TRACKING_STORE";
/// The value of [`SPANS_LOCATION_TAG`] for spans that were archived to a file.
pub const ARCHIVE_REPO: &str = "ARCHIVE_REPO";
/// The tag that contains the location of an archived trace's file.
pub const ARCHIVE_LOCATION_TAG: &str = "mlflow.trace.archiveLocation";
/// The tags that only the server sets (`_HANDLER_BLOCKED_TRACE_TAGS` in MLflow's `handlers.py`).
pub const SERVER_TAGS: [&str; 3] = [SPANS_LOCATION_TAG, ARCHIVE_LOCATION_TAG, ARCHIVAL_FAILURE_TAG];
/// The tag with the reason why a trace cannot be archived. The only one of [`SERVER_TAGS`] that
/// clients may delete.
pub const ARCHIVAL_FAILURE_TAG: &str = "mlflow.trace.archivalFailure";
/// The value of [`ARCHIVAL_FAILURE_TAG`] for a trace whose spans cannot be archived.
pub const MALFORMED_TRACE: &str = "MALFORMED_TRACE";
/// The metadata key that marks traces whose `StartTrace` request has arrived. The fields of that
/// request take precedence.
pub const FINALIZED_KEY: &str = "mlflow.trace.infoFinalized";
/// The metadata key for the tokens that all model calls of the trace used, as JSON.
pub const TOKEN_USAGE: &str = "mlflow.trace.tokenUsage";
/// The metadata key for the cost of all model calls of the trace, as JSON.
pub const COST: &str = "mlflow.trace.cost";
/// The metadata key for the session of the trace.
pub const SESSION: &str = "mlflow.trace.session";
/// The metadata key for the run in which the trace was created.
pub const SOURCE_RUN: &str = "mlflow.sourceRun";
/// The metadata key for the logged model that created the trace.
pub const MODEL_ID: &str = "mlflow.modelId";
/// The metadata key for the user of the trace.
pub const TRACE_USER: &str = "mlflow.trace.user";
/// The metadata key for the size of the trace and the number of its spans, as JSON.
pub const SIZE_STATS: &str = "mlflow.trace.sizeStats";

/// Maximum length, in characters, of metadata keys and values in responses, and of sessions
/// (`MAX_CHARS_IN_TRACE_INFO_METADATA`).
pub const MAX_METADATA_LENGTH: usize = 250;
/// Maximum length of tag keys in responses, in characters.
const MAX_TAG_KEY_LENGTH: usize = 250;
/// Maximum length, in characters, of tag values in responses, and of names
/// (`MAX_CHARS_IN_TRACE_INFO_TAGS_VALUE`).
pub const MAX_TAG_VALUE_LENGTH: usize = 4_096;

crate::enum_field!(TraceState {
    "TRACE_STATUS_UNSPECIFIED" = 0 => TraceState::Unspecified,
    "OK" = 1 => TraceState::Ok,
    "ERROR" = 2 => TraceState::Error,
    "IN_PROGRESS" = 3 => TraceState::InProgress,
});

/// A trace without its spans.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceInfo {
    /// The id.
    pub id: TraceId,
    /// The experiment.
    pub experiment: ExperimentId,
    /// The time when the trace began, in ms.
    pub request_time: i64,
    /// The duration, in ms.
    pub duration: Option<i64>,
    /// The state.
    pub state: TraceState,
    /// The id that the client assigned to the request.
    pub client_request_id: Option<String>,
    /// A preview of the request.
    pub request_preview: Option<String>,
    /// A preview of the response.
    pub response_preview: Option<String>,
    /// The metadata, by key.
    pub metadata: Vec<(String, String)>,
    /// The tags, by key.
    pub tags: Vec<(String, String)>,
    /// The assessments.
    pub assessments: Vec<(AssessmentId, Assessment)>,
}

impl TraceInfo {
    /// Returns the value of a tag.
    #[must_use]
    pub fn tag(&self, key: &str) -> Option<&str> {
        value_of(&self.tags, key)
    }

    /// Returns the value of an entry of the metadata.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<&str> {
        value_of(&self.metadata, key)
    }

    /// Returns the number of spans that the client has reported, or 0 if it has not reported any.
    #[must_use]
    pub fn announced_spans(&self) -> u64 {
        let stats = self.metadata(SIZE_STATS).and_then(|stats| read_value(stats.as_bytes()).ok());
        stats.and_then(|stats| stats.get("num_spans")?.as_u64()).unwrap_or_default()
    }

    /// Removes the assessments.
    pub fn hide_assessments(&mut self) {
        self.assessments.clear();
    }

    /// Removes an entry of the metadata, for example to hide the run in which the trace was
    /// created, or the logged model that created it.
    pub fn hide_metadata(&mut self, key: &str) {
        self.metadata.retain(|(name, _)| name != key);
    }

    /// Returns the JSON in version 3 of the API.
    #[must_use]
    pub fn json(&self) -> Value {
        let location =
            json!({"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": self.experiment.to_string()}});
        let mut info = Map::new();
        info.insert("trace_id".to_owned(), self.id.as_str().into());
        insert(&mut info, "client_request_id", self.client_request_id.as_deref());
        info.insert("trace_location".to_owned(), location);
        insert(&mut info, "request_preview", self.request_preview.as_deref());
        insert(&mut info, "response_preview", self.response_preview.as_deref());
        info.insert("request_time".to_owned(), time_text(self.request_time).into());
        insert(&mut info, "execution_duration", self.duration.map(duration_text).as_deref());
        info.insert("state".to_owned(), self.state.name().into());
        insert_map(&mut info, "trace_metadata", &self.metadata, MAX_METADATA_LENGTH, MAX_METADATA_LENGTH);
        if !self.assessments.is_empty() {
            let assessments = self.assessments.iter().map(|(id, assessment)| assessment.json(&self.id, id));
            info.insert("assessments".to_owned(), assessments.collect());
        }
        insert_map(&mut info, "tags", &self.tags, MAX_TAG_KEY_LENGTH, MAX_TAG_VALUE_LENGTH);
        Value::Object(info)
    }

    /// Returns the JSON in version 2 of the API.
    #[must_use]
    pub fn json_v2(&self) -> Value {
        let mut info = Map::new();
        info.insert("request_id".to_owned(), self.id.as_str().into());
        info.insert("experiment_id".to_owned(), self.experiment.to_string().into());
        info.insert("timestamp_ms".to_owned(), self.request_time.into());
        info.insert("execution_time_ms".to_owned(), self.duration.unwrap_or_default().into());
        info.insert("status".to_owned(), self.state.status().into());
        insert_list(&mut info, "request_metadata", &self.metadata, MAX_METADATA_LENGTH, MAX_METADATA_LENGTH);
        insert_list(&mut info, "tags", &self.tags, MAX_TAG_KEY_LENGTH, MAX_TAG_VALUE_LENGTH);
        Value::Object(info)
    }
}

fn value_of<'a>(entries: &'a [(String, String)], key: &str) -> Option<&'a str> {
    entries.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

fn insert(object: &mut Map<String, Value>, name: &str, value: Option<&str>) {
    object.extend(value.map(|value| (name.to_owned(), value.into())));
}

fn cut(entries: &[(String, String)], key: usize, value: usize) -> impl Iterator<Item = (String, Value)> {
    entries.iter().map(move |(name, text)| (truncated(key, name).into_owned(), truncated(value, text).into()))
}

fn insert_map(object: &mut Map<String, Value>, name: &str, entries: &[(String, String)], key: usize, value: usize) {
    if !entries.is_empty() {
        object.insert(name.to_owned(), Value::Object(cut(entries, key, value).collect()));
    }
}

fn insert_list(object: &mut Map<String, Value>, name: &str, entries: &[(String, String)], key: usize, value: usize) {
    if !entries.is_empty() {
        let entries = cut(entries, key, value).map(|(key, value)| json!({"key": key, "value": value}));
        object.insert(name.to_owned(), entries.collect());
    }
}

/// The response of `traces` and `traces/{trace_id}`.
#[derive(Debug, Serialize)]
pub struct TraceResponse {
    /// The trace.
    pub trace: TraceParts,
}

/// A trace, with the parts that were requested.
#[derive(Debug, Serialize)]
pub struct TraceParts {
    /// The trace without its spans.
    pub trace_info: Value,
    /// The spans.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<Box<RawValue>>,
}

impl TraceResponse {
    /// Creates the response for a trace whose spans were not requested.
    #[must_use]
    pub fn without_spans(info: &TraceInfo) -> Self {
        Self { trace: TraceParts { trace_info: info.json(), spans: Vec::new() } }
    }
}

/// The response of `traces/batchGet`.
#[derive(Debug, Serialize)]
pub struct BatchGetTracesResponse {
    /// The traces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<TraceParts>,
}

/// The response of `traces/batchGetInfos`.
#[derive(Debug, Serialize)]
pub struct BatchGetTraceInfosResponse {
    /// The traces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trace_infos: Vec<Value>,
}

/// The response of `traces` and `traces/{request_id}` in version 2 of the API.
#[derive(Debug, Serialize)]
pub struct TraceInfoV2Response {
    /// The trace.
    pub trace_info: Value,
}

/// The response of `traces/delete-traces`.
#[derive(Debug, Serialize)]
pub struct DeleteTracesResponse {
    /// The number of traces that were deleted.
    pub traces_deleted: u64,
}

/// The response of `traces/search`, and of `traces` in version 2 of the API.
#[derive(Debug, Serialize)]
pub struct SearchTracesResponse {
    /// The items of the page. Each is a [`TraceInfo`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<Box<RawValue>>,
    /// The token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}
