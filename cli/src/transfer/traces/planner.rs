//! Decides which ids traces get, and determines where their spans are stored.

use entities::attributes::{EXPERIMENT, EXPIRES, IMPORTED};
use entities::{TraceItem, TracePointer};
use key_schema::rows;
use mlflow_api::TraceId;
use mlflow_api::assessments::{Assessment, Judgement};
use mlflow_api::traces::{ARTIFACT_LOCATION_TAG, MODEL_ID, SOURCE_RUN, TRACKING_STORE};
use spans::Span;
use table::Item;
use trace_blocks::resolve_item;
use traces::store::WholeTraceContent;

use super::database_reader::{self, ReadTrace, SourcePlace};
use super::record::TraceRecord;
use super::span_files::SpanFile;
use super::span_reader::{self, ReadSpans};
use super::{ASSESSMENTS_KIND, KIND, SPANS_KIND};
use crate::Failure;
use crate::transfer::experiments::ImportedExperiment;
use crate::transfer::import::{IdKind, ImportContext, ORIGINAL_ID_TAG, replacement_digits, replacement_digits_of};

/// Number of traces whose spans are in memory together.
const GROUP: usize = 10;
/// Value of the tag with the location of the spans if they are archived.
const ARCHIVE: &str = "ARCHIVE_REPO";
/// Tag with the directory in the archive that contains the spans.
const ARCHIVE_LOCATION_TAG: &str = "mlflow.trace.archiveLocation";
/// Key of an assessment's metadata that holds the id of the run that created the assessment.
const ASSESSMENT_RUN: &str = "mlflow.assessment.sourceRunId";
/// Field of a stored assessment that refers to an issue. The assessment's name is the issue's id.
const ISSUE: &str = "\"issue\":";

/// A trace that is being imported.
pub(super) struct PlannedTrace {
    /// The id in the source.
    pub(super) source_id: String,
    /// The id in the table.
    pub(super) id: TraceId,
    /// The record as it is written to the table.
    pub(super) record: TraceRecord,
    /// The document in the table, if there is one.
    pub(super) document: Option<Item>,
    /// The spans in the database.
    pub(super) spans: Vec<Span>,
    /// The file with the spans, if they are not in the database.
    pub(super) file: Option<SpanFile>,
}

impl PlannedTrace {
    /// Returns the document in the table if it was written by an import.
    pub(super) fn imported(&self) -> Option<&Item> {
        self.document.as_ref().filter(|document| document.has(IMPORTED))
    }

    /// Returns the size of everything except the spans, in bytes.
    pub(super) fn document_size(&self, experiment: &ImportedExperiment) -> usize {
        let info = self.record.info(&self.id, experiment.id);
        let (runs, prompts) = (&self.record.runs, &self.record.prompts);
        WholeTraceContent { info: &info, runs, prompts, spans: &[] }.document_size()
    }
}

/// A page of traces, without their spans.
pub(super) struct TracePage {
    pub(super) traces: Vec<PlannedTrace>,
    /// The position of the last trace, or `None` at the end.
    pub(super) last: Option<SourcePlace>,
}

impl TracePage {
    /// Splits the page into groups whose spans are read together.
    pub(super) fn groups(mut self) -> Vec<Vec<PlannedTrace>> {
        let mut groups = Vec::new();
        while !self.traces.is_empty() {
            let rest = self.traces.split_off(self.traces.len().min(GROUP));
            groups.push(std::mem::replace(&mut self.traces, rest));
        }
        groups
    }
}

/// Reads the next traces of an experiment after a position, and decides about their ids. Reports
/// traces and assessments that cannot be imported, if `reports` is set.
///
/// # Errors
/// The source or the table cannot be read, or an id is taken and `--remap` is not given.
pub(super) async fn next_page(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    after: &SourcePlace,
    reports: bool,
) -> Result<TracePage, Failure> {
    let (read, last) = database_reader::next_traces(&context.source, experiment.source_id, after).await?;
    let mut planned = Vec::new();
    for trace in read {
        if reports {
            for (id, reason) in &trace.omitted_assessments {
                context.report.omitted(ASSESSMENTS_KIND, id, reason.as_str());
            }
        }
        match plan(context, trace) {
            Ok(trace) => planned.push(trace),
            Err((id, reason)) if reports => context.report.omitted(KIND, &id, reason),
            Err(_) => {}
        }
    }
    let taken = read_documents(context, experiment, &mut planned).await?;
    if let Some(first) = taken.first() {
        if !context.remap {
            return Err(format!(
                "trace {} cannot be imported: its id is taken. --remap imports it with another id",
                first.source_id
            )
            .into());
        }
        let mut renamed: Vec<_> = taken.into_iter().map(|trace| renamed(context, trace)).collect();
        if let Some(trace) = read_documents(context, experiment, &mut renamed).await?.first() {
            return Err(format!("trace {} cannot be imported: its new id is taken too", trace.source_id).into());
        }
        planned.extend(renamed);
    }
    Ok(TracePage { traces: planned, last })
}

/// Returns a trace as it is written to the table, or its id and the reason why it cannot be
/// imported.
fn plan(context: &ImportContext, trace: ReadTrace) -> Result<PlannedTrace, (String, String)> {
    let mut record = trace.record.map_err(|reason| (trace.id.clone(), reason))?;
    let Some(id) = TraceId::parse(&trace.id) else {
        return Err((trace.id, "because their id is not valid".to_owned()));
    };
    for (key, value) in &mut record.metadata {
        match key.as_str() {
            SOURCE_RUN => *value = context.remapped.resolve(IdKind::Run, value),
            MODEL_ID => *value = context.remapped.resolve(IdKind::LoggedModel, value),
            _ => {}
        }
    }
    for run in &mut record.runs {
        *run = context.remapped.resolve(IdKind::Run, run);
    }
    record.runs.sort_unstable();
    for (_, assessment) in &mut record.assessments {
        resolve_references(context, assessment);
    }
    Ok(PlannedTrace { source_id: trace.id, id, record, document: None, spans: Vec::new(), file: None })
}

/// Replaces the run and the issue that a stored assessment refers to, if they have other ids in the
/// table.
fn resolve_references(context: &ImportContext, stored: &mut String) {
    if !context.remap || (!stored.contains(ASSESSMENT_RUN) && !stored.contains(ISSUE)) {
        return;
    }
    if let Some(mut assessment) = Assessment::from_stored(stored) {
        for (_, run) in assessment.metadata.iter_mut().filter(|(key, _)| key == ASSESSMENT_RUN) {
            *run = context.remapped.resolve(IdKind::Run, run);
        }
        if matches!(assessment.judgement, Judgement::Issue(_)) {
            assessment.name = context.remapped.resolve(IdKind::Issue, &assessment.name);
        }
        *stored = assessment.to_stored().to_string();
    }
}

/// Reads the documents of planned traces, and removes and returns the traces whose ids are taken.
/// Takes one request per 100 traces.
async fn read_documents(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    planned: &mut Vec<PlannedTrace>,
) -> Result<Vec<PlannedTrace>, Failure> {
    let keys: Vec<_> = planned.iter().map(|trace| rows::Trace::key(&trace.id)).collect();
    let documents = context.table.get_many(&keys).await;
    let mut documents = documents.map_err(|failure| format!("cannot read traces: {failure:?}"))?;
    for (trace, key) in planned.iter_mut().zip(&keys) {
        trace.document = match documents.remove(key) {
            // The document of a packed trace is in a block.
            Some(item) if TracePointer::of(&item).is_some() => {
                let resolved = resolve_item(&context.table, Some(item)).await.map_err(|error| error.message)?;
                resolved.and_then(TraceItem::trace).map(|trace| trace.item().clone())
            }
            document => document,
        };
    }
    let is_taken = |trace: &mut PlannedTrace| {
        trace.document.as_ref().is_some_and(|document| {
            // A stub does not take the id. It only has links to a trace that has not arrived, and
            // expires.
            let is_own = document.has(IMPORTED) && document.get(EXPERIMENT) == Some(experiment.id);
            !is_own && !document.has(EXPIRES)
        })
    };
    Ok(planned.extract_if(.., is_taken).collect())
}

/// Gives a trace another id, and records the old one in a tag. Its assessments get other ids, too,
/// because ids of assessments are unique in MLflow's schema, and an export may contain both traces.
fn renamed(context: &ImportContext, mut trace: PlannedTrace) -> PlannedTrace {
    let digits = replacement_digits(IdKind::Trace, &trace.source_id);
    trace.id = TraceId::new(u128::from_str_radix(&digits, 16).unwrap_or_default());
    context.remapped.insert(IdKind::Trace, &trace.source_id, trace.id.as_str());
    trace.record.tags.push((ORIGINAL_ID_TAG.to_owned(), trace.source_id.clone()));
    trace.record.tags.sort_unstable();
    let new_id = |id: &str| format!("a-{}", replacement_digits_of(&[trace.id.as_str(), id]));
    for (id, stored) in &mut trace.record.assessments {
        if let Some(mut assessment) =
            Assessment::from_stored(stored).filter(|assessment| assessment.overrides.is_some())
        {
            assessment.overrides = assessment.overrides.map(|overridden| new_id(&overridden));
            *stored = assessment.to_stored().to_string();
        }
        *id = new_id(id);
    }
    trace.record.assessments.sort_unstable();
    trace
}

/// Reads the spans of traces from the database, or determines which file contains them. Reports
/// spans that cannot be imported, if `reports` is set.
///
/// # Errors
/// The source cannot be read.
pub(super) async fn read_spans(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    traces: &mut [PlannedTrace],
    reports: bool,
) -> Result<(), Failure> {
    let ids: Vec<_> = traces.iter().map(|trace| trace.source_id.as_str()).collect();
    let mut all = span_reader::spans_of(&context.source, &ids).await?;
    for trace in traces {
        let in_database = all.remove(&trace.source_id);
        let record = &mut trace.record;
        let archive = record.tag(ARCHIVE_LOCATION_TAG).map(|location| SpanFile::Archive(location.to_owned()));
        let artifact = || {
            let tag = record.tag(ARTIFACT_LOCATION_TAG);
            SpanFile::artifact(tag, &experiment.record.artifact_location, &trace.source_id)
        };
        trace.file = match (record.spans_location.as_deref(), &in_database) {
            (Some(ARCHIVE), _) | (Some(TRACKING_STORE), None) => archive,
            (Some(TRACKING_STORE), _) | (None, Some(_)) => None,
            (_, _) => Some(artifact()),
        };
        if reports && trace.file.is_none() && in_database.is_none() && record.spans_location.as_deref() == Some(ARCHIVE)
        {
            let reason = format!("because they have no tag {ARCHIVE_LOCATION_TAG}");
            context.report.omitted(SPANS_KIND, &trace.source_id, reason);
        }
        if let Some(file) = &trace.file {
            file.name().clone_into(&mut record.spans);
        } else if let Some(spans) = in_database {
            trace.spans = taken(context, &trace.source_id, &trace.id, spans, reports);
            record.spans = span_reader::hash(&trace.spans);
        }
        // The tag has the artifact location in the source, which `--artifacts` may replace.
        for (_, location) in record.tags.iter_mut().filter(|(key, _)| key == ARTIFACT_LOCATION_TAG) {
            *location = context.artifact_location(location);
        }
    }
    Ok(())
}

/// Returns the spans of a trace as they are written to the table. If the spans cannot be imported,
/// returns none, and reports the reason if `reports` is set.
pub(super) fn taken(
    context: &ImportContext,
    source_id: &str,
    id: &TraceId,
    spans: ReadSpans,
    reports: bool,
) -> Vec<Span> {
    let mut spans = match spans {
        Ok(spans) => spans,
        Err(reason) => {
            if reports {
                context.report.omitted(SPANS_KIND, source_id, reason);
            }
            return Vec::new();
        }
    };
    if let Some(new) = spans::trace_id(id.as_str()).filter(|_| id.as_str() != source_id) {
        for span in &mut spans {
            spans::move_to_trace(span, new);
        }
    }
    spans
}
