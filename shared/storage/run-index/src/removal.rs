//! Deletes the data that deleted entities leave behind. These entities are runs, logged models and
//! experiments that were permanently deleted, possibly manually by an operator, and evaluation
//! datasets that a client deleted. A process that deletes an entity also deletes what it leaves
//! behind ([`RunIndex::clear_up_run`] and others). The stream triggers this once more, in case of
//! late writes.

use entities::archived_objects::drop_later;
use entities::attributes::{EXPERIMENT, NAME};
use entities::{ModelLocation, RUN_ENTITY_TYPE, RunCopy, RunLocation, failed, object_of_segments};
use key_schema::{Key, KeyRange, OwnStage, key_parts, ranges, rows};
use mlflow_api::{EvaluationDatasetId, ExperimentId, Workspace};
use table::{Condition, Failure, Item, Query, Result, Table, Write, text};

use crate::RunIndex;
use crate::entries::entries_of_copy;
use crate::list_directory::lists_of;

impl RunIndex {
    /// Deletes a run's rows and its metric history, unless the run exists. If the run's start time
    /// in ms is given, deletes its copy and its index entries too. Sends one request per 25 items.
    ///
    /// # Errors
    /// Returns failures of the table. The call can then be repeated.
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
        // Model versions that refer to the run are kept, and so is the list of these versions,
        // because it belongs to the registry. The range includes archived segments.
        self.delete_range(ranges::charts_and_segments(&at.run), None).await
    }

    /// Deletes a logged model's rows and points, unless the model exists. Sends one request per 25
    /// items.
    ///
    /// # Errors
    /// Returns failures of the table. The call can then be repeated.
    pub async fn clear_up_model(&self, at: &ModelLocation) -> Result<()> {
        if self.table.get(&at.key()).await?.is_some() {
            return Ok(());
        }
        self.delete_range(ranges::rows_of_logged_model(&at.experiment, &at.model), None).await?;
        self.delete_range(rows::LoggedModelSegment::partition(&at.model), None).await
    }

    /// Deletes an experiment's name and content, unless the experiment exists. Deletes index
    /// entries first, because the directory that lists them is part of the content. Sends one
    /// request per 25 items. The deletions of the experiment's runs then appear in the stream as
    /// separate records, which cause the runs to be cleared up as well.
    ///
    /// # Errors
    /// Returns failures of the table. The call can then be repeated.
    pub async fn clear_up_experiment(&self, experiment: ExperimentId, workspace: &Workspace, name: &str) -> Result<()> {
        if self.table.get(&rows::Experiment::key(&experiment)).await?.is_some() {
            return Ok(());
        }
        let name = rows::ExperimentName::key(&workspace.as_str().into(), &name.into());
        let is_its = Condition::Equals(EXPERIMENT.into(), text(experiment.to_string()));
        match self.table.transact(&[Write::Delete(name, is_its)]).await {
            // The name row is missing, or another experiment has taken the name.
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
        for copies in ranges::copies(&experiment, &RUN_ENTITY_TYPE.into()) {
            self.delete_range(copies, None).await?;
        }
        for partition in [
            rows::ReviewQueue::partition(&experiment),
            rows::ReviewedTrace::partition(&experiment),
            rows::Issue::partition(&experiment),
            rows::IssueContent::partition(&experiment),
        ] {
            self.delete_range(partition, None).await?;
        }
        self.delete_range(rows::Experiment::partition(&experiment), Some(workspace)).await
    }

    /// Deletes an evaluation dataset's records, the rows that list the records, and the dataset's
    /// tags. Sends one request per 25 items.
    ///
    /// # Errors
    /// Returns failures of the table. The call can then be repeated.
    pub async fn clear_up_dataset(&self, dataset: &EvaluationDatasetId) -> Result<()> {
        if self.table.get(&rows::EvaluationDataset::key(dataset)).await?.is_some() {
            return Ok(());
        }
        self.delete_range(rows::EvaluationInputs::partition(dataset), None).await?;
        self.delete_range(rows::EvaluationDataset::partition(dataset), None).await
    }

    /// Deletes a range, page by page. If the range is an experiment's partition, the related rows
    /// in the workspace's lists are deleted before each item.
    async fn delete_range(&self, range: KeyRange, workspace: Option<&Workspace>) -> Result<()> {
        let mut query = Query::of(range).for_removal();
        loop {
            let page = self.table.query_page(&query).await?;
            let keys: Vec<Key> = page.items.iter().filter_map(Item::key).collect();
            let links: Vec<Key> = page.items.iter().filter_map(|item| counterpart(item, workspace)).collect();
            self.table.write_many(Vec::new(), &links).await?;
            self.drop_objects(&page.items).await?;
            for partition in keys.iter().filter_map(partition_of) {
                // Boxed, because this is a recursive call.
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

impl RunIndex {
    /// Schedules the deletion of the objects that items with archived segments refer to. Sends one
    /// request per item with archived segments.
    async fn drop_objects(&self, items: &[Item]) -> Result<()> {
        for (key, object) in items.iter().filter_map(object_of_segments) {
            drop_later(&self.table, [object], &key).await?;
        }
        Ok(())
    }
}

/// Returns the row that has to be deleted together with `item`. For a run's link to a dataset, it
/// is the link in the opposite direction. For a scorer, it is the scorer's row in the workspace's
/// list. For an issue whose id a client has chosen, it is the row that says where the issue is.
fn counterpart(item: &Item, workspace: Option<&Workspace>) -> Option<Key> {
    let key = item.key()?;
    // The name is read from the item, because the key may contain only its beginning.
    if let (Some(experiment), Some(name)) = (key_parts::experiment_of_scorer(&key), item.get(NAME)) {
        return Some(rows::WorkspaceScorer::key(&workspace?.as_str().into(), &experiment, &name.into()));
    }
    if let Some(row) = rows::Issue::parse(&key) {
        return row.issue.experiment().is_none().then(|| rows::IssueLocation::key(&row.issue));
    }
    let row = rows::RunInput::parse(&key)?;
    Some(rows::DatasetLink::key(&row.experiment, &row.dataset, &row.run))
}

/// Returns the partition with the overflow of an item, or with the items of a review queue. No
/// other item uses this partition, because its key contains the ID of a model, of a queue, or of
/// the experiment that is being deleted.
fn partition_of(key: &Key) -> Option<KeyRange> {
    if let Some(row) = rows::LoggedModel::parse(key) {
        return Some(rows::LoggedModelSegment::partition(&row.model));
    }
    if let Some(row) = rows::ReviewQueue::parse(key) {
        return Some(rows::ReviewItem::partition(&row.queue));
    }
    let row = rows::Dataset::parse(key)?;
    Some(rows::DatasetPart::partition(&row.experiment, &row.dataset))
}

/// Deletes a run's index entries, and then the indexer's copy of the run, from which the entries
/// are derived.
async fn remove_entries(table: &Table, copy: RunCopy) -> Result<()> {
    let entries = entries_of_copy(&copy).map_err(failed)?;
    let keys: Vec<_> = entries.held.union(&entries.stale).cloned().collect();
    table.write_many(Vec::new(), &keys).await?;
    table.write_many(Vec::new(), &copy.0.key().into_iter().collect::<Vec<_>>()).await
}
