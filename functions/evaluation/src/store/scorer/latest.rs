//! Lists of scorers, each with its latest version. Lists that exceed the maximum size of a response
//! are rejected.

use std::collections::BTreeSet;

use access::{Granted, Guarded, Resource, Visible};
use entities::attributes::NAME;
use entities::read_all;
use futures::future::try_join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{part, rows};
use mlflow_api::scorers as wire;
use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{ExperimentId, Result, Workspace};
use table::{Item, Query};

use super::list_size::ListSize;
use super::row::Found;
use crate::store::Store;

/// Number of experiments whose scorers are read concurrently.
const AT_ONCE: usize = 8;

impl Store {
    /// Returns the latest versions of an experiment's scorers that are visible, ordered by name.
    /// Takes a request per MB of scorers, and one more for the experiment if its lease has expired.
    pub async fn scorer_list(
        &self,
        experiment: &Granted<ExperimentId>,
        visible: &Visible,
    ) -> Result<Vec<wire::Scorer>> {
        let experiment = self.scorer_experiment(**experiment).await?;
        self.scorers_of(&[experiment], visible).await
    }

    /// Returns the latest versions of the visible scorers of several experiments, ignoring those
    /// that are not active. Takes two requests per experiment.
    pub async fn scorer_list_of(
        &self,
        experiments: &[Granted<ExperimentId>],
        visible: &Visible,
    ) -> Result<Vec<wire::Scorer>> {
        self.scorers_of_active(experiments.iter().map(|experiment| **experiment).collect(), visible).await
    }

    /// Returns the scorers of those of these experiments that are active.
    async fn scorers_of_active(&self, once: BTreeSet<ExperimentId>, visible: &Visible) -> Result<Vec<wire::Scorer>> {
        let states = self.experiments.states(&once.into_iter().collect::<Vec<_>>()).await?;
        let active = states.into_iter().filter(|(_, state)| state.stage == LifecycleStage::Active);
        self.scorers_of(&active.map(|(id, _)| id).collect::<Vec<_>>(), visible).await
    }

    /// Returns the latest versions of the visible scorers of all active experiments in the
    /// workspace. Takes a request per MB of the list of scorers, and two for each experiment that
    /// has any.
    pub async fn scorer_list_all(&self, workspace: &Workspace, visible: &Visible) -> Result<Vec<wire::Scorer>> {
        if let Some(few) = visible.few(Resource::Experiment) {
            let experiments = few.into_iter().filter_map(|guarded| match guarded {
                Guarded::Experiment(experiment) => Some(experiment),
                _ => None,
            });
            return self.scorers_of_active(experiments.collect(), visible).await;
        }
        let rows = self.table.query(Query::of(rows::WorkspaceScorer::all(&workspace.as_str().into()))).await?;
        let experiment = |row: &Item| part::experiment_of_listed_scorer(&row.key()?.sk);
        let listed = read_all(&rows, "a place in the list of scorers", experiment)?;
        let shown = |experiment: &ExperimentId| visible.shows(&Guarded::Experiment(*experiment));
        self.scorers_of_active(listed.into_iter().filter(shown).collect(), visible).await
    }

    async fn scorers_of(&self, experiments: &[ExperimentId], visible: &Visible) -> Result<Vec<wire::Scorer>> {
        let mut experiments = experiments.to_vec();
        experiments.sort_unstable();
        let size = ListSize::default();
        let scorers: Vec<_> =
            experiments.into_iter().map(|experiment| self.scorers_of_one(experiment, visible, &size)).collect();
        let scorers: Vec<Vec<_>> = stream::iter(scorers).buffered(AT_ONCE).try_collect().await?;
        Ok(scorers.into_iter().flatten().collect())
    }

    async fn scorers_of_one(
        &self,
        experiment: ExperimentId,
        visible: &Visible,
        size: &ListSize,
    ) -> Result<Vec<wire::Scorer>> {
        let is_shown = |found: &&Found| {
            let name = found.item.get(NAME).unwrap_or_default().to_owned();
            visible.shows(&Guarded::Scorer(experiment, name))
        };
        let mut pages = std::pin::pin!(listing::pages(&self.table, Query::of(rows::Scorer::all(&experiment))));
        let mut scorers = Vec::new();
        while let Some(rows) = pages.try_next().await? {
            rows.iter().try_for_each(|row| size.add(row))?;
            let found = rows.into_iter().map(|row| Found::of(experiment, row)).collect::<Result<Vec<_>>>()?;
            let with_versions = found.iter().filter(is_shown).filter(|found| found.latest().is_some());
            let of_page = try_join_all(with_versions.map(|found| self.scorer_in_list(found, &found.item))).await?;
            scorers.extend(of_page.into_iter().flatten());
        }
        scorers.sort_by(|a, b| a.scorer_name.cmp(&b.scorer_name));
        Ok(scorers)
    }
}
