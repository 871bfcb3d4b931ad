//! Compares imported traces with the source.

use entities::StoredTrace;
use entities::attributes::IMPORTED;
use traces::store::MAX_DOCUMENT_BYTES;

use super::planner::{self, PlannedTrace};
use super::{KIND, table_reader};
use crate::Failure;
use crate::transfer::experiments::ImportedExperiment;
use crate::transfer::import::{ImportContext, fingerprint};

/// One in this many traces is read back completely.
const SAMPLE_EVERY: usize = 50;

/// Checks that all traces of an experiment are in the table, and compares a sample of them with the
/// source completely, including their spans. Reports differences.
///
/// # Errors
/// The source or the table cannot be read.
pub(crate) async fn verify(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    let (mut after, mut position) = ((i64::MIN, String::new()), 0);
    loop {
        let page = planner::next_page(context, experiment, &after, false).await?;
        let mut sample = Vec::new();
        for trace in page.traces {
            if trace.imported().is_none() {
                // A trace that is too large is in the report already.
                if trace.document_size(experiment) > MAX_DOCUMENT_BYTES {
                    continue;
                }
                context.report.different(KIND, &format!("{} is missing", trace.source_id));
            } else if position % SAMPLE_EVERY == 0 {
                sample.push(trace);
            }
            position += 1;
        }
        planner::read_spans(context, experiment, &mut sample, false).await?;
        for trace in sample {
            compare(context, &trace).await?;
        }
        let Some(last) = page.last else { return Ok(()) };
        after = last;
    }
}

/// Compares a trace with its record. A trace that was changed in the table is skipped, because it
/// is in the report already.
async fn compare(context: &ImportContext, trace: &PlannedTrace) -> Result<(), Failure> {
    let Some(document) = trace.imported() else { return Ok(()) };
    if document.get(IMPORTED) != Some(fingerprint(&trace.record)?.as_str()) {
        return Ok(());
    }
    let stored = StoredTrace::of(document.clone()).map_err(|error| error.message)?;
    let (mut here, _) = table_reader::record(&context.table, &context.archive, &stored).await?;
    if trace.file.is_some() {
        // Files are not read again, so spans that came from a file are not compared.
        here.spans.clone_from(&trace.record.spans);
    }
    here.spans_location.clone_from(&trace.record.spans_location);
    if here != trace.record {
        context.report.different(KIND, &trace.source_id);
    }
    Ok(())
}
