//! Deleting records of evaluation datasets.

use entities::documents::content;
use std::collections::BTreeSet;

use entities::attributes::{INPUTS, RECORDS};
use key_schema::{Key, rows};
use mlflow_api::{DatasetRecordId, EvaluationDatasetId, Result};
use table::{Condition, Failure, Item, Update, Write, WriteRefusal, number};

use super::dataset_item::{DatasetReference, MAX_TRANSACTION_WRITES, part_key, unchanged};
use crate::store::Store;

/// Maximum number of records that one transaction deletes together with their claims. One further
/// write of the transaction updates the dataset.
const MAX_TRANSACTION_RECORDS: usize = (MAX_TRANSACTION_WRITES - 1) / 2;
/// Batch size for reading the records to delete.
const BATCH_SIZE: usize = 4 * MAX_TRANSACTION_RECORDS;

impl Store {
    /// Deletes records of an evaluation dataset, and returns how many existed. Takes one request
    /// per hundred ids, one per 49 existing records, and one per 25 parts of large records.
    pub async fn dataset_delete_records(&self, id: &DatasetReference, records: &[String]) -> Result<usize> {
        let Some(dataset) = id.dataset.as_deref().cloned() else { return Ok(0) };
        let ids: BTreeSet<_> = records.iter().filter_map(|id| DatasetRecordId::parse(id)).collect();
        let keys: Vec<_> = ids.iter().map(|id| rows::EvaluationRecord::key(&dataset, id)).collect();
        let mut deleted = 0;
        for portion in keys.chunks(BATCH_SIZE) {
            deleted += self.dataset_delete_batch(&dataset, portion).await?;
        }
        Ok(deleted)
    }

    async fn dataset_delete_batch(&self, dataset: &EvaluationDatasetId, keys: &[Key]) -> Result<usize> {
        let mut deleted = 0;
        let mut attempts = self.table.attempts("the records of an evaluation dataset");
        loop {
            attempts.next().await?;
            // If the request is a retry, records that an earlier attempt deleted are not found and
            // not counted.
            let mut items: Vec<_> = self.table.get_many(keys).await?.into_values().collect();
            items.sort_unstable_by_key(Item::key);
            let mut is_done = true;
            for group in items.chunks(MAX_TRANSACTION_RECORDS) {
                match self.table.transact(&deletion(dataset, group)).await {
                    Ok(()) => {}
                    // The dataset was deleted, and the indexer deletes its records.
                    Err(Failure::Cancelled(reasons)) if matches!(reasons.last(), Some(WriteRefusal::Refused(None))) => {
                        return Ok(deleted);
                    }
                    Err(Failure::Cancelled(_)) => {
                        is_done = false;
                        break;
                    }
                    Err(failure) => return Err(failure.into()),
                }
                attempts.progressed();
                deleted += group.len();
                let parts = group.iter().flat_map(|item| content::part_keys(item, part_key(dataset)));
                self.table.write_many(Vec::new(), &parts.collect::<Vec<_>>()).await?;
            }
            if is_done {
                return Ok(deleted);
            }
        }
    }
}

/// Returns the writes that delete records together with the claims of their inputs, and decrease
/// the dataset's count of records.
fn deletion(dataset: &EvaluationDatasetId, records: &[Item]) -> Vec<Write> {
    let claim = |record: &Item| {
        let inputs = record.get(INPUTS)?;
        Some(Write::Delete(rows::EvaluationInputs::key(dataset, &inputs), Condition::Always))
    };
    // The condition is that the record has not changed, because the parts of the version that was
    // read are deleted as well.
    let record = |record: &Item| Some(Write::Delete(record.key()?, unchanged(record)));
    let mut writes: Vec<_> = records.iter().flat_map(|item| [record(item), claim(item)]).flatten().collect();
    let count = i64::try_from(records.len()).unwrap_or_default();
    writes.push(Write::Update(Update::new(rows::EvaluationDataset::key(dataset)).add(RECORDS, number(-count))));
    writes
}
