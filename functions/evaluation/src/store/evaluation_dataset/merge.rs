//! Merging records into an evaluation dataset.
//!
//! A record is known by the hash of its inputs, which a row of its own claims. A new record is
//! written together with its claim, a known one on condition that it is as it was read. Each
//! transaction also changes the dataset. So the number of records is exact, and none is written
//! into a dataset that is gone.

use documents::content;
use std::collections::VecDeque;

use entities::attributes::{RECORD, RECORDS, SCHEMA_VERSION};
use entities::{now_ms, unreadable};
use key_schema::rows;
use mlflow_api::evaluation_datasets::MergedRecords;
use mlflow_api::{Error, ErrorCode, EvaluationDatasetId, Json, Result};
use table::{Failure, Item, Reason, Write, number};

use super::item::{AskedDataset, part_key};
use super::merge_plan::{Group, PORTION};
use super::merge_request::{Merge, NewSchema, Wanted};
use super::record::SentRecord;
use super::schema;
use crate::store::Store;

/// Refuses JSON that is no list of records.
fn read(records: Json) -> Result<Vec<SentRecord>> {
    match records {
        Json::List(records) => records.into_iter().map(SentRecord::read).collect(),
        // Python runs through these as through empty lists.
        Json::Object(_) | Json::Text(_) if !records.is_true() => Ok(Vec::new()),
        other => Err(Error::invalid(format!("The records must be a JSON array, got {}.", other.type_name()))),
    }
}

/// MLflow lets the database complain about records of a dataset that is not there.
fn no_dataset(id: &str) -> Error {
    Error::new(ErrorCode::BadRequest, EvaluationDatasetId::not_found(id).message)
}

impl Store {
    /// Merges records, a JSON array, into an evaluation dataset. Two requests, one more per hundred records, one per 49 that are
    /// new and two per 99 that are not; four write units for each new one of less than a KB, two for each of the others.
    pub async fn dataset_merge_records(&self, id: &AskedDataset, records: Json) -> Result<MergedRecords> {
        let sent = read(records)?;
        let dataset = match id.dataset.as_deref().cloned() {
            None if sent.is_empty() => return Ok(MergedRecords::default()),
            None => return Err(no_dataset(&id.text)),
            Some(dataset) => dataset,
        };
        let user = sent.iter().fold(None, |user, record| record.user.after(user));
        let merge = Merge { id: &dataset, now: now_ms(), user, sent: &sent };
        if sent.is_empty() {
            let count = MergedRecords::default();
            let Some(item) = self.table.get(&rows::EvaluationDataset::key(&dataset)).await? else { return Ok(count) };
            match self.table.update(&merge.update(&item, None)).await {
                Ok(_) | Err(Failure::Refused { .. }) => return Ok(count),
                Err(failure) => return Err(failure.into()),
            }
        }
        let mut wanted = merge.wanted();
        self.dataset_look_up(&merge, &mut wanted).await?;
        // If a request is cut off and sent again, it goes on with the records that it did not write
        // yet.
        wanted.sort_by_key(|wanted| wanted.known.is_some());
        self.dataset_merge(&merge, &mut wanted).await
    }

    /// Reads which of the inputs are known. One request per hundred.
    async fn dataset_look_up(&self, merge: &Merge<'_>, wanted: &mut [Wanted]) -> Result<()> {
        for portion in wanted.chunks_mut(PORTION) {
            let key = |wanted: &Wanted| rows::EvaluationInputs::key(merge.id, &wanted.inputs);
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

    async fn dataset_merge(&self, merge: &Merge<'_>, wanted: &mut [Wanted]) -> Result<MergedRecords> {
        let mut done = 0;
        let mut count = MergedRecords::default();
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
                let (of_group, merged) = (group.wanted, group.count);
                if !self.dataset_write(merge, group, &item, new_schema.take()).await? {
                    break;
                }
                attempts.progressed();
                done += of_group;
                count.inserted_count += merged.inserted_count;
                count.updated_count += merged.updated_count;
            }
            // Somebody else merges, too.
            let rest = wanted.get_mut(done..).unwrap_or_default();
            let next = rest.len().min(PORTION);
            self.dataset_look_up(merge, rest.get_mut(..next).unwrap_or_default()).await?;
        }
    }

    /// Writes a group; false, where something is not as it was when it was planned.
    async fn dataset_write(
        &self,
        merge: &Merge<'_>,
        mut group: Group,
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
                // Nothing will ever name them.
                self.table.write_many(Vec::new(), &parts).await?;
                let is_gone = matches!(reasons.last(), Some(Reason::Refused(None)));
                if is_gone { Err(no_dataset(merge.id.as_str())) } else { Ok(false) }
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// The schema, if the records change it. No request unless it is big.
    async fn dataset_new_schema(&self, merge: &Merge<'_>, item: &Item) -> Result<Option<NewSchema>> {
        let found = self.dataset_schema(merge.id, item).await?;
        let (item, before) = found.map_or((None, None), |(item, schema)| (Some(item), Some(schema)));
        let after = schema::updated(before.as_deref(), merge.sent);
        let Some(after) = after.filter(|after| before.as_ref() != Some(after)) else { return Ok(None) };
        let packed = content::pack_once("schema", &after, content::INLINE, part_key(merge.id));
        let stale = item.iter().flat_map(|item| content::part_keys(item, part_key(merge.id))).collect();
        Ok(Some(NewSchema { packed, stale, version: item.and_then(|item| item.get(SCHEMA_VERSION)) }))
    }
}
