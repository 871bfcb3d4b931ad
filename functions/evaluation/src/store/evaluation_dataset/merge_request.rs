//! A request to merge records, and the changes that it makes to the dataset.

use std::collections::HashMap;

use entities::attributes::{DIGEST, NAME, SCHEMA_VERSION, UPDATED, UPDATED_BY};
use entities::documents::content::PackedContent;
use key_schema::{Key, WideDigest, rows};
use mlflow_api::{DatasetRecordId, EvaluationDatasetId};
use rand::RngExt;
use table::{Condition, Item, Update, number, text};

use super::dataset_item::digest;
use super::record_content::SentRecord;

/// Records of a request that have the same inputs, and are merged into one.
pub(super) struct InputsGroup {
    pub(super) inputs: WideDigest,
    /// The existing record with these inputs, if one is known to exist.
    pub(super) known: Option<DatasetRecordId>,
    /// The id that the record gets if it is new.
    pub(super) record: DatasetRecordId,
    /// The records as the client sent them, in the order of the request. There is at least one.
    pub(super) sent: Vec<SentRecord>,
}

/// The request, and the change that each of its transactions makes to the dataset.
pub(super) struct MergeRequest<'a> {
    pub(super) id: &'a EvaluationDatasetId,
    /// Time in ms that is recorded for all changes of the request.
    pub(super) now: i64,
    /// The user of the records, according to the last record whose tags name a user or contain an
    /// explicit null.
    pub(super) user: Option<String>,
    pub(super) sent: &'a [SentRecord],
}

/// A changed schema of a dataset that is to be written.
pub(super) struct NewSchema {
    pub(super) packed: PackedContent,
    /// The parts of the previous schema, which are deleted afterwards.
    pub(super) stale: Vec<Key>,
    /// The version of the previous schema.
    pub(super) version: Option<i64>,
}

impl MergeRequest<'_> {
    /// Groups the records by their inputs, in the order of the request.
    pub(super) fn grouped_by_inputs(&self) -> Vec<InputsGroup> {
        let mut wanted: Vec<InputsGroup> = Vec::new();
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
            // The ids of new records keep the order of the request. The random part of an id
            // consists of 32 bits with the position in the request, followed by 48 random bits.
            let random = ((place as u128) << 48) | u128::from(chance >> 16);
            let id = DatasetRecordId::new(self.now, random);
            wanted.push(InputsGroup { inputs, known: None, record: id, sent: vec![record.clone()] });
        }
        wanted
    }

    /// Returns the change that a transaction makes to the dataset, except for the number of
    /// records.
    pub(super) fn update(&self, item: &Item, new_schema: Option<&NewSchema>) -> Update {
        let name = item.get(NAME).unwrap_or_default();
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
}
