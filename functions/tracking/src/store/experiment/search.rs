//! Searches of experiments.

use std::collections::HashSet;

use access::{Guard, Resource, Visibility};
use entities::attributes::NAME;
use entities::listing::{ReadBudget, fill};
use entities::read_all;
use futures::stream::TryStreamExt;
use key_schema::index::ExperimentsByStage;
use key_schema::{Name, Stage, ranges, rows};
use mlflow_api::tracking::{SearchExperimentsResponse, ViewType};
use mlflow_api::{Result, Workspace, limits};
use search::{ExperimentFilter, Fingerprint, decode_page_token, parse_experiment_search};
use table::Query;

use super::list_entry::{ExperimentEntry, is_known_from_list};
use super::search_criteria::ExperimentCriteria;
use super::time_lists::TimeList;
use crate::store::Store;

/// The parameters of a search of experiments, as the client sent them.
#[derive(Clone, Debug)]
pub struct ExperimentSearch {
    /// Which lifecycle stages to show.
    pub view: ViewType,
    /// Filter string.
    pub filter: String,
    /// Order clauses.
    pub order_by: Vec<String>,
    /// Page size.
    pub max_results: i64,
    /// Token that the previous page returned.
    pub page_token: String,
}

impl Store {
    /// Searches experiments.
    ///
    /// The default search, for active experiments by time, takes two requests. It costs one read
    /// unit for each experiment on the page, and one for each that the filter rejects.
    ///
    /// Any other search costs one read unit per 30 experiments of the workspace, or per 30
    /// experiments whose names have the prefix in the filter. After that, it reads the experiments
    /// that may match, 100 per request. These are only the experiments of the page, unless the
    /// filter or the order uses the time of the last change, or the filter uses tags. In these
    /// cases, all experiments that may match are read.
    ///
    /// Each experiment with tags that are too large for its document takes one more request.
    pub async fn experiment_search(
        &self,
        workspace: &Workspace,
        visible: &Visibility,
        search: &ExperimentSearch,
    ) -> Result<SearchExperimentsResponse> {
        limits::max_results(search.max_results)?;
        let (filter, order) = parse_experiment_search(&search.filter, &search.order_by)?;
        let fingerprint = Fingerprint::of_experiment_search(&search.filter, &search.order_by, search.view);
        let after = decode_page_token(fingerprint, &search.page_token)?;
        let page_size = usize::try_from(search.max_results).unwrap_or(usize::MAX);

        let reading = ReadBudget::default();
        let store = Self { table: reading.of(&self.table), ..self.clone() };
        let mut wanted =
            ExperimentCriteria { store, workspace, filter, order, after, view: search.view, is_list_sorted: true };
        let few = visible.enumerate_guards(Resource::Experiment);
        let list = TimeList::of(search.view, &wanted.filter, &wanted.order).filter(|_| few.is_none());
        let page = if let Some(list) = list {
            list.page(&wanted, visible, page_size, reading).await?
        } else {
            let mut listed = match few {
                Some(few) => self.experiments_of(workspace, &few, search.view, &wanted.filter).await?,
                None => self.list_experiments(workspace, visible, search.view, &wanted.filter).await?,
            };
            let ExperimentCriteria { filter, order, after, .. } = &wanted;
            let in_order = is_known_from_list(filter, order) && listed.iter().all(|listed| listed.name.is_some());
            if in_order {
                listed.sort_by_cached_key(|listed| order.key(listed));
                listed.retain(|listed| after.as_ref().is_none_or(|after| order.key(listed) > *after));
            }
            wanted.is_list_sorted = in_order;
            fill(&wanted, &listed, in_order, page_size, reading).await?
        };
        let (experiments, next_page_token) = page.finish(fingerprint)?;
        Ok(SearchExperimentsResponse { experiments, next_page_token })
    }

    /// Lists the experiments of the workspace that are in the view and may pass the filter. If the
    /// filter requires a prefix of the name, only names with this prefix are read. Takes one
    /// request per MB of names.
    async fn list_experiments(
        &self,
        workspace: &Workspace,
        visible: &Visibility,
        view: ViewType,
        filter: &ExperimentFilter,
    ) -> Result<Vec<ExperimentEntry>> {
        let workspace = Name::from(workspace.as_str());
        let range = match (filter.name_beginning(), view) {
            (Some(name), _) => rows::ExperimentName::all(&workspace).beginning(&Name::from(name)),
            (None, ViewType::ActiveOnly) => ExperimentsByStage::all(&workspace).stage(&Stage::Active).range(),
            (None, ViewType::DeletedOnly) => ranges::experiments_deleted(&workspace),
            (None, ViewType::All) => ExperimentsByStage::all(&workspace).range(),
        };
        let mut pages = std::pin::pin!(entities::listing::pages(&self.table, Query::of(range)));
        // The set removes duplicates, because an experiment that is deleted or restored while the
        // index is read may appear on two pages of the index.
        let (mut listed, mut seen) = (Vec::new(), HashSet::new());
        while let Some(rows) = pages.try_next().await? {
            let mut may_pass = read_all(&rows, "the name of an experiment", ExperimentEntry::by_creation)?;
            may_pass.retain(|one| one.is_in(view) && visible.shows(&Guard::Experiment(one.id)) && one.may_pass(filter));
            listed.extend(may_pass.into_iter().filter(|one| seen.insert(one.id)));
        }
        Ok(listed)
    }

    /// Returns those of the given experiments that are in the view and may pass the filter. For
    /// callers who can see only a few experiments, this is faster than reading the whole list.
    /// Takes two requests.
    async fn experiments_of(
        &self,
        workspace: &Workspace,
        few: &[Guard],
        view: ViewType,
        filter: &ExperimentFilter,
    ) -> Result<Vec<ExperimentEntry>> {
        let key = |guarded: &Guard| match guarded {
            Guard::Experiment(experiment) => Some(rows::Experiment::key(experiment)),
            _ => None,
        };
        let items = self.table.get_many(&few.iter().filter_map(key).collect::<Vec<_>>()).await?;
        let ids: HashSet<_> = items.keys().filter_map(rows::Experiment::parse).map(|row| row.experiment).collect();
        let names = items.values().filter_map(|item| item.get(NAME));
        let names: Vec<_> =
            names.map(|name| rows::ExperimentName::key(&workspace.as_str().into(), &Name::from(name))).collect();
        let rows: Vec<_> = self.table.get_many(&names).await?.into_values().collect();
        let mut listed = read_all(&rows, "the name of an experiment", ExperimentEntry::by_creation)?;
        // The entry was read by name, and the name may have been reused by another experiment in
        // the meantime.
        listed.retain(|one| ids.contains(&one.id) && one.is_in(view) && one.may_pass(filter));
        Ok(listed)
    }
}

impl ExperimentEntry {
    fn is_in(&self, view: ViewType) -> bool {
        match view {
            ViewType::ActiveOnly => self.stage == Stage::Active,
            ViewType::DeletedOnly => self.stage != Stage::Active,
            ViewType::All => true,
        }
    }
}
