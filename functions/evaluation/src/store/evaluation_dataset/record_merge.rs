//! Merging of records into an evaluation dataset.
//!
//! A record is identified by the hash of its inputs. A separate row, the claim, reserves the hash
//! for the record. A new record is written together with its claim. An existing record is written
//! on condition that it has not changed since it was read. Each transaction also updates the
//! dataset, so the number of records is exact, and no record is written to a deleted dataset.

use entities::documents::content;
use std::collections::VecDeque;

use entities::attributes::{RECORD, RECORDS, SCHEMA_VERSION};
use entities::{now_ms, unreadable};
use key_schema::rows;
use mlflow_api::evaluation_datasets::MergeRecordsResponse;
use mlflow_api::{Error, ErrorCode, EvaluationDatasetId, Json, Result};
use table::{Failure, Item, Write, WriteRefusal, number};

use super::dataset_item::{DatasetReference, part_key};
use super::merge_plan::{BATCH_SIZE, MergeTransaction};
use super::merge_request::{InputsGroup, MergeRequest, NewSchema};
use super::record_content::SentRecord;
use super::schema;
use crate::store::Store;

/// Parses a JSON list of records, and rejects other values.
fn read(records: Json) -> Result<Vec<SentRecord>> {
    match records {
        Json::List(records) => records.into_iter().map(SentRecord::read).collect(),
        // In Python, empty objects and empty texts can be iterated like an empty list, so MLflow
        // accepts them.
        Json::Object(_) | Json::Text(_) if !records.is_true() => Ok(Vec::new()),
        other => Err(Error::invalid(format!("The records must be a JSON array, got {}.", other.type_name()))),
    }
}

/// Returns the error about records of a dataset that does not exist. In MLflow, this error comes
/// from the database.
fn no_dataset(id: &str) -> Error {
    Error::new(ErrorCode::BadRequest, EvaluationDatasetId::not_found(id).message)
}

impl Store {
    /// Merges records, given as a JSON array, into an evaluation dataset. Takes two requests, one
    /// more per hundred records, one per 49 new records, and two per 99 existing ones. Costs four
    /// write units for each new record of less than one KB, and two for each existing record.
    pub async fn dataset_merge_records(&self, id: &DatasetReference, records: Json) -> Result<MergeRecordsResponse> {
        let sent = read(records)?;
        let dataset = match id.dataset.as_deref().cloned() {
            None if sent.is_empty() => return Ok(MergeRecordsResponse::default()),
            None => return Err(no_dataset(&id.text)),
            Some(dataset) => dataset,
        };
        let user = sent.iter().fold(None, |user, record| record.user.after(user));
        let merge = MergeRequest { id: &dataset, now: now_ms(), user, sent: &sent };
        if sent.is_empty() {
            let count = MergeRecordsResponse::default();
            let Some(item) = self.table.get(&rows::EvaluationDataset::key(&dataset)).await? else { return Ok(count) };
            match self.table.update(&merge.update(&item, None)).await {
                Ok(_) | Err(Failure::Refused { .. }) => return Ok(count),
                Err(failure) => return Err(failure.into()),
            }
        }
        let mut wanted = merge.grouped_by_inputs();
        self.dataset_find_known(&merge, &mut wanted).await?;
        // New records are written first, so that a request that is interrupted and sent again
        // continues with the records that it has not written yet.
        wanted.sort_by_key(|wanted| wanted.known.is_some());
        self.dataset_merge(&merge, &mut wanted).await
    }

    /// Reads which of the inputs belong to existing records. Takes one request per hundred inputs.
    async fn dataset_find_known(&self, merge: &MergeRequest<'_>, wanted: &mut [InputsGroup]) -> Result<()> {
        for portion in wanted.chunks_mut(BATCH_SIZE) {
            let key = |wanted: &InputsGroup| rows::EvaluationInputs::key(merge.id, &wanted.inputs);
            let claims = self.table.get_many(&portion.iter().map(key).collect::<Vec<_>>()).await?;
            for wanted in portion {
                let Some(claim) = claims.get(&key(wanted)) else {
                    wanted.known = None;
                    continue;
                };
                let record = claim.get(RECORD);
                wanted.known = Some(record.ok_or_else(|| unreadable(claim, "the claim of a record"))?);
            }
        }
        Ok(())
    }

    async fn dataset_merge(
        &self,
        merge: &MergeRequest<'_>,
        wanted: &mut [InputsGroup],
    ) -> Result<MergeRecordsResponse> {
        let mut done = 0;
        let mut count = MergeRecordsResponse::default();
        let mut attempts = self.table.attempts("an evaluation dataset");
        loop {
            attempts.next().await?;
            let item = self.table.get(&rows::EvaluationDataset::key(merge.id)).await?;
            let item = item.ok_or_else(|| no_dataset(merge.id.as_str()))?;
            let mut new_schema = self.dataset_new_schema(merge, &item).await?;
            let mut groups = VecDeque::new();
            loop {
                if groups.is_empty() {
                    groups.extend(self.dataset_plan(merge, wanted.get(done..).unwrap_or_default()).await?);
                }
                let Some(group) = groups.pop_front() else { return Ok(count) };
                let (of_group, merged) = (group.merged_inputs, group.count);
                if !self.dataset_write(merge, group, &item, new_schema.take()).await? {
                    break;
                }
                attempts.progressed();
                done += of_group;
                count.inserted_count += merged.inserted_count;
                count.updated_count += merged.updated_count;
            }
            // The transaction failed because another request merges records concurrently, so the
            // claims of the remaining records are read again.
            let rest = wanted.get_mut(done..).unwrap_or_default();
            let next = rest.len().min(BATCH_SIZE);
            self.dataset_find_known(merge, rest.get_mut(..next).unwrap_or_default()).await?;
        }
    }

    /// Writes the records of one transaction. Returns `false` if an item has changed since the
    /// transaction was planned.
    async fn dataset_write(
        &self,
        merge: &MergeRequest<'_>,
        mut group: MergeTransaction,
        item: &Item,
        new_schema: Option<NewSchema>,
    ) -> Result<bool> {
        let update = merge.update(item, new_schema.as_ref());
        let update = if group.new > 0 {
            update.add(RECORDS, number(i64::try_from(group.new).unwrap_or_default()))
        } else {
            update
        };
        group.writes.push(Write::Update(update));
        if let Some(schema) = new_schema {
            group.parts.extend(schema.packed.parts);
            group.stale.extend(schema.stale);
        }
        let parts: Vec<_> = group.parts.iter().filter_map(Item::key).collect();
        self.table.write_many(group.parts, &[]).await?;
        match self.table.transact(&group.writes).await {
            Ok(()) => {
                self.table.write_many(Vec::new(), &group.stale).await?;
                Ok(true)
            }
            Err(Failure::Cancelled(reasons)) => {
                // The transaction failed, so its parts will never be referenced, and are deleted.
                self.table.write_many(Vec::new(), &parts).await?;
                let is_gone = matches!(reasons.last(), Some(WriteRefusal::Refused(None)));
                if is_gone { Err(no_dataset(merge.id.as_str())) } else { Ok(false) }
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Returns the new schema, if the records change it. Takes no request unless the schema is
    /// large.
    async fn dataset_new_schema(&self, merge: &MergeRequest<'_>, item: &Item) -> Result<Option<NewSchema>> {
        let found = self.dataset_schema(merge.id, item).await?;
        let (item, before) = found.map_or((None, None), |(item, schema)| (Some(item), Some(schema)));
        let after = schema::updated_schema(before.as_deref(), merge.sent);
        let Some(after) = after.filter(|after| before.as_ref() != Some(after)) else { return Ok(None) };
        let packed = content::pack_once("schema", &after, content::MAX_INLINE_BYTES, part_key(merge.id));
        let stale = item.iter().flat_map(|item| content::part_keys(item, part_key(merge.id))).collect();
        Ok(Some(NewSchema { packed, stale, version: item.and_then(|item| item.get(SCHEMA_VERSION)) }))
    }
}
