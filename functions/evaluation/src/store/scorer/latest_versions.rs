//! Lists of scorers, each with its latest version. Lists that exceed the maximum size of a response
//! are rejected.

use std::collections::{BTreeSet, HashMap};

use access::{Granted, Guard, Resource, Visibility};
use entities::attributes::NAME;
use entities::read_all;
use futures::future::try_join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{Name, key_parts, rows};
use mlflow_api::scorers as wire;
use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{ExperimentId, Result, Workspace};
use table::{Item, Query};

use super::list_size::ListSize;
use super::scorer_row::StoredScorer;
use crate::store::Store;

/// Number of experiments whose scorers are read concurrently.
const CONCURRENCY: usize = 8;

impl Store {
    /// Returns the latest versions of an experiment's scorers that are visible, ordered by name.
    /// Takes a request per MB of scorers, and one more if the lease on the experiment has expired.
    pub async fn scorer_list(
        &self,
        experiment: &Granted<ExperimentId>,
        visible: &Visibility,
    ) -> Result<Vec<wire::Scorer>> {
        let experiment = self.active_experiment(**experiment).await?;
        self.scorers_of(&[experiment], visible).await
    }

    /// Returns the latest versions of the visible scorers of several experiments, ignoring
    /// experiments that are not active. Takes two requests per experiment. If only a few scorers
    /// are visible, experiments without a visible scorer take no request.
    pub async fn scorer_list_of(
        &self,
        experiments: &[Granted<ExperimentId>],
        visible: &Visibility,
    ) -> Result<Vec<wire::Scorer>> {
        let mut once: BTreeSet<_> = experiments.iter().map(|experiment| **experiment).collect();
        if let Some(few) = visible.enumerate_guards(Resource::Scorer) {
            let shown: BTreeSet<_> = few.iter().filter_map(experiment_of).collect();
            once.retain(|experiment| shown.contains(experiment));
        }
        self.scorers_of_active(once, visible).await
    }

    /// Returns the scorers of the given experiments, ignoring experiments that are not active.
    async fn scorers_of_active(&self, once: BTreeSet<ExperimentId>, visible: &Visibility) -> Result<Vec<wire::Scorer>> {
        let states = self.experiments.states(&once.into_iter().collect::<Vec<_>>()).await?;
        let active = states.into_iter().filter(|(_, state)| state.stage == LifecycleStage::Active);
        self.scorers_of(&active.map(|(id, _)| id).collect::<Vec<_>>(), visible).await
    }

    /// Returns the latest versions of the visible scorers of all active experiments in the
    /// workspace. Takes a request per MB of the list of scorers, and two for each experiment that
    /// has a visible scorer. If the visible scorers are few and known by name, they are read
    /// directly instead of the list, with one request per 100 scorers.
    pub async fn scorer_list_all(&self, workspace: &Workspace, visible: &Visibility) -> Result<Vec<wire::Scorer>> {
        let rows = match visible.enumerate_guards(Resource::Scorer) {
            Some(few) => self.list_scorers(workspace, few).await?,
            None => self.table.query(Query::of(rows::WorkspaceScorer::all(&workspace.as_str().into()))).await?,
        };
        let place = |row: &Item| {
            let experiment = key_parts::experiment_of_listed_scorer(&row.key()?.sk)?;
            Some((experiment, row.get(NAME)?.to_owned()))
        };
        let listed = read_all(&rows, "a place in the list of scorers", place)?.into_iter();
        let shown = listed.filter(|(experiment, name)| visible.shows(&Guard::Scorer(*experiment, name.clone())));
        self.scorers_of_active(shown.map(|(experiment, _)| experiment).collect(), visible).await
    }

    /// Returns rows of the workspace's list of scorers: those of the given scorers, and those of
    /// all scorers of the given experiments. Scorers and experiments of other workspaces have no
    /// rows in the list. Takes one request per 100 scorers, and one per experiment.
    async fn list_scorers(&self, workspace: &Workspace, few: Vec<Guard>) -> Result<Vec<Item>> {
        let workspace = Name::from(workspace.as_str());
        let (mut keys, mut experiments) = (Vec::new(), Vec::new());
        for guarded in few {
            match guarded {
                Guard::Scorer(experiment, name) => {
                    keys.push(rows::WorkspaceScorer::key(&workspace, &experiment, &Name::from(name.as_str())));
                }
                Guard::Experiment(experiment) => experiments.push(experiment),
                _ => {}
            }
        }
        let of_scorers = if keys.is_empty() { HashMap::new() } else { self.table.get_many(&keys).await? };
        let mut listed: Vec<_> = of_scorers.into_values().collect();
        let range = |experiment: &ExperimentId| rows::WorkspaceScorer::all(&workspace).experiment(experiment).range();
        let of_experiments = experiments.iter().map(|experiment| self.table.query(Query::of(range(experiment))));
        let mut of_experiments = stream::iter(of_experiments.collect::<Vec<_>>()).buffered(CONCURRENCY);
        while let Some(rows) = of_experiments.try_next().await? {
            listed.extend(rows);
        }
        Ok(listed)
    }

    async fn scorers_of(&self, experiments: &[ExperimentId], visible: &Visibility) -> Result<Vec<wire::Scorer>> {
        let mut experiments = experiments.to_vec();
        experiments.sort_unstable();
        let size = ListSize::default();
        let scorers: Vec<_> =
            experiments.into_iter().map(|experiment| self.scorers_of_experiment(experiment, visible, &size)).collect();
        let scorers: Vec<Vec<_>> = stream::iter(scorers).buffered(CONCURRENCY).try_collect().await?;
        Ok(scorers.into_iter().flatten().collect())
    }

    async fn scorers_of_experiment(
        &self,
        experiment: ExperimentId,
        visible: &Visibility,
        size: &ListSize,
    ) -> Result<Vec<wire::Scorer>> {
        let is_shown = |found: &&StoredScorer| {
            let name = found.item.get(NAME).unwrap_or_default().to_owned();
            visible.shows(&Guard::Scorer(experiment, name))
        };
        let mut pages =
            std::pin::pin!(entities::listing::pages(&self.table, Query::of(rows::Scorer::all(&experiment))));
        let mut scorers = Vec::new();
        while let Some(rows) = pages.try_next().await? {
            rows.iter().try_for_each(|row| size.add(row))?;
            let found = rows.into_iter().map(|row| StoredScorer::of(experiment, row)).collect::<Result<Vec<_>>>()?;
            let with_versions = found.iter().filter(is_shown).filter(|found| found.latest().is_some());
            let of_page = try_join_all(with_versions.map(|found| self.scorer_in_list(found, &found.item))).await?;
            scorers.extend(of_page.into_iter().flatten());
        }
        scorers.sort_by(|a, b| a.scorer_name.cmp(&b.scorer_name));
        Ok(scorers)
    }
}

/// Returns the experiment of a guard, which identifies a protected entity. Returns `None` unless
/// the entity is a scorer or an experiment.
fn experiment_of(guarded: &Guard) -> Option<ExperimentId> {
    match guarded {
        Guard::Experiment(experiment) | Guard::Scorer(experiment, _) => Some(*experiment),
        _ => None,
    }
}
