//! Searching experiments.

use std::collections::HashSet;

use access::{Guarded, Visible};
use entities::{find, read_all};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::index::ExperimentsByStage;
use key_schema::{Descending, Name, Stage, ranges, rows};
use listing::{Candidates, Pace, Reading, fill};
use mlflow_api::tracking::{self, Experiments, ViewType};
use mlflow_api::{Error, ExperimentId, Result, Workspace, limits};
use search::{
    ExperimentFields, ExperimentFilter, ExperimentNumber, ExperimentOrder, ExperimentPredicate, ExperimentSortBy,
    Fingerprint, SortKey, decode_page_token, parse_experiment_search,
};
use table::{Item, Query};

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

/// What the index of a workspace's experiments says of one.
#[derive(Clone)]
struct Listed {
    id: ExperimentId,
    created: i64,
    /// Its stage, as the index has it.
    stage: Stage,
    /// Its name; missing where the key has no room for all of it.
    name: Option<String>,
}

impl Listed {
    /// From an entry of the index, or from the row of a name.
    fn of(row: &Item) -> Option<Self> {
        let ExperimentsByStage { stage, created: Descending(created), experiment: id } = row.entry()?;
        let name = rows::ExperimentName::parse(&row.key()?).map(|row| row.name.0);
        Some(Self { id, created, stage, name })
    }

    /// Whether it may pass a filter, as far as the index says.
    fn may_pass(&self, filter: &ExperimentFilter) -> bool {
        filter.predicates.iter().all(|predicate| match predicate {
            ExperimentPredicate::Name(_) if self.name.is_none() => true,
            ExperimentPredicate::Name(_)
            | ExperimentPredicate::Id { .. }
            | ExperimentPredicate::Number { attribute: ExperimentNumber::CreationTime, .. } => predicate.matches(self),
            ExperimentPredicate::Number { .. } | ExperimentPredicate::Tag { .. } => true,
        })
    }
}

impl Store {
    /// Searches experiments. A read unit per 30 experiments of the workspace, or only for those whose names begin as the filter
    /// says; then a request per 100 of those that the index does not rule out: a page of them, unless the filter asks for tags or
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

        let mut listed = self.experiments_listed(workspace, visible, search.view, &filter).await?;
        let in_order = is_known_from_index(&filter, &order) && listed.iter().all(|listed| listed.name.is_some());
        if in_order {
            listed.sort_by_cached_key(|listed| order.key(listed));
            listed.retain(|listed| after.as_ref().is_none_or(|after| order.key(listed) > *after));
        }
        let reading = Reading::default();
        let store = Self { table: reading.of(&self.table), ..self.clone() };
        let wanted = Wanted { store, workspace, filter, order, after, view: search.view };
        let page = fill(&wanted, &listed, in_order, page_size, reading).await?;
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
            let mut may_pass = read_all(&rows, "the name of an experiment", Listed::of)?;
            may_pass.retain(|one| of_view(one) && visible.shows(&Guarded::Experiment(one.id)) && one.may_pass(filter));
            listed.extend(may_pass.into_iter().filter(|one| seen.insert(one.id)));
        }
        Ok(listed)
    }
}

/// What an experiment on a page has to be.
struct Wanted<'a> {
    store: Store,
    workspace: &'a Workspace,
    filter: ExperimentFilter,
    order: ExperimentOrder,
    after: Option<SortKey>,
    view: ViewType,
}

impl Candidates for Wanted<'_> {
    type Listed = Listed;
    type Found = tracking::Experiment;
    type Entity = tracking::Experiment;

    async fn read(&self, listed: &[Listed]) -> Result<Vec<(SortKey, tracking::Experiment, usize)>> {
        let keys: Vec<_> = listed.iter().map(|listed| rows::Experiment::key(&listed.id)).collect();
        let items = self.store.table.get_many(&keys).await?;
        let experiments = listed.iter().zip(&keys).filter_map(|(listed, key)| Some((listed.id, items.get(key)?)));
        let experiments = experiments.map(|(id, item)| async move {
            let experiment = self.store.experiment_whole(self.workspace, id, item).await?;
            Ok::<_, Error>(Searched { id, experiment })
        });
        let mut experiments = stream::iter(experiments.collect::<Vec<_>>()).buffered(AT_ONCE);
        let (mut found, mut pace) = (Vec::new(), Pace::default());
        while let Some(searched) = experiments.try_next().await? {
            pace.keep().await;
            let key = self.order.key(&searched);
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

/// Whether the index says all that a filter and an order ask: names, times of creation, ids.
fn is_known_from_index(filter: &ExperimentFilter, order: &ExperimentOrder) -> bool {
    let of_filter = |predicate: &ExperimentPredicate| match predicate {
        ExperimentPredicate::Number { attribute, .. } => *attribute == ExperimentNumber::CreationTime,
        ExperimentPredicate::Tag { .. } => false,
        ExperimentPredicate::Name(_) | ExperimentPredicate::Id { .. } => true,
    };
    let by_change = ExperimentSortBy::Number(ExperimentNumber::LastUpdateTime);
    filter.predicates.iter().all(of_filter) && order.terms.iter().all(|term| term.by != by_change)
}

impl ExperimentFields for Listed {
    fn id(&self) -> ExperimentId {
        self.id
    }

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    fn number(&self, attribute: ExperimentNumber) -> i64 {
        match attribute {
            ExperimentNumber::CreationTime => self.created,
            ExperimentNumber::LastUpdateTime => 0,
        }
    }

    fn tag(&self, _: &str) -> Option<&str> {
        None
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
