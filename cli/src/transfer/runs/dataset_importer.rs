//! Imports the datasets that runs have read.

use entities::{dataset_key, is_dataset};
use tracking::store::{DatasetItems, dataset_contexts, dataset_items};

use super::database_reader;
use crate::Failure;
use crate::transfer::experiments::ImportedExperiment;
use crate::transfer::import::ImportContext;

/// Name of datasets of runs in reports.
const KIND: &str = "datasets of runs";
/// Number of datasets that are written together.
const BATCH: usize = 100;

/// Writes the datasets of an experiment. A dataset that the table already has keeps its content, as
/// if another run had logged it, and gets the contexts of the source in addition to its own.
///
/// # Errors
/// The source cannot be read, or the table cannot be read or written.
pub(super) async fn import(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    let records = database_reader::datasets(&context.source, experiment.source_id).await?;
    for records in records.chunks(BATCH) {
        let keys: Vec<_> = records
            .iter()
            .map(|record| dataset_key(experiment.id, &record.dataset.name, &record.dataset.digest))
            .collect();
        let found =
            context.table.get_many(&keys).await.map_err(|failure| format!("cannot read datasets: {failure:?}"))?;
        let (mut parts, mut items) = (Vec::new(), Vec::new());
        for (record, key) in records.iter().zip(&keys) {
            let mut contexts: Vec<_> = record.contexts.iter().map(Option::as_deref).collect();
            let known = found.get(key);
            if let Some(known) = known {
                if !is_dataset(known, &record.dataset.name, &record.dataset.digest) {
                    context.report.omitted(KIND, &record.dataset.name, "because the hash of its name is taken");
                    continue;
                }
                contexts.extend(dataset_contexts(known));
                contexts.sort_unstable();
                contexts.dedup();
                if contexts.len() == dataset_contexts(known).count() {
                    context.report.unchanged(KIND, 1);
                    continue;
                }
            }
            let built = dataset_items(experiment.id, &record.dataset, contexts).map_err(|error| error.message)?;
            let DatasetItems { parts: of_dataset, item } = built;
            parts.extend(of_dataset);
            items.push(item);
        }
        let count = items.len() as u64;
        context.writer.put_all(parts).await?;
        context.writer.put_all(items).await?;
        context.report.imported(KIND, count);
    }
    Ok(())
}
