//! Merging records into an evaluation dataset.
//!
//! A record is known by the hash of its inputs, which a row of its own claims. A new record is written together with its claim, a
//! known one on condition that it is what was read. Each transaction also changes the dataset: so the number of records is exact,
//! and none is written into a dataset that is gone.

use std::collections::{HashMap, HashSet, VecDeque};

use content::Packed;
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

/// Records whose claims are read, or that are planned, at a time.
const PORTION: usize = 2_000;
/// Bytes of the contents of known records that are read at a time.
const CONTENT_BYTES: usize = 64 << 20;
/// Bytes of items in one transaction, of which DynamoDB takes 4 MB.
const TRANSACTION_BYTES: usize = 3 << 20;

/// What a request says of the record with certain inputs.
struct Wanted {
    inputs: WideDigest,
    /// The record that has them, as far as was read.
    known: Option<DatasetRecordId>,
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
        // A request that is cut off, and sent again, goes on with what it did not write yet.
        wanted.sort_by_key(|wanted| wanted.known.is_some());
        self.dataset_merge(&merge, &mut wanted).await
    }

    /// Reads which of the inputs are known. One request per hundred.
    async fn dataset_look_up(&self, merge: &Merge<'_>, wanted: &mut [Wanted]) -> Result<()> {
        for portion in wanted.chunks_mut(PORTION) {
            let key = |wanted: &Wanted| rows::EvaluationInputs::key(merge.id, &wanted.inputs);
            let claims = self.table.get_many(&portion.iter().map(key).collect::<Vec<_>>()).await?;
            for wanted in portion {
                let record = claims.get(&key(wanted)).and_then(|claim| claim.text(RECORD));
                wanted.known = record.and_then(DatasetRecordId::parse);
            }
        }
        Ok(())
    }

    async fn dataset_merge(&self, merge: &Merge<'_>, wanted: &mut [Wanted]) -> Result<MergedRecords> {
        let mut done = 0;
        let mut count = MergedRecords::default();
        let mut attempt = 0;
        while attempt < self.table.retry().attempts {
            self.table.retry().pause(attempt).await;
            attempt += 1;
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
                attempt = 0;
                done += of_group;
                count.inserted_count += merged.inserted_count;
                count.updated_count += merged.updated_count;
            }
            // Somebody else merges, too.
            let rest = wanted.get_mut(done..).unwrap_or_default();
            let next = rest.len().min(PORTION);
            self.dataset_look_up(merge, rest.get_mut(..next).unwrap_or_default()).await?;
        }
        Err(Error::unavailable("an evaluation dataset kept changing"))
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
        Ok(Some(NewSchema { packed, stale, version: item.and_then(|item| item.number(SCHEMA_VERSION)) }))
    }

    /// Plans writes for the first of the wanted records: reads those that are known, as many as one transaction takes, and of as
    /// many bytes as there is room for.
    async fn dataset_plan(&self, merge: &Merge<'_>, wanted: &[Wanted]) -> Result<Vec<Group>> {
        let claim_key = |wanted: &Wanted| rows::EvaluationInputs::key(merge.id, &wanted.inputs);
        let key = |wanted: &Wanted| Some(rows::EvaluationRecord::key(merge.id, wanted.known.as_ref()?));
        let wanted = portion(wanted);
        let mut records = self.table.get_many(&wanted.iter().filter_map(key).collect::<Vec<_>>()).await?;
        let size = |wanted: &Wanted| key(wanted).and_then(|key| records.get(&key)).map_or(0, content::size);
        let wanted = wanted.get(..fitting(wanted.iter().map(size))).unwrap_or_default();
        records.retain({
            let kept: HashSet<_> = wanted.iter().filter_map(key).collect();
            move |key, _| kept.contains(key)
        });
        let part_keys: Vec<_> =
            records.values().flat_map(|record| content::part_keys(record, part_key(merge.id))).collect();
        let parts = self.table.get_many(&part_keys).await?;

        let mut groups: Vec<Group> = Vec::new();
        for one in wanted {
            let (writes, packed, stale, is_new) = match key(one) {
                None => {
                    let (item, packed) = merge.new_record(one);
                    let claim = Item::new(claim_key(one)).with(RECORD, text(one.record.as_str()));
                    let put = |item| Write::Put(item, Condition::item_missing());
                    (vec![put(item), put(claim)], packed, Vec::new(), true)
                }
                Some(key) => match self.dataset_known_record(merge, records.remove(&key), &parts).await? {
                    // It was deleted between the two reads: the transaction fails, and the claim is read again.
                    None => (vec![Write::Check(key, Condition::item_exists())], None, Vec::new(), false),
                    Some((record, content)) => {
                        let (item, condition, packed, stale) = merge.changed_record(one, &record, content);
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

    /// A record that was read, or as it is now, and its content; `None` where it is gone.
    async fn dataset_known_record(
        &self,
        merge: &Merge<'_>,
        record: Option<Item>,
        parts: &HashMap<Key, Item>,
    ) -> Result<Option<(Item, Content)>> {
        let Some(record) = record else { return Ok(None) };
        let part_keys = content::part_keys(&record, part_key(merge.id));
        let found = match content::unpack(&record, &part_keys, parts) {
            None => content::read_with_item(&self.table, record, part_key(merge.id)).await?,
            Some(content) => Some((record, content)),
        };
        let Some((record, content)) = found else { return Ok(None) };
        let content = Content::parse(&content).ok_or_else(|| Error::internal("a record is no JSON object"))?;
        Ok(Some((record, content)))
    }
}

/// The first of the wanted records, of which one transaction takes all that are known.
fn portion(wanted: &[Wanted]) -> &[Wanted] {
    let known = wanted.iter().enumerate().filter(|(_, wanted)| wanted.known.is_some());
    let too_many = known.map(|(place, _)| place).nth(TRANSACTION - 1);
    let portion = too_many.unwrap_or(wanted.len()).min(PORTION);
    wanted.get(..portion).unwrap_or_default()
}

/// How many contents of these sizes are read at a time: at least one.
fn fitting(sizes: impl Iterator<Item = usize>) -> usize {
    let mut bytes = 0_usize;
    sizes
        .enumerate()
        .take_while(|(place, size)| {
            bytes = bytes.saturating_add(*size);
            *place == 0 || bytes <= CONTENT_BYTES
        })
        .count()
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
            let id = DatasetRecordId::new(self.now, random);
            wanted.push(Wanted { inputs, known: None, record: id, sent: vec![record.clone()] });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_contents_are_read_as_there_is_room_for() {
        assert_eq!(fitting([].into_iter()), 0);
        assert_eq!(fitting([0, 0, 5].into_iter()), 3);
        assert_eq!(fitting([CONTENT_BYTES - 1, 1, 0, 1, 0].into_iter()), 3);
        assert_eq!(fitting([CONTENT_BYTES + 1, 0].into_iter()), 1);
        assert_eq!(fitting([usize::MAX, usize::MAX].into_iter()), 1);
    }

    #[test]
    fn a_portion_has_as_many_known_records_as_a_transaction() {
        let wanted = |new: usize, known: usize| -> Vec<Wanted> {
            let id = DatasetRecordId::new(1, 1);
            let claimed = |place| (place >= new).then(|| id.clone());
            let wanted =
                |place| Wanted { inputs: WideDigest(0), known: claimed(place), record: id.clone(), sent: vec![] };
            (0..new + known).map(wanted).collect()
        };
        for (new, known, expected) in [
            (0, 0, 0),
            (0, 99, 99),
            (0, 100, 99),
            (10, 98, 108),
            (10, 500, 109),
            (PORTION - 1, 5, PORTION),
            (5_000, 0, PORTION),
        ] {
            assert_eq!(portion(&wanted(new, known)).len(), expected, "{new} {known}");
        }
    }
}
