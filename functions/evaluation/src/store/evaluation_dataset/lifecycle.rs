//! Creating and deleting evaluation datasets.

use entities::attributes::TAGS;
use entities::{entries, if_closed, now_ms};
use key_schema::rows;
use mlflow_api::evaluation_datasets as wire;
use mlflow_api::{Error, ErrorCode, EvaluationDatasetId, Result, Workspace};
use rand::RngExt;
use table::{Condition, Failure, Write, WriteRefusal};

use super::dataset_item::{
    DatasetReference, MAX_TRANSACTION_WRITES, digest, experiment_key, experiments_of, workspace_key,
};
use super::items::{DatasetItems, StoredDataset};
use crate::store::Store;

/// Maximum length of an experiment's id, in characters. Any text is accepted, because MLflow does
/// not check whether the experiment exists.
const MAX_EXPERIMENT_ID_LENGTH: usize = 1_000;

/// An evaluation dataset to create.
#[derive(Clone, Debug, Default)]
pub struct NewDataset {
    /// Name.
    pub name: String,
    /// Tags.
    pub tags: Vec<(String, String)>,
    /// The user who creates the dataset, according to the tags in the request.
    pub user: Option<String>,
    /// Experiments as the client sent them. They do not have to exist.
    pub experiment_ids: Vec<String>,
}

impl Store {
    /// Creates an evaluation dataset. Takes one request, and one more for every 25 experiments or
    /// large tags beyond a hundred.
    pub async fn dataset_create(&self, workspace: &Workspace, new: &NewDataset) -> Result<wire::EvaluationDataset> {
        let mut experiments: Vec<_> = new.experiment_ids.iter().map(String::as_str).collect();
        experiments.sort_unstable();
        if experiments.windows(2).any(|pair| pair.first() == pair.get(1)) {
            return Err(Error::new(ErrorCode::BadRequest, "An experiment is given twice."));
        }
        if experiments.iter().any(|experiment| experiment.chars().count() > MAX_EXPERIMENT_ID_LENGTH) {
            return Err(Error::invalid(format!(
                "An experiment's id has more than {MAX_EXPERIMENT_ID_LENGTH} characters."
            )));
        }
        entities::documents::check_sizes(&new.tags)?;
        let created = now_ms();
        let id = EvaluationDatasetId::new(created, rand::rng().random());
        let user = new.user.as_deref();
        let experiments: Vec<_> = experiments.into_iter().map(|experiment| (experiment, created)).collect();
        let stored = StoredDataset {
            id: &id,
            workspace,
            name: &new.name,
            digest: &digest(&new.name, created),
            created,
            updated: created,
            created_by: user,
            updated_by: user,
            experiments: &experiments,
            tags: &new.tags,
        };
        let DatasetItems { document: item, tags: tag_rows, experiments: mut lists, workspace: in_workspace } =
            stored.items_with(|item| self.authorizer_writes.with_owner(item));
        // List rows that do not fit into the transaction are written before it. If the creation
        // then fails, the lists contain rows without a dataset, which readers ignore.
        let mut before = lists.split_off(lists.len().min(MAX_TRANSACTION_WRITES - 3));
        lists.push(in_workspace);
        let check = self.authorizer_writes.workspace_open_condition(workspace);
        let has_check = check.is_some();
        let lists = lists.into_iter().map(|row| Write::Put(row, Condition::Always));
        let mut others: Vec<_> = check.into_iter().chain(lists).collect();
        before.extend(entities::documents::take_rows(&mut others, tag_rows.clone()));
        self.table.write_many(before, &[]).await?;
        match self.table.create(item.clone(), others).await {
            Ok(()) => {}
            Err(Failure::Cancelled(reasons)) => {
                let closed = if_closed(workspace, reasons.get(1).filter(|_| has_check));
                return Err(closed.unwrap_or_else(|| Failure::Cancelled(reasons).into()));
            }
            Err(failure) => return Err(failure.into()),
        }
        let dataset = self.dataset_from_item(&id, &item, &entries(&item, TAGS, &tag_rows)?).await?;
        Ok(wire::EvaluationDataset { experiment_ids: new.experiment_ids.clone(), ..dataset })
    }

    /// Deletes an evaluation dataset, if it exists. Takes two requests, regardless of the number of
    /// records. The indexer removes the records when it receives the deletion from the stream.
    pub async fn dataset_delete(&self, workspace: &Workspace, id: &DatasetReference) -> Result<()> {
        let Some((id, item)) = self.dataset_item(id).await? else { return Ok(()) };
        let mut lists: Vec<_> =
            experiments_of(&item).iter().map(|experiment| experiment_key(&id, experiment)).collect();
        let too_many = lists.split_off(lists.len().min(MAX_TRANSACTION_WRITES - 2));
        let mut writes = vec![
            Write::Delete(rows::EvaluationDataset::key(&id), Condition::item_exists()),
            Write::Delete(workspace_key(workspace, &id), Condition::Always),
        ];
        writes.extend(lists.into_iter().map(|key| Write::Delete(key, Condition::Always)));
        match self.table.transact(&writes).await {
            // Another request has deleted the dataset concurrently.
            Err(Failure::Cancelled(reasons)) if matches!(reasons.first(), Some(WriteRefusal::Refused(_))) => {}
            outcome => outcome?,
        }
        Ok(self.table.write_many(Vec::new(), &too_many).await?)
    }
}
