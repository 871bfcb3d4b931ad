//! Clears up after entities that are gone. These are runs, logged models and experiments that were
//! removed for good, or by an operator's hand, and evaluation datasets that a client deleted. A
//! process that removes an entity clears up itself ([`RunIndex::clear_up_run`] and others). The
//! stream triggers it once more, for late writes.

use entities::attributes::{EXPERIMENT, NAME};
use entities::{ModelLocation, RUN, RunCopy, RunLocation, failed};
use key_schema::{Key, KeyRange, OwnStage, part, ranges, rows};
use mlflow_api::{EvaluationDatasetId, ExperimentId, Workspace};
use table::{Condition, Failure, Item, Query, Result, Table, Write, text};

use crate::RunIndex;
use crate::directory::lists_of;
use crate::entries::entries_of_copy;

impl RunIndex {
    /// Removes a run's rows and the history of its metrics, unless the run is there. If its
    /// beginning is known, in ms, its copy and its entries in the index are removed, too. A request
    /// per 25 of them.
    ///
    /// # Errors
    /// Those of the table; then it may be done again.
    pub async fn clear_up_run(&self, at: &RunLocation, started: Option<i64>) -> Result<()> {
        if self.table.get(&at.key()).await?.is_some() {
            return Ok(());
        }
        if let Some(started) = started {
            let keys = OwnStage::ALL.map(|stage| RunCopy::key(at, started, stage));
            for copy in self.table.get_many(&keys).await?.into_values() {
                remove_entries(&self.table, RunCopy(copy)).await?;
            }
        }
        self.delete_range(ranges::rows_of_run(&at.experiment, &at.run), None).await?;
        self.delete_range(ranges::journal_and_metrics(&at.run), None).await?;
        // Model versions that name the run stay, and are found by it: their list is the registry's.
        self.delete_range(ranges::charts_and_segments(&at.run), None).await
    }

    /// Removes a logged model's rows and its points, unless the model is there. A request per 25 of them.
    ///
    /// # Errors
    /// Those of the table; then it may be done again.
    pub async fn clear_up_model(&self, at: &ModelLocation) -> Result<()> {
        if self.table.get(&at.key()).await?.is_some() {
            return Ok(());
        }
        self.delete_range(ranges::rows_of_logged_model(&at.experiment, &at.model), None).await?;
        self.delete_range(rows::LoggedModelSegment::partition(&at.model), None).await
    }

    /// Removes an experiment's name and content, unless the experiment is there. Its entries in the
    /// index go first, since the content names their lists. A request per 25 of them. Its runs then
    /// have records of their own in the stream, and follow.
    ///
    /// # Errors
    /// Those of the table; then it may be done again.
    pub async fn clear_up_experiment(&self, experiment: ExperimentId, workspace: &Workspace, name: &str) -> Result<()> {
        if self.table.get(&rows::Experiment::key(&experiment)).await?.is_some() {
            return Ok(());
        }
        let name = rows::ExperimentName::key(&workspace.as_str().into(), &name.into());
        let is_its = Condition::Equals(EXPERIMENT.into(), text(experiment.to_string()));
        match self.table.transact(&[Write::Delete(name, is_its)]).await {
            // It is gone, or another experiment's.
            Ok(()) | Err(Failure::Cancelled(_)) => {}
            Err(failure) => return Err(failure),
        }
        let mut page = None;
        loop {
            let (lists, next) = lists_of(&self.table, experiment, page).await?;
            for list in lists {
                self.delete_range(list, None).await?;
            }
            page = next;
            if page.is_none() {
                break;
            }
        }
        for copies in ranges::copies(&experiment, &RUN.into()) {
            self.delete_range(copies, None).await?;
        }
        self.delete_range(rows::Experiment::partition(&experiment), Some(workspace)).await
    }

    /// Removes an evaluation dataset's records, the rows by which they are found, and its tags. A
    /// request per 25 of them.
    ///
    /// # Errors
    /// Those of the table; then it may be done again.
    pub async fn clear_up_dataset(&self, dataset: &EvaluationDatasetId) -> Result<()> {
        if self.table.get(&rows::EvaluationDataset::key(dataset)).await?.is_some() {
            return Ok(());
        }
        self.delete_range(rows::EvaluationInputs::partition(dataset), None).await?;
        self.delete_range(rows::EvaluationDataset::partition(dataset), None).await
    }

    /// Deletes a range, page after page. For the partition of an experiment, related rows in the
    /// lists of the workspace are deleted before each item.
    async fn delete_range(&self, range: KeyRange, workspace: Option<&Workspace>) -> Result<()> {
        let mut query = Query::of(range).for_removal();
        loop {
            let page = self.table.query_page(&query).await?;
            let keys: Vec<Key> = page.items.iter().filter_map(Item::key).collect();
            let links: Vec<Key> = page.items.iter().filter_map(|item| counterpart(item, workspace)).collect();
            self.table.write_many(Vec::new(), &links).await?;
            for partition in keys.iter().filter_map(partition_of) {
                // Boxed, because it is this function again.
                Box::pin(self.delete_range(partition, None)).await?;
            }
            self.table.write_many(Vec::new(), &keys).await?;
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(()),
            }
        }
    }
}

/// The row that goes with a row: the other direction of a run's link with a dataset, a scorer in the workspace's list.
fn counterpart(item: &Item, workspace: Option<&Workspace>) -> Option<Key> {
    let key = item.key()?;
    // The name in the key may be cut.
    if let (Some(experiment), Some(name)) = (part::experiment_of_scorer(&key), item.get(NAME)) {
        return Some(rows::WorkspaceScorer::key(&workspace?.as_str().into(), &experiment, &name.into()));
    }
    let row = rows::RunInput::parse(&key)?;
    Some(rows::DatasetLink::key(&row.experiment, &row.dataset, &row.run))
}

/// The partition for the parts of an item that do not fit into it. It belongs to this item alone:
/// the keys of its rows name a model, or the experiment that is removed.
fn partition_of(key: &Key) -> Option<KeyRange> {
    if let Some(row) = rows::LoggedModel::parse(key) {
        return Some(rows::LoggedModelSegment::partition(&row.model));
    }
    let row = rows::Dataset::parse(key)?;
    Some(rows::DatasetPart::partition(&row.experiment, &row.dataset))
}

/// Removes the entries of a run and then the copy that tells of them.
async fn remove_entries(table: &Table, copy: RunCopy) -> Result<()> {
    let entries = entries_of_copy(&copy).map_err(failed)?;
    let keys: Vec<_> = entries.held.union(&entries.stale).cloned().collect();
    table.write_many(Vec::new(), &keys).await?;
    table.write_many(Vec::new(), &copy.0.key().into_iter().collect::<Vec<_>>()).await
}
