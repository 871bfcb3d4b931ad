//! Deletes the items that a replaced evaluation dataset no longer has.

use std::collections::HashSet;

use entities::attributes::EXPERIMENTS;
use entities::{entry_key, listing};
use futures::stream::TryStreamExt;
use key_schema::{Key, Name, rows};
use mlflow_api::EvaluationDatasetId;
use table::{Item, Query};

use crate::Failure;
use crate::transfer::import::ImportContext;

/// Deletes the items of a dataset that are not among those that were just written, and its rows in
/// the lists of experiments that it does not belong to any more. Takes one request per MB of items,
/// and one per 25 that are deleted.
///
/// # Errors
/// The table cannot be read or written.
pub(super) async fn delete(
    context: &ImportContext,
    id: &EvaluationDatasetId,
    replaced: &Item,
    written: &HashSet<Key>,
) -> Result<(), Failure> {
    let unlisted = replaced.map(EXPERIMENTS).into_iter().flat_map(|experiments| experiments.keys());
    let unlisted = unlisted.map(|entry| rows::ExperimentEvaluationDataset::key(&Name::from(entry_key(entry)), id));
    context.writer.delete_all(unlisted.filter(|key| !written.contains(key)).collect()).await?;
    for partition in [rows::EvaluationDataset::partition(id), rows::EvaluationInputs::partition(id)] {
        let mut pages = std::pin::pin!(listing::pages(&context.table, Query::of(partition)));
        loop {
            let page = pages.try_next().await;
            let page = page.map_err(|failure| format!("cannot read evaluation dataset {id}: {failure:?}"))?;
            let Some(items) = page else { break };
            let stale = items.iter().filter_map(Item::key).filter(|key| !written.contains(key)).collect();
            context.writer.delete_all(stale).await?;
        }
    }
    Ok(())
}
