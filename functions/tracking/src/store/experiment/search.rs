//! Searching experiments.

use std::collections::HashSet;

use access::{Guarded, Visible};
use entities::{find, read_all};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::index::ExperimentsByStage;
use key_schema::{Name, Stage, ranges, rows};
use listing::{Candidates, Pace, Reading, fill};
use mlflow_api::tracking::{self, Experiments, ViewType};
use mlflow_api::{Error, ExperimentId, Result, Workspace, limits};
use search::{
    ExperimentFields, ExperimentFilter, ExperimentNumber, ExperimentOrder, Fingerprint, SortKey, decode_page_token,
    parse_experiment_search,
};
use table::Query;

use super::by_time::TimeList;
use super::listed::{Listed, is_known_from_list};
use crate::store::Store;

/// Experiments whose tags are read at a time.
const AT_ONCE: usize = 16;

/// A search over experiments, as it was asked.
#[derive(Clone, Debug)]
pub struct ExperimentSearch {
    /// Which lifecycle stages to show.
    pub view: ViewType,
    /// Filter string.
    pub filter: String,
    /// Order clauses.
    pub order_by: Vec<String>,
    /// Experiments on a page.
    pub max_results: i64,
    /// Token of an earlier page.
    pub page_token: String,
}

impl Store {
    /// Searches experiments. Active ones by time, the default: two requests and a read unit for each on the page, and as much again as
    /// the filter refuses. Else a read unit per 30 experiments of the workspace, or only for those whose names begin as the filter
    /// says; then a request per 100 of those that the list does not rule out: a page of them, unless the filter asks for tags or
    /// times of change, or the order is by the latter. One more for each that has tags too big for its document.
    pub async fn experiment_search(
        &self,
        workspace: &Workspace,
        visible: &Visible,
        search: &ExperimentSearch,
    ) -> Result<Experiments> {
        limits::max_results(search.max_results)?;
        let (filter, order) = parse_experiment_search(&search.filter, &search.order_by)?;
        let fingerprint = Fingerprint::of_experiment_search(&search.filter, &search.order_by, search.view);
        let after = decode_page_token(fingerprint, &search.page_token)?;
        let page_size = usize::try_from(search.max_results).unwrap_or(usize::MAX);

        let reading = Reading::default();
        let store = Self { table: reading.of(&self.table), ..self.clone() };
        let mut wanted = Wanted { store, workspace, filter, order, after, view: search.view, in_order: true };
        let page = if let Some(list) = TimeList::of(search.view, &wanted.filter, &wanted.order) {
            list.page(&wanted, visible, page_size, reading).await?
        } else {
            let mut listed = self.experiments_listed(workspace, visible, search.view, &wanted.filter).await?;
            let Wanted { filter, order, after, .. } = &wanted;
            let in_order = is_known_from_list(filter, order) && listed.iter().all(|listed| listed.name.is_some());
            if in_order {
                listed.sort_by_cached_key(|listed| order.key(listed));
                listed.retain(|listed| after.as_ref().is_none_or(|after| order.key(listed) > *after));
            }
            wanted.in_order = in_order;
            fill(&wanted, &listed, in_order, page_size, reading).await?
        };
        let (experiments, next_page_token) = page.finish(fingerprint)?;
        Ok(Experiments { experiments, next_page_token })
    }

    /// The workspace's experiments in these stages that may pass; only those whose names begin as the filter says are read. A request
    /// per MB of names.
    async fn experiments_listed(
        &self,
        workspace: &Workspace,
        visible: &Visible,
        view: ViewType,
        filter: &ExperimentFilter,
    ) -> Result<Vec<Listed>> {
        let workspace = Name::from(workspace.as_str());
        let range = match (filter.name_beginning(), view) {
            (Some(name), _) => rows::ExperimentName::all(&workspace).beginning(&Name::from(name)),
            (None, ViewType::ActiveOnly) => ExperimentsByStage::all(&workspace).stage(&Stage::Active).range(),
            (None, ViewType::DeletedOnly) => ranges::experiments_deleted(&workspace),
            (None, ViewType::All) => ExperimentsByStage::all(&workspace).range(),
        };
        let of_view = |listed: &Listed| match view {
            ViewType::ActiveOnly => listed.stage == Stage::Active,
            ViewType::DeletedOnly => listed.stage != Stage::Active,
            ViewType::All => true,
        };
        let mut pages = std::pin::pin!(listing::pages(&self.table, Query::of(range)));
        // One that is deleted or restored between two pages of the index may stand on both.
        let (mut listed, mut seen) = (Vec::new(), HashSet::new());
        while let Some(rows) = pages.try_next().await? {
            let mut may_pass = read_all(&rows, "the name of an experiment", Listed::by_creation)?;
            may_pass.retain(|one| of_view(one) && visible.shows(&Guarded::Experiment(one.id)) && one.may_pass(filter));
            listed.extend(may_pass.into_iter().filter(|one| seen.insert(one.id)));
        }
        Ok(listed)
    }
}

/// What an experiment on a page has to be.
pub(super) struct Wanted<'a> {
    pub(super) store: Store,
    pub(super) workspace: &'a Workspace,
    pub(super) filter: ExperimentFilter,
    pub(super) order: ExperimentOrder,
    pub(super) after: Option<SortKey>,
    view: ViewType,
    /// Whether candidates come in the order of the search. Then each stands where its list has it, and the next page goes on behind
    /// that place, even if the experiment was changed meanwhile.
    in_order: bool,
}

impl Candidates for Wanted<'_> {
    type Listed = Listed;
    type Found = tracking::Experiment;
    type Entity = tracking::Experiment;

    async fn read(&self, listed: &[Listed]) -> Result<Vec<(SortKey, tracking::Experiment, usize)>> {
        let keys: Vec<_> = listed.iter().map(|listed| rows::Experiment::key(&listed.id)).collect();
        let items = self.store.table.get_many(&keys).await?;
        let experiments = listed.iter().zip(&keys).filter_map(|(listed, key)| Some((listed, items.get(key)?)));
        let experiments = experiments.map(|(listed, item)| async move {
            let experiment = self.store.experiment_whole(self.workspace, listed.id, item).await?;
            Ok::<_, Error>((listed, Searched { id: listed.id, experiment }))
        });
        let mut experiments = stream::iter(experiments.collect::<Vec<_>>()).buffered(AT_ONCE);
        let (mut found, mut pace) = (Vec::new(), Pace::default());
        while let Some((listed, searched)) = experiments.try_next().await? {
            pace.keep().await;
            let key = if self.in_order { self.order.key(listed) } else { self.order.key(&searched) };
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

/// An experiment as a search sees it.
struct Searched {
    id: ExperimentId,
    experiment: tracking::Experiment,
}

impl Searched {
    /// About how many bytes it has.
    fn size(&self) -> usize {
        let tags: usize = self.experiment.tags.iter().map(|tag| tag.key.len() + tag.value.len()).sum();
        self.experiment.name.len() + self.experiment.artifact_location.len() + tags
    }
}

impl ExperimentFields for Searched {
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
