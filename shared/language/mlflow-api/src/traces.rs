//! Traces without their spans, in MLflow's third version and in its second (`TraceInfoV3` and `TraceInfo` in `service.proto`).

pub use model::TraceState;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::assessments::Assessment;
use crate::json::read_value;
use crate::limits::truncated;
use crate::proto_json::{duration_text, time_text};
use crate::{AssessmentId, ExperimentId, TraceId};

/// The tag that holds a trace's name.
pub const NAME_TAG: &str = "mlflow.traceName";
/// The tag that says where a trace's artifacts are.
pub const ARTIFACT_LOCATION_TAG: &str = "mlflow.artifactLocation";
/// The tag that says where its spans are kept.
pub const SPANS_LOCATION_TAG: &str = "mlflow.trace.spansLocation";
/// Its value: with the trace.
pub const TRACKING_STORE: &str = "TRACKING_STORE";
/// Tags that only the server sets (`_HANDLER_BLOCKED_TRACE_TAGS` in MLflow's `handlers.py`).
pub const SERVERS_TAGS: [&str; 3] = [SPANS_LOCATION_TAG, "mlflow.trace.archiveLocation", ARCHIVAL_FAILURE_TAG];
/// The one of them that clients may delete.
pub const ARCHIVAL_FAILURE_TAG: &str = "mlflow.trace.archivalFailure";
/// Metadata: `StartTrace` has come, and its fields win.
pub const FINALIZED: &str = "mlflow.trace.infoFinalized";
/// Metadata: the tokens that all its calls of models used, as JSON.
pub const TOKEN_USAGE: &str = "mlflow.trace.tokenUsage";
/// Metadata: the cost of these, as JSON.
pub const COST: &str = "mlflow.trace.cost";
/// Metadata: the session it belongs to.
pub const SESSION: &str = "mlflow.trace.session";
/// Metadata: the run in which it was made.
pub const SOURCE_RUN: &str = "mlflow.sourceRun";
/// Metadata: the logged model that made it.
pub const MODEL_ID: &str = "mlflow.modelId";
/// Metadata: its user.
pub const TRACE_USER: &str = "mlflow.trace.user";
/// Metadata: its size, and how many spans it has, as JSON.
pub const SIZE_STATS: &str = "mlflow.trace.sizeStats";

/// Longest key and value of metadata in answers, in characters, and longest session (`MAX_CHARS_IN_TRACE_INFO_METADATA`).
pub const METADATA: usize = 250;
/// Longest key of a tag in answers.
const TAG_KEY: usize = 250;
/// Longest value of a tag in answers, and longest name (`MAX_CHARS_IN_TRACE_INFO_TAGS_VALUE`).
pub const TAG_VALUE: usize = 4_096;

crate::enum_field!(TraceState {
    "TRACE_STATUS_UNSPECIFIED" = 0 => TraceState::Unspecified,
    "OK" = 1 => TraceState::Ok,
    "ERROR" = 2 => TraceState::Error,
    "IN_PROGRESS" = 3 => TraceState::InProgress,
});

/// A trace without its spans.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceInfo {
    /// Id.
    pub id: TraceId,
    /// Its experiment.
    pub experiment: ExperimentId,
    /// When it began, in ms.
    pub request_time: i64,
    /// How long it took, in ms.
    pub duration: Option<i64>,
    /// State.
    pub state: TraceState,
    /// The client's id of the request.
    pub client_request_id: Option<String>,
    /// Preview of the request.
    pub request_preview: Option<String>,
    /// Preview of the response.
    pub response_preview: Option<String>,
    /// Metadata, by key.
    pub metadata: Vec<(String, String)>,
    /// Tags, by key.
    pub tags: Vec<(String, String)>,
    /// Assessments.
    pub assessments: Vec<(AssessmentId, Assessment)>,
}

impl TraceInfo {
    /// The value of a tag.
    #[must_use]
    pub fn tag(&self, key: &str) -> Option<&str> {
        value_of(&self.tags, key)
    }

    /// The value of an entry of the metadata.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<&str> {
        value_of(&self.metadata, key)
    }

    /// How many spans its client says that it has.
    #[must_use]
    pub fn announced_spans(&self) -> u64 {
        let stats = self.metadata(SIZE_STATS).and_then(|stats| read_value(stats.as_bytes()).ok());
        stats.and_then(|stats| stats.get("num_spans")?.as_u64()).unwrap_or_default()
    }

    /// Leaves out its assessments.
    pub fn hide_assessments(&mut self) {
        self.assessments.clear();
    }

    /// Leaves out which run it was made in, or which logged model made it: an entry of its metadata.
    pub fn hide_metadata(&mut self, key: &str) {
        self.metadata.retain(|(name, _)| name != key);
    }

    /// Its JSON in the third version.
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
        insert_map(&mut info, "trace_metadata", &self.metadata, METADATA, METADATA);
        if !self.assessments.is_empty() {
            let assessments = self.assessments.iter().map(|(id, assessment)| assessment.json(&self.id, id));
            info.insert("assessments".to_owned(), assessments.collect());
        }
        insert_map(&mut info, "tags", &self.tags, TAG_KEY, TAG_VALUE);
        Value::Object(info)
    }

    /// Its JSON in the second version.
    #[must_use]
    pub fn json_v2(&self) -> Value {
        let mut info = Map::new();
        info.insert("request_id".to_owned(), self.id.as_str().into());
        info.insert("experiment_id".to_owned(), self.experiment.to_string().into());
        info.insert("timestamp_ms".to_owned(), self.request_time.into());
        info.insert("execution_time_ms".to_owned(), self.duration.unwrap_or_default().into());
        info.insert("status".to_owned(), self.state.status().into());
        insert_list(&mut info, "request_metadata", &self.metadata, METADATA, METADATA);
        insert_list(&mut info, "tags", &self.tags, TAG_KEY, TAG_VALUE);
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

/// `traces` and `traces/{trace_id}`
#[derive(Debug, Serialize)]
pub struct OneTrace {
    /// The trace.
    pub trace: TraceParts,
}

/// A trace, as far as it was asked for.
#[derive(Debug, Serialize)]
pub struct TraceParts {
    /// All but the spans.
    pub trace_info: Value,
    /// Its spans.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<Box<RawValue>>,
}

impl OneTrace {
    /// A trace whose spans were not asked for.
    #[must_use]
    pub fn without_spans(info: &TraceInfo) -> Self {
        Self { trace: TraceParts { trace_info: info.json(), spans: Vec::new() } }
    }
}

/// `traces/batchGet`
#[derive(Debug, Serialize)]
pub struct Traces {
    /// The traces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<TraceParts>,
}

/// `traces/batchGetInfos`
#[derive(Debug, Serialize)]
pub struct TraceInfos {
    /// The traces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trace_infos: Vec<Value>,
}

/// `traces` and `traces/{request_id}` in the second version.
#[derive(Debug, Serialize)]
pub struct OneTraceInfo {
    /// The trace.
    pub trace_info: Value,
}

/// `traces/delete-traces`
#[derive(Debug, Serialize)]
pub struct DeletedTraces {
    /// How many.
    pub traces_deleted: u64,
}

/// `traces/search`, and `traces` in the second version
#[derive(Debug, Serialize)]
pub struct FoundTraces {
    /// The page, each a [`TraceInfo`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<Box<RawValue>>,
    /// Token of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}
