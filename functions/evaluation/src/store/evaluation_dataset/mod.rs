//! Evaluation datasets: create, read, delete.
//!
//! A dataset is a document; its records are rows in the same partition, in the order of their creation. What finds a record by its
//! inputs, and the parts of big ones, have a partition of their own, so that merging writes to two.

mod document;
mod experiments;
mod merge;
mod page;
mod record;
mod records;
mod schema;
mod search;

use entities::attributes::{
    CREATED_BY, DIGEST, EXPERIMENTS, NAME, RECORDS, REVISION, SCHEMA_VERSION, TAG_ROWS, TAGS, UPDATED, UPDATED_BY,
    VERSION,
};
use entities::{entries, entry_key, entry_name, now_ms};
use key_schema::{Key, Name, Ordinal, WideDigest, rows};
use mlflow_api::evaluation_datasets as wire;
use mlflow_api::tracking::DEFAULT_WORKSPACE;
use mlflow_api::{Error, ErrorCode, EvaluationDatasetId, Json, Result};
use rand::RngExt;
pub(crate) use record::column;
pub use search::DatasetSearch;
use sha2::{Digest, Sha256};
use table::{Condition, Failure, Item, Map, Query, Reason, Write, map, number, text};

use super::Store;

/// Writes in one transaction.
const TRANSACTION: usize = 100;
/// Longest text, in bytes, that the lists of datasets repeat.
const LISTED: usize = 1_024;

/// Longest id of an experiment, in characters. Any text will do: MLflow does not look whether there is such an experiment.
const EXPERIMENT_ID: usize = 1_000;

/// An evaluation dataset to create.
#[derive(Clone, Debug, Default)]
pub struct NewDataset {
    /// Name.
    pub name: String,
    /// Tags.
    pub tags: Vec<(String, String)>,
    /// Who creates it, as its tags say.
    pub user: Option<String>,
    /// Experiments, as the client names them; they need not be there.
    pub experiment_ids: Vec<String>,
}

/// The key of a part of a dataset's schema or of a record.
fn part_key(id: &EvaluationDatasetId) -> impl Fn(&WideDigest, &Ordinal) -> Key {
    |content, part| rows::EvaluationPart::key(id, content, part)
}

/// A dataset's digest (`_compute_dataset_digest` in MLflow's SQL store).
fn digest(name: &str, updated: i64) -> String {
    let hash = Sha256::digest(format!("{name}:{updated}"));
    let bits = hash.iter().take(4).fold(0_u32, |bits, byte| (bits << 8) | u32::from(*byte));
    format!("{bits:08x}")
}

/// The condition that a record is there and is what was read.
fn unchanged(record: &Item) -> Condition {
    Condition::item_exists().and(match record.number(VERSION) {
        None => Condition::Missing(VERSION.into()),
        Some(version) => Condition::Equals(VERSION.into(), number(version)),
    })
}

/// A row of a list of datasets: what never changes of the dataset, unless it is long.
fn listed(key: Key, name: &str, user: Option<&str>) -> Item {
    let row = Item::new(key);
    if name.len() > LISTED || user.is_some_and(|user| user.len() > LISTED) {
        return row;
    }
    let row = row.with(NAME, text(name));
    user.into_iter().fold(row, |row, user| row.with(CREATED_BY, text(user)))
}

/// The key of a dataset in the list of the workspace.
fn workspace_key(id: &EvaluationDatasetId) -> Key {
    rows::WorkspaceEvaluationDataset::key(&DEFAULT_WORKSPACE.into(), id)
}

/// The key of a dataset in the list of an experiment.
fn experiment_key(id: &EvaluationDatasetId, experiment: &str) -> Key {
    rows::ExperimentEvaluationDataset::key(&Name::from(experiment), id)
}

/// A dataset's experiments, in the order in which they were added.
fn experiments_of(item: &Item) -> Vec<String> {
    let empty = Map::new();
    let entries = item.map(EXPERIMENTS).unwrap_or(&empty).iter();
    let added = |value: &table::Value| value.as_n().ok().and_then(|digits| digits.parse::<i64>().ok());
    let mut experiments: Vec<_> =
        entries.map(|(name, value)| (added(value).unwrap_or_default(), entry_key(name).to_owned())).collect();
    experiments.sort_unstable();
    experiments.into_iter().map(|(_, experiment)| experiment).collect()
}

impl Store {
    /// Creates an evaluation dataset. One request; one more per 25 experiments, or tags that are big, beyond a hundred.
    pub async fn dataset_create(&self, new: &NewDataset) -> Result<wire::EvaluationDataset> {
        let mut experiments: Vec<_> = new.experiment_ids.iter().map(String::as_str).collect();
        experiments.sort_unstable();
        if experiments.windows(2).any(|pair| pair.first() == pair.get(1)) {
            return Err(Error::new(ErrorCode::BadRequest, "An experiment is given twice."));
        }
        if experiments.iter().any(|experiment| experiment.chars().count() > EXPERIMENT_ID) {
            return Err(Error::invalid(format!("An experiment's id has more than {EXPERIMENT_ID} characters.")));
        }
        documents::check_sizes(&new.tags)?;
        let created = now_ms();
        let id = EvaluationDatasetId::new(created, rand::rng().random());
        let added = experiments.iter().map(|experiment| (entry_name(experiment).into_owned(), number(created)));
        let mut item = Item::new(rows::EvaluationDataset::key(&id))
            .with(NAME, text(&new.name))
            .with(DIGEST, text(digest(&new.name, created)))
            .with(UPDATED, number(created))
            .with(EXPERIMENTS, map(added.collect()))
            // The stream's consumer is told when an item that has it is removed, and clears up.
            .with(REVISION, number(1));
        if let Some(user) = &new.user {
            item = item.with(CREATED_BY, text(user)).with(UPDATED_BY, text(user));
        }
        let (item, tag_rows) =
            documents::new_document(item, &new.tags, |tag| rows::EvaluationDatasetTag::key(&id, tag));
        let user = new.user.as_deref();
        let lists = experiments.iter().map(|experiment| listed(experiment_key(&id, experiment), &new.name, user));
        let mut lists: Vec<_> = lists.collect();
        // A list that names a dataset which never came to be does no harm.
        let too_many = lists.split_off(lists.len().min(TRANSACTION - 2));
        self.table.write_many(too_many, &[]).await?;
        let always = || Condition::All(Vec::new());
        let mut writes = vec![
            Write::Put(item.clone(), Condition::item_missing()),
            Write::Put(listed(workspace_key(&id), &new.name, user), always()),
        ];
        writes.extend(lists.into_iter().map(|row| Write::Put(row, always())));
        let more_rows = documents::take_rows(&mut writes, tag_rows.clone());
        self.table.transact(&writes).await?;
        self.table.write_many(more_rows, &[]).await?;
        let dataset = self.dataset_whole(&id, &item, &entries(&item, TAGS, &tag_rows)).await?;
        Ok(wire::EvaluationDataset { experiment_ids: new.experiment_ids.clone(), ..dataset })
    }

    /// Reads an evaluation dataset. One request; one more if it has tags too big for its document, one if its schema is.
    pub async fn dataset_get(&self, id: &str) -> Result<wire::EvaluationDataset> {
        let (id, item) = self.dataset_item(id).await?.ok_or_else(|| EvaluationDatasetId::not_found(id))?;
        self.dataset_with_tags(&id, &item).await
    }

    /// The item of a dataset, if there is one. One request.
    async fn dataset_item(&self, id: &str) -> Result<Option<(EvaluationDatasetId, Item)>> {
        let Some(id) = EvaluationDatasetId::parse(id) else { return Ok(None) };
        let item = self.table.get(&rows::EvaluationDataset::key(&id)).await?;
        Ok(item.map(|item| (id, item)))
    }

    /// A dataset from its item, its rows of tags read where it has any.
    async fn dataset_with_tags(&self, id: &EvaluationDatasetId, item: &Item) -> Result<wire::EvaluationDataset> {
        let tags = self.dataset_tags(id, item).await?;
        self.dataset_whole(id, item, &tags).await
    }

    /// A dataset's tags, by key. No request unless some are too big for its document.
    async fn dataset_tags(&self, id: &EvaluationDatasetId, item: &Item) -> Result<Vec<(String, String)>> {
        let rows = if item.has(TAG_ROWS) {
            self.table.query(Query::of(rows::EvaluationDatasetTag::all(id))).await?
        } else {
            Vec::new()
        };
        Ok(entries(item, TAGS, &rows))
    }

    /// A dataset from its item and its tags. No request unless its schema is big.
    async fn dataset_whole(
        &self,
        id: &EvaluationDatasetId,
        item: &Item,
        tags: &[(String, String)],
    ) -> Result<wire::EvaluationDataset> {
        let tags = tags.iter().map(|(key, value)| (key.clone(), Json::Text(value.clone())));
        let found = self.dataset_schema(id, item).await?;
        let (item, schema) = found.as_ref().map_or((item, None), |(item, schema)| (item, Some(schema.clone())));
        let owned = |attribute: &str| item.text(attribute).map(str::to_owned);
        Ok(wire::EvaluationDataset {
            dataset_id: id.to_string(),
            name: owned(NAME).unwrap_or_default(),
            tags: Json::Object(tags.collect()).print(),
            schema,
            profile: item.number(RECORDS).map(profile),
            digest: owned(DIGEST).unwrap_or_default(),
            created_time: id.created(),
            last_update_time: item.number(UPDATED).unwrap_or_default(),
            created_by: owned(CREATED_BY),
            last_updated_by: owned(UPDATED_BY),
            experiment_ids: Vec::new(),
        })
    }

    /// The schema in a dataset's item, if it has one, with the item it is of: the one given, or as it is now. No request unless it
    /// is big.
    async fn dataset_schema(&self, id: &EvaluationDatasetId, item: &Item) -> Result<Option<(Item, String)>> {
        if !item.has(SCHEMA_VERSION) {
            return Ok(None);
        }
        content::read_with_item(&self.table, item.clone(), part_key(id)).await
    }

    /// Deletes an evaluation dataset, if it is there. Two requests, whatever the number of records: the indexer removes those,
    /// when the stream tells it that the dataset is gone.
    pub async fn dataset_delete(&self, id: &str) -> Result<()> {
        let Some((id, item)) = self.dataset_item(id).await? else { return Ok(()) };
        let mut lists: Vec<_> =
            experiments_of(&item).iter().map(|experiment| experiment_key(&id, experiment)).collect();
        let too_many = lists.split_off(lists.len().min(TRANSACTION - 2));
        let always = || Condition::All(Vec::new());
        let mut writes = vec![
            Write::Delete(rows::EvaluationDataset::key(&id), Condition::item_exists()),
            Write::Delete(workspace_key(&id), always()),
        ];
        writes.extend(lists.into_iter().map(|key| Write::Delete(key, always())));
        match self.table.transact(&writes).await {
            // Somebody else was faster.
            Err(Failure::Cancelled(reasons)) if matches!(reasons.first(), Some(Reason::Refused(_))) => {}
            outcome => outcome?,
        }
        Ok(self.table.write_many(Vec::new(), &too_many).await?)
    }
}

/// A dataset's profile. Where the last record was deleted, MLflow keeps JSON's null.
fn profile(records: i64) -> String {
    if records > 0 { format!("{{\"num_records\": {records}}}") } else { "null".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_mlflows() {
        // sha256("questions:1700000000000")
        assert_eq!(digest("questions", 1_700_000_000_000), "c81a0239");
    }
}
