//! Exports traces.

use artifact_store::ArtifactStore;
use traces::store::Store;

use super::{exported_rows, table_reader};
use crate::Failure;
use crate::transfer::experiments::ExportedExperiment;
use crate::transfer::export::ExportContext;

/// Number of traces that are read together.
const BATCH: usize = 200;

/// Exports the traces of an experiment that have not expired, newest first. Takes as many requests
/// as a search for all traces, and one more per trace for its spans.
///
/// # Errors
/// The table cannot be read, or the file cannot be written.
pub(crate) async fn export(context: &ExportContext, experiment: &ExportedExperiment) -> Result<(), Failure> {
    let store = Store::new(context.table.clone(), ArtifactStore::default());
    let experiment = experiment.record.id;
    let mut behind = None;
    loop {
        let (traces, last) =
            store.traces_after(experiment, behind.as_ref(), BATCH).await.map_err(|error| error.message)?;
        for trace in traces {
            let (record, spans) = table_reader::record(&context.table, &context.archive, &trace).await?;
            exported_rows::insert(context, experiment, trace.id().as_str(), &record, &spans)?;
        }
        match last {
            Some(last) => behind = Some(last),
            None => return Ok(()),
        }
    }
}
