//! Merging records into an evaluation dataset.
//!
//! A record is known by the hash of its inputs, which a row of its own claims. A new record is written together with its claim, a
//! known one on condition that it is what was read. Each transaction also changes the dataset: so the number of records is exact,
//! and none is written into a dataset that is gone.

use std::collections::HashMap;

use entities::attributes::{
    CREATED_BY, DIGEST, INPUTS, NAME, RECORD, RECORDS, SCHEMA_VERSION, UPDATED, UPDATED_BY, VERSION,
};
use entities::now_ms;
use key_schema::definition::{PK, SK};
use key_schema::{Key, Segment, WideDigest, rows};
use mlflow_api::evaluation_datasets::MergedRecords;
use mlflow_api::{DatasetRecordId, Error, ErrorCode, EvaluationDatasetId, Json, Result};
use rand::RngExt;
use table::{Condition, Failure, Item, Reason, Update, Write, number, text};

use super::record::{Content, SentRecord};
use super::{Store, TRANSACTION, digest, part_key, schema, unchanged};
use crate::store::content::{self, Packed};

/// Records whose claims are read at a time.
const PORTION: usize = 2_000;
/// Bytes of items in one transaction, of which DynamoDB takes 4 MB.
const TRANSACTION_BYTES: usize = 3 << 20;

/// What a request says of the record with certain inputs.
struct Wanted {
    inputs: WideDigest,
    /// The id it gets, if it is new.
    record: DatasetRecordId,
    /// What was sent, in the order of the request; at least one.
    sent: Vec<SentRecord>,
}

/// Writes that go into one transaction, for as many of the wanted records as it says.
#[derive(Default)]
struct Group {
    writes: Vec<Write>,
    bytes: usize,
    /// Parts of big records, written before.
    parts: Vec<Item>,
    /// Parts that nothing names any more, deleted after.
    stale: Vec<Key>,
    wanted: usize,
    new: usize,
    count: MergedRecords,
}

/// What every transaction of a request does to the dataset.
struct Merge<'a> {
    id: &'a EvaluationDatasetId,
    /// In ms; of the whole request.
    now: i64,
    /// Whose records these are, as the tags of the last that has any say.
    user: Option<String>,
    sent: &'a [SentRecord],
}

/// Refuses what is no list of records.
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
    pub async fn dataset_merge_records(&self, id: &str, records: Json) -> Result<MergedRecords> {
        let sent = read(records)?;
        let dataset = match EvaluationDatasetId::parse(id) {
            None if sent.is_empty() => return Ok(MergedRecords::default()),
            None => return Err(no_dataset(id)),
            Some(dataset) => dataset,
        };
        let user = sent.iter().fold(None, |user, record| record.user.after(user));
        let merge = Merge { id: &dataset, now: now_ms(), user, sent: &sent };
        let mut count = MergedRecords::default();
        if sent.is_empty() {
            let Some(item) = self.table.get(&rows::EvaluationDataset::key(&dataset)).await? else { return Ok(count) };
            match self.table.update(&merge.update(&item, None)).await {
                Ok(_) | Err(Failure::Refused { .. }) => return Ok(count),
                Err(failure) => return Err(failure.into()),
            }
        }
        let mut wanted = merge.wanted();
        while !wanted.is_empty() {
            let portion: Vec<_> = wanted.drain(..wanted.len().min(PORTION)).collect();
            let merged = self.dataset_merge_portion(&merge, portion).await?;
            count.inserted_count += merged.inserted_count;
            count.updated_count += merged.updated_count;
        }
        Ok(count)
    }

    async fn dataset_merge_portion(&self, merge: &Merge<'_>, wanted: Vec<Wanted>) -> Result<MergedRecords> {
        let mut rest = wanted.as_slice();
        let mut count = MergedRecords::default();
        let mut attempt = 0;
        while attempt < self.table.retry().attempts {
            self.table.retry().pause(attempt).await;
            attempt += 1;
            let item = self.table.get(&rows::EvaluationDataset::key(merge.id)).await?;
            let item = item.ok_or_else(|| no_dataset(merge.id.as_str()))?;
            let mut new_schema = self.dataset_new_schema(merge, &item).await?;
            for mut group in self.dataset_plan(merge, rest).await? {
                let update = merge.update(&item, new_schema.as_ref());
                let update = if group.new > 0 {
                    update.add(RECORDS, number(i64::try_from(group.new).unwrap_or_default()))
                } else {
                    update
                };
                group.writes.push(Write::Update(update));
                if let Some(schema) = &new_schema {
                    group.parts.extend(schema.packed.parts.iter().cloned());
                    group.stale.extend(schema.stale.iter().cloned());
                }
                let parts: Vec<_> = group.parts.iter().filter_map(Item::key).collect();
                self.table.write_many(group.parts, &[]).await?;
                match self.table.transact(&group.writes).await {
                    Ok(()) => {}
                    Err(Failure::Cancelled(reasons)) => {
                        // Nothing will ever name them.
                        self.table.write_many(Vec::new(), &parts).await?;
                        if matches!(reasons.last(), Some(Reason::Refused(None))) {
                            return Err(no_dataset(merge.id.as_str()));
                        }
                        // Somebody else merges, too.
                        break;
                    }
                    Err(failure) => return Err(failure.into()),
                }
                attempt = 0;
                new_schema = None;
                rest = rest.get(group.wanted..).unwrap_or_default();
                count.inserted_count += group.count.inserted_count;
                count.updated_count += group.count.updated_count;
                self.table.write_many(Vec::new(), &group.stale).await?;
            }
            if rest.is_empty() {
                return Ok(count);
            }
        }
        Err(Error::unavailable("an evaluation dataset kept changing"))
    }

    /// The schema, if the records change it. No request unless it is big.
    async fn dataset_new_schema(&self, merge: &Merge<'_>, item: &Item) -> Result<Option<NewSchema>> {
        let before = self.dataset_schema(merge.id, item).await?;
        let after = schema::updated(before.as_deref(), merge.sent);
        let Some(after) = after.filter(|after| before.as_ref() != Some(after)) else { return Ok(None) };
        let packed = content::pack_once("schema", &after, content::INLINE, part_key(merge.id));
        let stale = content::part_keys(item, part_key(merge.id));
        Ok(Some(NewSchema { packed, stale, version: item.number(SCHEMA_VERSION) }))
    }

    /// Plans the writes: reads which inputs are known, and the records that have them.
    async fn dataset_plan(&self, merge: &Merge<'_>, wanted: &[Wanted]) -> Result<Vec<Group>> {
        let claim_key = |wanted: &Wanted| rows::EvaluationInputs::key(merge.id, &wanted.inputs);
        let claims = self.table.get_many(&wanted.iter().map(claim_key).collect::<Vec<_>>()).await?;
        let record_of = |wanted: &Wanted| {
            let claim = claims.get(&claim_key(wanted))?;
            claim.text(RECORD).and_then(DatasetRecordId::parse).map(|id| rows::EvaluationRecord::key(merge.id, &id))
        };
        let records = self.table.get_many(&wanted.iter().filter_map(record_of).collect::<Vec<_>>()).await?;
        let part_keys: Vec<_> =
            records.values().flat_map(|record| content::part_keys(record, part_key(merge.id))).collect();
        let parts = self.table.get_many(&part_keys).await?;

        let mut groups = vec![Group::default()];
        for one in wanted {
            let (writes, packed, stale, is_new) = match record_of(one) {
                None => {
                    let (item, packed) = merge.new_record(one);
                    let claim = Item::new(claim_key(one)).with(RECORD, text(one.record.as_str()));
                    let put = |item| Write::Put(item, Condition::item_missing());
                    (vec![put(item), put(claim)], packed, Vec::new(), true)
                }
                Some(key) => match self.dataset_known_record(merge, records.get(&key), &parts).await? {
                    // It was deleted between the two reads: the transaction fails, and the claim is read again.
                    None => (vec![Write::Check(key, Condition::item_exists())], None, Vec::new(), false),
                    Some((record, content)) => {
                        let (item, condition, packed, stale) = merge.changed_record(one, record, content);
                        (vec![Write::Put(item, condition)], Some(packed), stale, false)
                    }
                },
            };
            let bytes = writes.iter().map(bytes_of).sum::<usize>();
            // One place is the dataset's.
            let is_full = |group: &Group| {
                group.writes.len() + writes.len() >= TRANSACTION || group.bytes + bytes > TRANSACTION_BYTES
            };
            if groups.last().is_none_or(|group| !group.writes.is_empty() && is_full(group)) {
                groups.push(Group::default());
            }
            let Some(group) = groups.last_mut() else { continue };
            group.writes.extend(writes);
            group.bytes += bytes;
            group.parts.extend(packed.map(|packed| packed.parts).unwrap_or_default());
            group.stale.extend(stale);
            group.wanted += 1;
            group.new += usize::from(is_new);
            group.count.inserted_count += usize::from(is_new);
            group.count.updated_count += one.sent.len() - usize::from(is_new);
        }
        Ok(groups)
    }

    /// A record that was read, and its content; `None` where it is gone.
    async fn dataset_known_record<'a>(
        &self,
        merge: &Merge<'_>,
        record: Option<&'a Item>,
        parts: &HashMap<Key, Item>,
    ) -> Result<Option<(&'a Item, Content)>> {
        let Some(record) = record else { return Ok(None) };
        let part_keys = content::part_keys(record, part_key(merge.id));
        let content = match content::unpack(record, &part_keys, parts) {
            None => self.content(record, part_key(merge.id)).await?,
            content => content,
        };
        let Some(content) = content else { return Ok(None) };
        let content = Content::parse(&content).ok_or_else(|| Error::internal("a record is no JSON object"))?;
        Ok(Some((record, content)))
    }
}

fn bytes_of(write: &Write) -> usize {
    if let Write::Put(item, _) = write { item.size() } else { 0 }
}

/// A schema to be written.
struct NewSchema {
    packed: Packed,
    /// The parts of the one before.
    stale: Vec<Key>,
    /// The version of the one before.
    version: Option<i64>,
}

impl Merge<'_> {
    /// The records by their inputs, in the order of the request.
    fn wanted(&self) -> Vec<Wanted> {
        let mut wanted: Vec<Wanted> = Vec::new();
        let mut places: HashMap<WideDigest, usize> = HashMap::new();
        let chance: u64 = rand::rng().random();
        for record in self.sent {
            let inputs = record.inputs_hash();
            if let Some(known) = places.get(&inputs).and_then(|place| wanted.get_mut(*place)) {
                known.sent.push(record.clone());
                continue;
            }
            let place = wanted.len();
            places.insert(inputs, place);
            // Records of one request keep its order: 32 bits of place, then 48 of chance.
            let random = ((place as u128) << 48) | u128::from(chance >> 16);
            wanted.push(Wanted { inputs, record: DatasetRecordId::new(self.now, random), sent: vec![record.clone()] });
        }
        wanted
    }

    /// What a transaction changes of the dataset, the number of its records aside.
    fn update(&self, item: &Item, new_schema: Option<&NewSchema>) -> Update {
        let name = item.text(NAME).unwrap_or_default();
        let update = Update::new(rows::EvaluationDataset::key(self.id))
            .set(UPDATED, number(self.now))
            .set(DIGEST, text(digest(name, self.now)));
        let update = match &self.user {
            Some(user) => update.set(UPDATED_BY, text(user)),
            None => update.remove(UPDATED_BY),
        };
        let Some(schema) = new_schema else { return update };
        let unchanged = match schema.version {
            None => Condition::Missing(SCHEMA_VERSION.into()),
            Some(version) => Condition::Equals(SCHEMA_VERSION.into(), number(version)),
        };
        let version = schema.version.unwrap_or_default() + 1;
        schema.packed.set_by(update).set(SCHEMA_VERSION, number(version)).only_if(unchanged)
    }

    /// The item of a new record, and its content if that has parts.
    fn new_record(&self, wanted: &Wanted) -> (Item, Option<Packed>) {
        let item = Item::new(rows::EvaluationRecord::key(self.id, &wanted.record));
        let Some((first, others)) = wanted.sent.split_first() else { return (item, None) };
        let mut content = Content::new(first);
        let creator = first.user.after(None);
        let mut updater = creator.clone();
        for sent in others {
            content.merge(sent);
            updater = sent.user.after(updater);
        }
        let packed = content::pack_once(wanted.record.as_str(), &content.print(), content::INLINE, part_key(self.id));
        let mut digits = String::new();
        wanted.inputs.write(&mut digits);
        let item = packed.on(item).with(INPUTS, text(digits)).with(UPDATED, number(self.now));
        let item = creator.into_iter().fold(item, |item, user| item.with(CREATED_BY, text(user)));
        (with_updater(item, updater), Some(packed))
    }

    /// The item of a record that was there, the condition that it is still what was read, its content, and the parts of
    /// the one before.
    fn changed_record(
        &self,
        wanted: &Wanted,
        record: &Item,
        mut content: Content,
    ) -> (Item, Condition, Packed, Vec<Key>) {
        let mut updater = record.text(UPDATED_BY).map(str::to_owned);
        for sent in &wanted.sent {
            content.merge(sent);
            updater = sent.user.after(updater);
        }
        let id = record.key().map(|key| key.sk).unwrap_or_default();
        let packed = content::pack_once(&id, &content.print(), content::INLINE, part_key(self.id));
        let kept = [PK, SK, INPUTS, CREATED_BY];
        let attributes = record.0.iter().filter(|(name, _)| kept.contains(&name.as_str()));
        let item = Item(attributes.map(|(name, value)| (name.clone(), value.clone())).collect())
            .with(UPDATED, number(self.now))
            .with(VERSION, number(record.number(VERSION).unwrap_or_default() + 1));
        let item = with_updater(packed.on(item), updater);
        let stale = content::part_keys(record, part_key(self.id));
        (item, unchanged(record), packed, stale)
    }
}

fn with_updater(item: Item, updater: Option<String>) -> Item {
    updater.into_iter().fold(item, |item, user| item.with(UPDATED_BY, text(user)))
}
