//! The conditions of a search of experiments. Reads listed experiments, and filters them.

use entities::find;
use entities::listing::{Candidates, CooperativeYield};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::rows;
use mlflow_api::tracking::{self, ViewType};
use mlflow_api::{Error, ExperimentId, Result, Workspace};
use search::{ExperimentFields, ExperimentFilter, ExperimentNumber, ExperimentOrder, SortKey};

use super::list_entry::ExperimentEntry;
use crate::store::Store;

/// Number of experiments whose tags are read concurrently.
const CONCURRENCY: usize = 16;

/// The conditions that an experiment has to meet to be on a page.
pub(super) struct ExperimentCriteria<'a> {
    pub(super) store: Store,
    pub(super) workspace: &'a Workspace,
    pub(super) filter: ExperimentFilter,
    pub(super) order: ExperimentOrder,
    pub(super) after: Option<SortKey>,
    pub(super) view: ViewType,
    /// Whether candidates come in the order of the search. If so, an experiment's position in the
    /// results is determined by its list entry. The next page therefore continues after that
    /// position, even if the experiment was changed in the meantime.
    pub(super) is_list_sorted: bool,
}

impl Candidates for ExperimentCriteria<'_> {
    type Listed = ExperimentEntry;
    type Found = tracking::Experiment;
    type Entity = tracking::Experiment;

    async fn read(&self, listed: &[ExperimentEntry]) -> Result<Vec<(SortKey, tracking::Experiment, usize)>> {
        let keys: Vec<_> = listed.iter().map(|listed| rows::Experiment::key(&listed.id)).collect();
        let items = self.store.table.get_many(&keys).await?;
        let experiments = listed.iter().zip(&keys).filter_map(|(listed, key)| Some((listed, items.get(key)?)));
        let experiments = experiments.map(|(listed, item)| async move {
            let experiment = self.store.experiment_from_item(self.workspace, listed.id, item).await?;
            Ok::<_, Error>((listed, SearchableExperiment { id: listed.id, experiment }))
        });
        let mut experiments = stream::iter(experiments.collect::<Vec<_>>()).buffered(CONCURRENCY);
        let (mut found, mut pace) = (Vec::new(), CooperativeYield::default());
        while let Some((listed, searched)) = experiments.try_next().await? {
            pace.keep().await;
            let key = if self.is_list_sorted { self.order.key(listed) } else { self.order.key(&searched) };
            let is_wanted = self.view.shows(searched.experiment.lifecycle_stage) && self.filter.matches(&searched);
            if is_wanted && self.after.as_ref().is_none_or(|after| key > *after) {
                let bytes = searched.size();
                found.push((key, searched.experiment, bytes));
            }
        }
        Ok(found)
    }

    async fn complete(&self, found: Vec<tracking::Experiment>) -> Result<Vec<tracking::Experiment>> {
        Ok(found)
    }
}

/// The fields of an experiment that a search can use.
struct SearchableExperiment {
    id: ExperimentId,
    experiment: tracking::Experiment,
}

impl SearchableExperiment {
    /// Returns the approximate size of the experiment, in bytes.
    fn size(&self) -> usize {
        let tags: usize = self.experiment.tags.iter().map(|tag| tag.key.len() + tag.value.len()).sum();
        self.experiment.name.len() + self.experiment.artifact_location.len() + tags
    }
}

impl ExperimentFields for SearchableExperiment {
    fn id(&self) -> ExperimentId {
        self.id
    }

    fn name(&self) -> &str {
        &self.experiment.name
    }

    fn number(&self, attribute: ExperimentNumber) -> i64 {
        match attribute {
            ExperimentNumber::CreationTime => self.experiment.creation_time,
            ExperimentNumber::LastUpdateTime => self.experiment.last_update_time,
        }
    }

    fn tag(&self, key: &str) -> Option<&str> {
        find(&self.experiment.tags, key)
    }
}
