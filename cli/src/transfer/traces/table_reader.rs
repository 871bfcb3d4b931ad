//! Reads traces from the table.

use artifact_store::Archive;
use entities::StoredTrace;
use entities::attributes::IMPORTED;
use spans::Span;
use table::{Item, Table};
use trace_blocks::{LargeTraceTurn, read_trace_spans};

use super::record::TraceRecord;
use super::span_reader;
use crate::Failure;
use crate::transfer::import::fingerprint;

/// Returns the record of a trace, with its spans. Takes one request, and one more per MB of spans,
/// and two more for a packed trace.
///
/// # Errors
/// The table or the document cannot be read.
pub(super) async fn record(
    table: &Table,
    archive: &Archive,
    trace: &StoredTrace,
) -> Result<(TraceRecord, Vec<Span>), Failure> {
    let failed = |error: mlflow_api::Error| format!("cannot read trace {}: {}", trace.id(), error.message);
    let spans = read_trace_spans(table, archive, trace, &LargeTraceTurn::default()).await;
    let spans = spans.map_err(failed)?.to_vec();
    let mut record = TraceRecord::of(&trace.info().map_err(failed)?, trace.runs(), trace.prompts());
    record.spans = span_reader::hash(&spans);
    Ok((record, spans))
}

/// The difference between a trace in the table and its record in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TraceDifference {
    /// There is no difference.
    None,
    /// The source has changed since the trace was imported. The trace in the table has not.
    Source,
    /// The trace was changed in the table.
    Here,
}

/// Compares an imported trace with the hash of its record in the source. Takes as many requests as
/// [`record`].
///
/// # Errors
/// The table or the document cannot be read.
pub(super) async fn difference(
    table: &Table,
    archive: &Archive,
    document: &Item,
    source_fingerprint: &str,
) -> Result<TraceDifference, Failure> {
    let trace = StoredTrace::of(document.clone()).map_err(|error| error.message)?;
    let (mut record, _) = record(table, archive, &trace).await?;
    if fingerprint(&record)? == source_fingerprint {
        return Ok(TraceDifference::None);
    }
    let imported = document.get(IMPORTED);
    let hash = std::mem::take(&mut record.spans);
    // The fingerprint of the import covers either a hash of the spans or the name of the file that
    // they came from. Which of these is not recorded, so all are tried.
    for spans in [hash.as_str(), "traces.json", "traces.pb"] {
        spans.clone_into(&mut record.spans);
        if imported == Some(fingerprint(&record)?.as_str()) {
            return Ok(TraceDifference::Source);
        }
    }
    Ok(TraceDifference::Here)
}
