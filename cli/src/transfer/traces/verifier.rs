//! Compares imported traces with the source.

use entities::StoredTrace;
use entities::attributes::IMPORTED;

use super::planner::{self, PlannedTrace};
use super::{KIND, table_reader};
use crate::Failure;
use crate::transfer::experiments::ImportedExperiment;
use crate::transfer::import::{ImportContext, fingerprint};

/// Of so many traces, one is read back completely.
const SAMPLE_EVERY: usize = 50;

/// Compares the traces of an experiment with the source: whether all are here, and some of them
/// completely, with their spans. Differences are reported.
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

/// Compares a trace with its record, unless it was changed here, which is in the report already.
async fn compare(context: &ImportContext, trace: &PlannedTrace) -> Result<(), Failure> {
    let Some(document) = trace.imported() else { return Ok(()) };
    if document.get(IMPORTED) != Some(fingerprint(&trace.record)?.as_str()) {
        return Ok(());
    }
    let stored = StoredTrace::of(document.clone()).map_err(|error| error.message)?;
    let (mut here, _) = table_reader::record(&context.table, &stored).await?;
    if trace.file.is_some() {
        // Spans of files are not read again, so they are not compared.
        here.spans.clone_from(&trace.record.spans);
    }
    here.spans_location.clone_from(&trace.record.spans_location);
    if here != trace.record {
        context.report.different(KIND, &trace.source_id);
    }
    Ok(())
}
