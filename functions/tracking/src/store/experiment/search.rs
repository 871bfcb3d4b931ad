//! Searching experiments.

use std::collections::HashSet;

use access::{Guarded, Visible};
use entities::{find, read_all};
use key_schema::index::ExperimentsByStage;
use key_schema::{Descending, Name, Stage, ranges, rows};
use mlflow_api::tracking::{self, Experiments, ViewType};
use mlflow_api::{ExperimentId, Result, Workspace, limits};
use search::{
    ExperimentFields, ExperimentFilter, ExperimentNumber, ExperimentOrder, ExperimentPredicate, ExperimentSortBy,
    Fingerprint, decode_page_token, encode_page_token, parse_experiment_search,
};
use table::{Item, Query};

use crate::store::Store;

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

        let mut listed = self.experiments_listed(workspace, search.view, filter.name_beginning()).await?;
        listed.retain(|listed| visible.shows(&Guarded::Experiment(listed.id)) && listed.may_pass(&filter));
        let mut last_of_page = None;
        if is_known_from_index(&filter, &order) && listed.iter().all(|listed| listed.name.is_some()) {
            listed.sort_by_cached_key(|listed| order.key(listed));
            listed.retain(|listed| after.as_ref().is_none_or(|after| order.key(listed) > *after));
            if listed.len() > page_size {
                listed.truncate(page_size);
                // Whether it is still there or not.
                last_of_page = listed.last().map(|listed| order.key(listed));
            }
        }
        let keys: Vec<_> = listed.iter().map(|listed| rows::Experiment::key(&listed.id)).collect();
        let items = self.table.get_many(&keys).await?;
        let experiments = listed.iter().zip(&keys).filter_map(|(listed, key)| Some((listed.id, items.get(key)?)));
        let experiments = experiments.map(|(id, item)| self.experiment_whole(workspace, id, item));
        let mut found: Vec<_> = futures::future::try_join_all(experiments)
            .await?
            .into_iter()
            .filter(|experiment| search.view.shows(experiment.lifecycle_stage))
            .filter_map(Searched::new)
            .filter(|experiment| filter.matches(experiment))
            .map(|experiment| (order.key(&experiment), experiment.experiment))
            .filter(|(key, _)| after.as_ref().is_none_or(|after| key > after))
            .collect();
        found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));

        if found.len() > page_size {
            found.truncate(page_size);
            last_of_page = found.last().map(|(key, _)| key.clone());
        }
        let next_page_token = last_of_page.map(|key| encode_page_token(fingerprint, &key)).transpose()?;
        Ok(Experiments { experiments: found.into_iter().map(|(_, experiment)| experiment).collect(), next_page_token })
    }

    /// The workspace's experiments in these stages; only those whose names begin so, and perhaps more. A request per MB of
    /// names.
    async fn experiments_listed(
        &self,
        workspace: &Workspace,
        view: ViewType,
        name: Option<&str>,
    ) -> Result<Vec<Listed>> {
        let workspace = Name::from(workspace.as_str());
        let range = match (name, view) {
            (Some(name), _) => rows::ExperimentName::all(&workspace).beginning(&Name::from(name)),
            (None, ViewType::ActiveOnly) => ExperimentsByStage::all(&workspace).stage(&Stage::Active).range(),
            (None, ViewType::DeletedOnly) => ranges::experiments_deleted(&workspace),
            (None, ViewType::All) => ExperimentsByStage::all(&workspace).range(),
        };
        let rows = self.table.query(Query::of(range)).await?;
        let of_view = |listed: &Listed| match view {
            ViewType::ActiveOnly => listed.stage == Stage::Active,
            ViewType::DeletedOnly => listed.stage != Stage::Active,
            ViewType::All => true,
        };
        // One that is deleted or restored between two pages of the index may stand on both.
        let mut seen = HashSet::new();
        let listed = read_all(&rows, "the name of an experiment", Listed::of)?.into_iter();
        Ok(listed.filter(of_view).filter(|listed| seen.insert(listed.id)).collect())
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
    fn new(experiment: tracking::Experiment) -> Option<Self> {
        let id = ExperimentId::from_number(experiment.experiment_id.parse().ok()?)?;
        Some(Self { id, experiment })
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
