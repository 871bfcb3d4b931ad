//! The item of a dataset, and the keys of the dataset's other rows.

use access::Granted;
use entities::attributes::{CHANGES, CREATED, CREATED_BY, EXPERIMENTS, NAME, WORKSPACE};
use entities::{entry_key, entry_name, workspace_named};
use key_schema::{Key, Name, Ordinal, WideDigest, rows};
use mlflow_api::{Error, EvaluationDatasetId, Result, Workspace};
use sha2::{Digest, Sha256};
use table::{Condition, Item, Map, number, text};

/// Maximum number of writes in one transaction.
pub(super) const MAX_TRANSACTION_WRITES: usize = 100;
/// Maximum length, in bytes, of texts that are copied to the lists of datasets.
pub(super) const MAX_LISTED_BYTES: usize = 1_024;

/// Returns the key of a part of a dataset's schema or of a record.
pub fn part_key(id: &EvaluationDatasetId) -> impl Fn(&WideDigest, &Ordinal) -> Key {
    |content, part| rows::EvaluationPart::key(id, content, part)
}

/// Computes a dataset's digest, as `_compute_dataset_digest` in MLflow's SQL store.
pub(super) fn digest(name: &str, updated: i64) -> String {
    let hash = Sha256::digest(format!("{name}:{updated}"));
    let bits = hash.iter().take(4).fold(0_u32, |bits, byte| (bits << 8) | u32::from(*byte));
    format!("{bits:08x}")
}

/// Returns the condition that a record exists and has not changed since it was read.
pub(super) fn unchanged(record: &Item) -> Condition {
    Condition::item_exists().and(Condition::unchanged(record, CHANGES))
}

/// Returns when a dataset was created, in ms, given its document or its row in a list.
pub(super) fn created(id: &EvaluationDatasetId, item: &Item) -> i64 {
    item.get(CREATED).unwrap_or_else(|| id.created())
}

/// Adds the creation time to an item of a dataset, unless the dataset's id contains the same time.
pub(super) fn with_created(item: Item, id: &EvaluationDatasetId, created: i64) -> Item {
    if id.created() == created { item } else { item.with(CREATED, number(created)) }
}

/// Creates a row for a dataset in a list of datasets. The row has copies of the dataset's immutable
/// fields, unless these are long.
pub(super) fn list_row(key: Key, id: &EvaluationDatasetId, created: i64, name: &str, user: Option<&str>) -> Item {
    let row = with_created(Item::new(key), id, created);
    if name.len() > MAX_LISTED_BYTES || user.is_some_and(|user| user.len() > MAX_LISTED_BYTES) {
        return row;
    }
    let row = row.with(NAME, text(name));
    user.into_iter().fold(row, |row, user| row.with(CREATED_BY, text(user)))
}

/// Returns the key of a dataset in the workspace's list.
pub(super) fn workspace_key(workspace: &Workspace, id: &EvaluationDatasetId) -> Key {
    rows::WorkspaceEvaluationDataset::key(&workspace.as_str().into(), id)
}

/// Returns the key of a dataset in an experiment's list.
pub(super) fn experiment_key(id: &EvaluationDatasetId, experiment: &str) -> Key {
    rows::ExperimentEvaluationDataset::key(&Name::from(experiment), id)
}

/// Returns a dataset's experiments, in the order in which they were added.
pub(super) fn experiments_of(item: &Item) -> Vec<String> {
    experiments_with_times(item).into_iter().map(|(_, experiment)| experiment).collect()
}

/// Returns a dataset's experiments, each with the time when it was added, in ms. They are ordered
/// by this time.
#[must_use]
pub fn experiments_with_times(item: &Item) -> Vec<(i64, String)> {
    let empty = Map::new();
    let entries = item.map(EXPERIMENTS).unwrap_or(&empty).iter();
    let added = |value: &table::Value| value.as_n().ok().and_then(|digits| digits.parse::<i64>().ok());
    let mut experiments: Vec<_> =
        entries.map(|(name, value)| (added(value).unwrap_or_default(), entry_key(name).to_owned())).collect();
    experiments.sort_unstable();
    experiments
}

/// Checks whether a dataset, given by its item, belongs to at least one of these experiments.
/// Always true if no experiments are given. The check is needed even for datasets from an
/// experiment's list, because the key of the list may contain a hash instead of a long name.
pub(super) fn is_of_any(item: &Item, experiments: &[String]) -> bool {
    let held = item.map(EXPERIMENTS);
    let is_held = |experiment: &String| held.is_some_and(|held| held.contains_key(entry_name(experiment).as_ref()));
    experiments.is_empty() || experiments.iter().any(is_held)
}

/// Checks whether a dataset, given by its item, is in this workspace.
///
/// # Errors
/// Returns an internal error if the item cannot be read.
pub(super) fn is_in(item: &Item, workspace: &Workspace) -> Result<bool> {
    let named = workspace_named(item.get(WORKSPACE)).map_err(Error::internal)?;
    Ok(named == *workspace)
}

/// The dataset that a request refers to. A text that is not a valid id refers to no dataset. Only
/// some endpoints return an error for such a text.
#[derive(Clone, Debug)]
pub struct DatasetReference {
    /// The id as the client sent it.
    pub text: String,
    /// The dataset, or `None` if the text is not a valid id.
    pub dataset: Option<Granted<EvaluationDatasetId>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_mlflows() {
        // The expected digest is from sha256("questions:1700000000000").
        assert_eq!(digest("questions", 1_700_000_000_000), "c81a0239");
    }
}
