//! Records of traces.

use mlflow_api::assessments::Assessment;
use mlflow_api::traces::{SPANS_LOCATION_TAG, TraceInfo, TraceState};
use mlflow_api::{AssessmentId, ExperimentId, TraceId};
use serde::Serialize;

/// A trace of an MLflow database.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct TraceRecord {
    /// The start time, in ms since 1970.
    pub(super) time: i64,
    /// The duration, in ms.
    pub(super) duration: Option<i64>,
    /// State of the trace.
    pub(super) state: TraceState,
    /// The id that the client gave the request.
    pub(super) client_request_id: Option<String>,
    /// A preview of the request.
    pub(super) request_preview: Option<String>,
    /// A preview of the response.
    pub(super) response_preview: Option<String>,
    /// Tags, sorted by key. The tag with the location of the spans is not included.
    pub(super) tags: Vec<(String, String)>,
    /// Metadata, sorted by key.
    pub(super) metadata: Vec<(String, String)>,
    /// Assessments as they are stored, sorted by id.
    pub(super) assessments: Vec<(String, String)>,
    /// Runs that the trace is linked to, sorted.
    pub(super) runs: Vec<String>,
    /// Versions of prompts that the trace is linked to, as `name/version`. Sorted.
    pub(super) prompts: Vec<String>,
    /// A hash of the spans if the database has them, otherwise the name of their file. Empty if
    /// there are none.
    pub(super) spans: String,
    /// The tag with the location of the spans. It is not part of the content, because it changes
    /// when spans are imported from a file.
    #[serde(skip)]
    pub(super) spans_location: Option<String>,
}

impl TraceRecord {
    /// Returns the value of a tag.
    pub(super) fn tag(&self, key: &str) -> Option<&str> {
        self.tags.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Returns the trace as it is stored.
    pub(super) fn info(&self, id: &TraceId, experiment: ExperimentId) -> TraceInfo {
        let assessments = self.assessments.iter();
        let assessments =
            assessments.filter_map(|(id, stored)| AssessmentId::parse(id).zip(Assessment::from_stored(stored)));
        let location = self.spans_location.iter().map(|location| (SPANS_LOCATION_TAG.to_owned(), location.clone()));
        TraceInfo {
            id: id.clone(),
            experiment,
            request_time: self.time,
            duration: self.duration,
            state: self.state,
            client_request_id: self.client_request_id.clone(),
            request_preview: self.request_preview.clone(),
            response_preview: self.response_preview.clone(),
            metadata: self.metadata.clone(),
            tags: self.tags.iter().cloned().chain(location).collect(),
            assessments: assessments.collect(),
        }
    }

    /// Returns the record of a trace in the table, without its spans.
    pub(super) fn of(info: &TraceInfo, runs: Vec<String>, prompts: Vec<String>) -> Self {
        let mut assessments: Vec<_> = info
            .assessments
            .iter()
            .map(|(id, assessment)| (id.as_str().to_owned(), assessment.to_stored().to_string()))
            .collect();
        assessments.sort_unstable();
        let (location, mut tags): (Vec<_>, Vec<_>) =
            info.tags.iter().cloned().partition(|(key, _)| key == SPANS_LOCATION_TAG);
        tags.sort_unstable();
        Self {
            time: info.request_time,
            duration: info.duration,
            state: info.state,
            client_request_id: info.client_request_id.clone(),
            request_preview: info.request_preview.clone(),
            response_preview: info.response_preview.clone(),
            tags,
            metadata: info.metadata.clone(),
            assessments,
            runs,
            prompts,
            spans: String::new(),
            spans_location: location.into_iter().next().map(|(_, location)| location),
        }
    }
}
