//! The fields of a trace that searches use.

use std::borrow::Cow;

use entities::StoredTrace;
use mlflow_api::assessments::{Assessment, Judgement};
use mlflow_api::python::json_spaced;
use mlflow_api::traces::{NAME_TAG, SESSION, TOKEN_USAGE, TraceInfo};
use mlflow_api::{ExperimentId, Result};
use search::trace::{AssessmentFields, AssessmentKind, TraceFields, TraceText};
use trace_blocks::TraceColumns;

/// A trace without its spans.
pub(super) struct SearchableTrace {
    pub(super) info: TraceInfo,
    pub(super) stored: StoredTrace,
    /// Approximate size in bytes.
    pub(super) bytes: usize,
    assessments: Vec<AssessmentFields<'static>>,
    names: Vec<String>,
    runs: Vec<String>,
    prompts: Vec<String>,
}

impl SearchableTrace {
    pub(super) fn of(trace: &StoredTrace) -> Result<Self> {
        let info = trace.info()?;
        let assessments = info.assessments.iter().map(|(_, assessment)| assessment_fields(assessment)).collect();
        let names = info.assessments.iter().map(|(_, assessment)| assessment.name.clone()).collect();
        let (runs, prompts) = (trace.runs(), trace.prompts());
        Ok(Self { info, stored: trace.clone(), bytes: trace.item().size(), assessments, names, runs, prompts })
    }
}

/// Returns the fields of an assessment that searches use. Its name is stored separately.
fn assessment_fields(assessment: &Assessment) -> AssessmentFields<'static> {
    let said = assessment.judgement.value();
    let kind = match assessment.judgement {
        Judgement::Feedback(_) => AssessmentKind::Feedback,
        Judgement::Expectation(_) => AssessmentKind::Expectation,
        Judgement::Issue(_) => AssessmentKind::Issue,
    };
    let value = said.get("value");
    // Values that are not scalars are already stored as JSON texts.
    let serialized = said.get("serialized_value").and_then(|serialized| serialized.get("value")?.as_str());
    let json = match (value, serialized) {
        (_, Some(serialized)) => serialized.to_owned(),
        (Some(value), None) => json_spaced(value),
        (None, None) => "null".to_owned(),
    };
    AssessmentFields {
        kind,
        name: "",
        json: Cow::Owned(json),
        number: value.and_then(serde_json::Value::as_f64),
        is_valid: assessment.is_valid,
        is_of_session: assessment.metadata.iter().any(|(key, _)| key == SESSION),
    }
}

impl TraceFields for SearchableTrace {
    fn experiment(&self) -> ExperimentId {
        self.info.experiment
    }

    fn text(&self, attribute: TraceText) -> Option<&str> {
        match attribute {
            TraceText::Id => Some(self.info.id.as_str()),
            TraceText::State => Some(self.info.state.name()),
            TraceText::ClientRequestId => self.info.client_request_id.as_deref(),
        }
    }

    fn request_time(&self) -> i64 {
        self.info.request_time
    }

    fn duration(&self) -> Option<i64> {
        self.info.duration
    }

    fn tag(&self, key: &str) -> Option<&str> {
        self.info.tag(key)
    }

    fn metadata(&self, key: &str) -> Option<&str> {
        self.info.metadata(key)
    }

    fn assessments(&self) -> impl Iterator<Item = AssessmentFields<'_>> {
        self.assessments.iter().zip(&self.names).map(|(assessment, name)| AssessmentFields {
            name,
            json: Cow::Borrowed(&assessment.json),
            ..*assessment
        })
    }

    fn is_linked_to_run(&self, run: &str) -> bool {
        self.runs.iter().any(|linked| linked == run)
    }

    fn is_linked_to_prompt(&self, prompt: &str) -> bool {
        self.prompts.iter().any(|linked| linked == prompt)
    }
}

/// The fields of a trace that blocks store in columns. A search that needs other fields has to read
/// the document.
pub(super) struct SearchableColumns {
    pub(super) experiment: ExperimentId,
    pub(super) columns: TraceColumns,
}

impl TraceFields for SearchableColumns {
    fn experiment(&self) -> ExperimentId {
        self.experiment
    }

    fn text(&self, attribute: TraceText) -> Option<&str> {
        match attribute {
            TraceText::Id => Some(self.columns.place.trace.as_str()),
            TraceText::State => Some(self.columns.state.name()),
            TraceText::ClientRequestId => None,
        }
    }

    fn request_time(&self) -> i64 {
        self.columns.place.time
    }

    fn duration(&self) -> Option<i64> {
        self.columns.duration
    }

    fn tag(&self, key: &str) -> Option<&str> {
        self.columns.name.as_deref().filter(|_| key == NAME_TAG)
    }

    fn metadata(&self, key: &str) -> Option<&str> {
        match key {
            SESSION => self.columns.session.as_deref(),
            TOKEN_USAGE => self.columns.usage.as_deref(),
            _ => None,
        }
    }

    fn assessments(&self) -> impl Iterator<Item = AssessmentFields<'_>> {
        std::iter::empty()
    }

    fn is_linked_to_run(&self, _: &str) -> bool {
        false
    }

    fn is_linked_to_prompt(&self, _: &str) -> bool {
        false
    }
}
