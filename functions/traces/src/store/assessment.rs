//! Storage of assessments, which are part of a trace's document.

use access::Granted;
use entities::{LocatedTrace, StoredTrace, now_ms};
use mlflow_api::assessments::{Assessment, AssessmentChange};
use mlflow_api::{AssessmentId, Error, ErrorCode, Result, TraceId};

use super::document_change::{DocumentChange, KnownDocument, check_experiment};
use super::document_draft::TraceDraft;
use super::store::Store;

/// Returns MLflow's error for a missing assessment.
fn no_assessment(trace: &TraceId, id: &str) -> Error {
    Error::not_found(format!("Assessment with ID '{id}' not found for trace '{trace}'"))
}

/// Returns the assessment that another assessment overrides, together with its id.
fn overridden(stored: &StoredTrace, overrides: Option<&str>) -> Result<Option<(AssessmentId, Assessment)>> {
    let Some(id) = overrides.and_then(AssessmentId::parse) else { return Ok(None) };
    Ok(stored.assessment(&id)?.map(|assessment| (id, assessment)))
}

/// Checks whether two assessments are equal except for their times and validity.
fn is_same(known: &Assessment, other: &Assessment) -> bool {
    *known == Assessment { created: known.created, updated: known.updated, is_valid: known.is_valid, ..other.clone() }
}

struct Create<'a> {
    trace: &'a StoredTrace,
    id: &'a AssessmentId,
    assessment: &'a Assessment,
}

impl DocumentChange for Create<'_> {
    async fn plan(&self, _: &Store, stored: Option<&StoredTrace>) -> Result<TraceDraft> {
        let stored = check_experiment(stored, self.trace)?;
        let mut draft = TraceDraft::of(stored);
        match stored.assessment(self.id)? {
            // The assessment exists already with equal fields, because the request is a retry.
            Some(known) if is_same(&known, self.assessment) => return Ok(draft),
            Some(_) => {
                let trace = self.trace.id();
                let message = format!("Failed to create assessment for trace '{trace}' due to a constraint violation.");
                return Err(Error::new(ErrorCode::BadRequest, message));
            }
            None => {}
        }
        if let Some(overrides) = &self.assessment.overrides {
            let found = overridden(stored, Some(overrides))?;
            let (id, old) = found.ok_or_else(|| no_assessment(self.trace.id(), overrides))?;
            draft.set_assessment(&id, &Assessment { is_valid: false, ..old });
        }
        draft.set_assessment(self.id, self.assessment);
        Ok(draft)
    }
}

struct Modify<'a> {
    trace: &'a StoredTrace,
    id: &'a AssessmentId,
    change: AssessmentChange,
    now: i64,
}

impl DocumentChange for Modify<'_> {
    async fn plan(&self, _: &Store, stored: Option<&StoredTrace>) -> Result<TraceDraft> {
        let stored = check_experiment(stored, self.trace)?;
        let found = stored.assessment(self.id)?;
        let mut assessment = found.ok_or_else(|| no_assessment(self.trace.id(), self.id.as_str()))?;
        self.change.clone().apply(&mut assessment, self.now)?;
        let mut draft = TraceDraft::of(stored);
        draft.set_assessment(self.id, &assessment);
        Ok(draft)
    }
}

struct Delete<'a> {
    trace: &'a StoredTrace,
    id: &'a AssessmentId,
}

impl DocumentChange for Delete<'_> {
    async fn plan(&self, _: &Store, stored: Option<&StoredTrace>) -> Result<TraceDraft> {
        let stored = check_experiment(stored, self.trace)?;
        let mut draft = TraceDraft::of(stored);
        let Some(assessment) = stored.assessment(self.id)? else { return Ok(draft) };
        draft.remove_assessment(self.id);
        if let Some((id, old)) = overridden(stored, assessment.overrides.as_deref())? {
            draft.set_assessment(&id, &Assessment { is_valid: true, ..old });
        }
        Ok(draft)
    }
}

impl Store {
    /// Adds an assessment to a trace, under an id that the client or the endpoint has chosen, and
    /// returns it as stored. Takes one request, or two if the trace's mark is more than a minute
    /// old, or three if the trace is packed.
    pub async fn assessment_create(
        &self,
        trace: &Granted<LocatedTrace>,
        id: &AssessmentId,
        assessment: &Assessment,
    ) -> Result<Assessment> {
        let trace = self.trace_document(trace).await?;
        let create = Create { trace: &trace, id, assessment };
        let written = self.trace_change(trace.id(), KnownDocument::current(&trace), Vec::new(), &create).await?;
        written.assessment(id)?.ok_or_else(|| no_assessment(trace.id(), id.as_str()))
    }

    /// Returns an assessment of a trace. Takes no request, or one if the trace is packed.
    pub async fn assessment_get(&self, trace: &Granted<LocatedTrace>, id: &str) -> Result<(AssessmentId, Assessment)> {
        let missing = || no_assessment(trace.id(), id);
        let id = AssessmentId::parse(id).ok_or_else(missing)?;
        let assessment = self.trace_document(trace).await?.assessment(&id)?.ok_or_else(missing)?;
        Ok((id, assessment))
    }

    /// Changes an assessment. Takes as many requests as [`Store::assessment_create`].
    pub async fn assessment_update(
        &self,
        trace: &Granted<LocatedTrace>,
        id: &str,
        change: AssessmentChange,
    ) -> Result<(AssessmentId, Assessment)> {
        let id = AssessmentId::parse(id).ok_or_else(|| no_assessment(trace.id(), id))?;
        let trace = self.trace_document(trace).await?;
        let modify = Modify { trace: &trace, id: &id, change, now: now_ms() };
        let written = self.trace_change(trace.id(), KnownDocument::current(&trace), Vec::new(), &modify).await?;
        let assessment = written.assessment(&id)?.ok_or_else(|| no_assessment(trace.id(), id.as_str()))?;
        Ok((id, assessment))
    }

    /// Deletes an assessment if it exists. If it overrides another assessment, the other one
    /// becomes valid again. Takes as many requests as [`Store::assessment_create`].
    pub async fn assessment_delete(&self, trace: &Granted<LocatedTrace>, id: &str) -> Result<()> {
        let Some(id) = AssessmentId::parse(id) else { return Ok(()) };
        let trace = self.trace_document(trace).await?;
        let delete = Delete { trace: &trace, id: &id };
        self.trace_change(trace.id(), KnownDocument::current(&trace), Vec::new(), &delete).await?;
        Ok(())
    }
}
