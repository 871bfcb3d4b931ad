//! The plan of a merge: which records each transaction writes, and the writes themselves.

use std::collections::{HashMap, HashSet};

use entities::attributes::{CHANGES, CREATED_BY, INPUTS, UPDATED, UPDATED_BY};
use entities::documents::content::{self, PackedContent};
use key_schema::definition::{PK, SK};
use key_schema::{Key, rows};
use mlflow_api::evaluation_datasets::MergeRecordsResponse;
use mlflow_api::{Error, Result};
use table::{Condition, Item, Write, number, text};

use super::dataset_item::{MAX_TRANSACTION_WRITES, part_key, unchanged};
use super::items::StoredRecord;
use super::merge_request::{InputsGroup, MergeRequest};
use super::record_content::RecordContent;
use crate::store::Store;

/// Batch size for reading the claims of records by their inputs, and for planning records.
pub(super) const BATCH_SIZE: usize = 2_000;
/// Maximum number of bytes of known records' contents that are read at once.
const MAX_CONTENT_BYTES: usize = 64 << 20;
/// Maximum number of bytes of items that are put into one transaction. DynamoDB allows 4 MB.
const MAX_TRANSACTION_BYTES: usize = 3 << 20;

/// The writes of one transaction of a merge, and the numbers of records that they cover.
#[derive(Default)]
pub(super) struct MergeTransaction {
    pub(super) writes: Vec<Write>,
    pub(super) bytes: usize,
    /// Parts of large records, to be written before the transaction.
    pub(super) parts: Vec<Item>,
    /// Parts that are no longer referenced, to be deleted after the transaction.
    pub(super) stale: Vec<Key>,
    pub(super) merged_inputs: usize,
    pub(super) new: usize,
    pub(super) count: MergeRecordsResponse,
}

impl Store {
    /// Plans the next transactions, for the first of the wanted records. Reads those of these
    /// records that exist already, as long as their contents do not exceed `MAX_CONTENT_BYTES`.
    pub(super) async fn dataset_plan(
        &self,
        merge: &MergeRequest<'_>,
        wanted: &[InputsGroup],
    ) -> Result<Vec<MergeTransaction>> {
        let key = |wanted: &InputsGroup| Some(rows::EvaluationRecord::key(merge.id, wanted.known.as_ref()?));
        let wanted = transaction_records(wanted);
        let mut records = self.table.get_many(&wanted.iter().filter_map(key).collect::<Vec<_>>()).await?;
        let size = |wanted: &InputsGroup| key(wanted).and_then(|key| records.get(&key)).map_or(0, content::size);
        let wanted = wanted.get(..count_fitting(wanted.iter().map(size))).unwrap_or_default();
        records.retain({
            let kept: HashSet<_> = wanted.iter().filter_map(key).collect();
            move |key, _| kept.contains(key)
        });
        let part_keys: Vec<_> =
            records.values().flat_map(|record| content::part_keys(record, part_key(merge.id))).collect();
        let parts = self.table.get_many(&part_keys).await?;

        let mut groups: Vec<MergeTransaction> = Vec::new();
        for one in wanted {
            let (writes, packed, stale, is_new) = match key(one) {
                None => {
                    let Some((item, claim, packed)) = merge.new_record(one) else { continue };
                    let put = |item| Write::Put(item, Condition::item_missing());
                    (vec![put(item), put(claim)], Some(packed), Vec::new(), true)
                }
                Some(key) => match self.dataset_known_record(merge, records.remove(&key), &parts).await? {
                    // The record was deleted after its claim was read. This check makes the
                    // transaction fail, after which the claim is read again.
                    None => (vec![Write::Check(key, Condition::item_exists())], None, Vec::new(), false),
                    Some((record, content)) => {
                        let (item, condition, packed, stale) = merge.changed_record(one, &record, content);
                        (vec![Write::Put(item, condition)], Some(packed), stale, false)
                    }
                },
            };
            let bytes = writes.iter().map(bytes_of).sum::<usize>();
            // The limits leave room for one more write in the transaction, which updates the
            // dataset.
            let is_full = |group: &MergeTransaction| {
                group.writes.len() + writes.len() >= MAX_TRANSACTION_WRITES
                    || group.bytes + bytes > MAX_TRANSACTION_BYTES
            };
            if groups.last().is_none_or(|group| !group.writes.is_empty() && is_full(group)) {
                groups.push(MergeTransaction::default());
            }
            let Some(group) = groups.last_mut() else { continue };
            group.writes.extend(writes);
            group.bytes += bytes;
            group.parts.extend(packed.map(|packed| packed.parts).unwrap_or_default());
            group.stale.extend(stale);
            group.merged_inputs += 1;
            group.new += usize::from(is_new);
            group.count.inserted_count += usize::from(is_new);
            group.count.updated_count += one.sent.len() - usize::from(is_new);
        }
        Ok(groups)
    }

    /// Returns a record and its content, or `None` if it was deleted. If the record has changed
    /// since its item was read, returns the current version.
    async fn dataset_known_record(
        &self,
        merge: &MergeRequest<'_>,
        record: Option<Item>,
        parts: &HashMap<Key, Item>,
    ) -> Result<Option<(Item, RecordContent)>> {
        let Some(record) = record else { return Ok(None) };
        let part_keys = content::part_keys(&record, part_key(merge.id));
        let found = match content::unpack(&record, &part_keys, parts) {
            None => content::read_with_item(&self.table, record, part_key(merge.id)).await?,
            Some(content) => Some((record, content)),
        };
        let Some((record, content)) = found else { return Ok(None) };
        let content = RecordContent::parse(&content).ok_or_else(|| Error::internal("a record is no JSON object"))?;
        Ok(Some((record, content)))
    }
}

/// Returns the first of the wanted records, for which the next transactions are planned: up to
/// `BATCH_SIZE` records, including no more existing ones than one transaction can write.
fn transaction_records(wanted: &[InputsGroup]) -> &[InputsGroup] {
    let known = wanted.iter().enumerate().filter(|(_, wanted)| wanted.known.is_some());
    let too_many = known.map(|(place, _)| place).nth(MAX_TRANSACTION_WRITES - 1);
    let portion = too_many.unwrap_or(wanted.len()).min(BATCH_SIZE);
    wanted.get(..portion).unwrap_or_default()
}

/// Returns how many contents to read at once, given the size of each. Returns at least one.
fn count_fitting(sizes: impl Iterator<Item = usize>) -> usize {
    let mut bytes = 0_usize;
    sizes
        .enumerate()
        .take_while(|(place, size)| {
            bytes = bytes.saturating_add(*size);
            *place == 0 || bytes <= MAX_CONTENT_BYTES
        })
        .count()
}

fn bytes_of(write: &Write) -> usize {
    if let Write::Put(item, _) = write { item.size() } else { 0 }
}

impl MergeRequest<'_> {
    /// Returns the item of a new record, the item that claims its inputs, and its packed content.
    /// Returns `None` for a group without records, which does not occur.
    fn new_record(&self, wanted: &InputsGroup) -> Option<(Item, Item, PackedContent)> {
        let (first, others) = wanted.sent.split_first()?;
        let mut content = RecordContent::new(first);
        let creator = first.user.after(None);
        let mut updater = creator.clone();
        for sent in others {
            content.merge(sent);
            updater = sent.user.after(updater);
        }
        let packed =
            content::pack_once(wanted.record.as_str(), &content.print(), content::MAX_INLINE_BYTES, part_key(self.id));
        let stored = StoredRecord {
            dataset: self.id,
            id: &wanted.record,
            inputs: wanted.inputs,
            packed: &packed,
            updated: self.now,
            created_by: creator.as_deref(),
            updated_by: updater.as_deref(),
        };
        let (item, claim) = stored.items();
        Some((item, claim, packed))
    }

    /// Returns the new item of an existing record, the condition that the record has not changed
    /// since it was read, the new content, and the parts of the previous content.
    fn changed_record(
        &self,
        wanted: &InputsGroup,
        record: &Item,
        mut content: RecordContent,
    ) -> (Item, Condition, PackedContent, Vec<Key>) {
        let mut updater = record.get(UPDATED_BY).map(str::to_owned);
        for sent in &wanted.sent {
            content.merge(sent);
            updater = sent.user.after(updater);
        }
        let id = record.key().map(|key| key.sk).unwrap_or_default();
        let packed = content::pack_once(&id, &content.print(), content::MAX_INLINE_BYTES, part_key(self.id));
        let kept = [PK, SK, INPUTS.name(), CREATED_BY.name()];
        let attributes = record.0.iter().filter(|(name, _)| kept.contains(&name.as_str()));
        let item = Item(attributes.map(|(name, value)| (name.clone(), value.clone())).collect())
            .with(UPDATED, number(self.now))
            .with(CHANGES, number(record.get(CHANGES).unwrap_or_default() + 1));
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
    use key_schema::WideDigest;
    use mlflow_api::DatasetRecordId;

    use super::*;

    #[test]
    fn as_many_contents_are_read_as_there_is_room_for() {
        assert_eq!(count_fitting([].into_iter()), 0);
        assert_eq!(count_fitting([0, 0, 5].into_iter()), 3);
        assert_eq!(count_fitting([MAX_CONTENT_BYTES - 1, 1, 0, 1, 0].into_iter()), 3);
        assert_eq!(count_fitting([MAX_CONTENT_BYTES + 1, 0].into_iter()), 1);
        assert_eq!(count_fitting([usize::MAX, usize::MAX].into_iter()), 1);
    }

    #[test]
    fn a_portion_has_as_many_known_records_as_a_transaction() {
        let wanted = |new: usize, known: usize| -> Vec<InputsGroup> {
            let id = DatasetRecordId::new(1, 1);
            let claimed = |place| (place >= new).then(|| id.clone());
            let wanted =
                |place| InputsGroup { inputs: WideDigest(0), known: claimed(place), record: id.clone(), sent: vec![] };
            (0..new + known).map(wanted).collect()
        };
        for (new, known, expected) in [
            (0, 0, 0),
            (0, 99, 99),
            (0, 100, 99),
            (10, 98, 108),
            (10, 500, 109),
            (BATCH_SIZE - 1, 5, BATCH_SIZE),
            (5_000, 0, BATCH_SIZE),
        ] {
            assert_eq!(transaction_records(&wanted(new, known)).len(), expected, "{new} {known}");
        }
    }
}
