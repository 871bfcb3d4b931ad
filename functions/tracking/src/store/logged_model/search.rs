//! Searches of logged models.
//!
//! Params, tags and metrics of logged models are not indexed, because an experiment has few models
//! compared with its runs. There are two lists: the newest models of an experiment, and the models
//! of a run. Searches that neither list can answer read all models of their experiments, and keep
//! one page of them.

use std::cmp::Reverse;

use access::Granted;
use entities::listing::{CooperativeYield, FirstEntities, ReadBudget, ResponsePage};
use entities::{ModelItems, ModelLocation, group_by_model, model_whole, read_all, read_model_segments, read_models};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::index::{LoggedModelsByStage, LoggedModelsOfRun};
use key_schema::{Field, KeyRange, Stage, list_positions, rows};
use mlflow_api::logged_models::SearchLoggedModelsResponse;
use mlflow_api::requests::logged_models::SearchLoggedModels;
use mlflow_api::{Error, ExperimentId, ModelId, Result, limits};
use search::{ModelFilter, ModelOrderBy, ModelPageTokens, SortKey, parse_model_filter, parse_model_order};
use table::{Item, Query};

use super::lifecycle::{check_point_bytes, is_deleted};
use super::search_criteria::{LoggedModelCriteria, MatchingModel, SearchableLoggedModel};
use crate::store::Store;
use crate::store::run_search::known_experiments;

/// Page size for requests with `max_results = 0` (`SEARCH_LOGGED_MODEL_MAX_RESULTS_DEFAULT`).
const DEFAULT_PAGE_SIZE: usize = 100;
/// Maximum page size. The number of models has to be limited because each one is returned with all
/// its points. MLflow accepts any page size. This server reduces larger sizes to this number, and
/// returns the remaining models on further pages.
const MAX_PAGE_SIZE: i64 = 1_000;
/// Concurrency of reading experiments, and of reading the segments of models.
const CONCURRENCY: usize = 8;
/// Batch size for reading the models of a run.
const BATCH_SIZE: usize = 50;

/// Page size for requests without `max_results` (`SearchLoggedModels` in `service.proto`).
const PAGE_SIZE_IF_MISSING: i64 = 50;

/// A parsed search of logged models.
#[derive(Clone, Debug)]
pub struct LoggedModelSearch {
    /// The experiments in the request, without duplicates.
    pub experiments: Vec<ExperimentId>,
    criteria: LoggedModelCriteria,
    /// The part of the request that its page tokens are bound to: experiments, filter and order as
    /// the client sent them.
    token_binding: (Vec<String>, String, Vec<ModelOrderBy>),
}

impl LoggedModelSearch {
    /// Parses a request. Errors are reported in MLflow's order: datasets, token, filter,
    /// experiments, order.
    pub fn read(asked: SearchLoggedModels) -> Result<Self> {
        if asked.datasets.iter().any(|dataset| dataset.dataset_name.is_empty()) {
            return Err(Error::invalid("`dataset_name` in the `datasets` clause must be specified."));
        }
        let datasets: Vec<_> =
            asked.datasets.into_iter().map(|dataset| (dataset.dataset_name, dataset.dataset_digest)).collect();
        let order_by = asked.order_by.into_iter().map(|clause| ModelOrderBy {
            field: clause.field_name,
            ascending: clause.ascending.unwrap_or(true),
            dataset_name: clause.dataset_name,
            dataset_digest: clause.dataset_digest,
        });
        let named = (asked.experiment_ids, asked.filter, order_by.collect());
        let after = page_tokens(&named).after(&asked.page_token)?;
        let filter = parse_model_filter(&named.1, &datasets)?;
        let experiments = known_experiments(&named.0)?;
        let order = parse_model_order(&named.2)?;
        let page_size = page_size(asked.max_results.map_or(PAGE_SIZE_IF_MISSING, i64::from))?;
        let wanted = LoggedModelCriteria { filter, order, after, page_size, hides_runs: false };
        Ok(Self { experiments, criteria: wanted, token_binding: named })
    }

    /// Returns the search, changed so that its response omits the runs of the models.
    #[must_use]
    pub fn hiding_runs(mut self) -> Self {
        self.criteria.hides_runs = true;
        self
    }

    /// Checks whether filter or order use the runs of the models.
    #[must_use]
    pub fn uses_runs(&self) -> bool {
        self.criteria.filter.asks_for_runs() || self.criteria.order.asks_for_runs()
    }
}

/// Returns the encoder of page tokens that belongs to a search.
fn page_tokens((experiment_ids, filter, order_by): &(Vec<String>, String, Vec<ModelOrderBy>)) -> ModelPageTokens<'_> {
    ModelPageTokens { experiment_ids, filter, order_by }
}

impl Store {
    /// Searches the logged models of these experiments.
    ///
    /// Without a filter, and in the order newest first, a search takes one request per experiment
    /// and one per 50 models of the page. With the filter `source_run_id = '…'`, it takes one
    /// request per experiment and one per 50 models of that run. Any other search reads all models
    /// of its experiments, including deleted ones, which takes one request and 128 read units per
    /// MB.
    ///
    /// Each model of the page that has more points than its document holds takes one more request.
    /// If filter or order use metrics, every model that is examined takes this request.
    pub async fn logged_model_search(
        &self,
        experiments: &[Granted<ExperimentId>],
        search: LoggedModelSearch,
    ) -> Result<SearchLoggedModelsResponse> {
        let LoggedModelSearch { experiments: _, criteria: wanted, token_binding: asked } = search;
        let experiments: Vec<_> = experiments.iter().map(|experiment| **experiment).collect();
        let pages = page_tokens(&asked);

        let reading = ReadBudget::default();
        let store = Self { table: reading.of(&self.table), ..self.clone() };
        let page = if wanted.filter == ModelFilter::default() && wanted.order.is_newest_first() {
            store.newest_models(&experiments, &wanted, reading).await?
        } else {
            // A filter by an empty run id cannot use a list, because models without a source run
            // are not in the lists by run.
            let run = wanted.filter.source_run().filter(|run| !run.is_empty());
            let mut top = FirstEntities::new(wanted.page_size);
            let of_each: Vec<_> = experiments.iter().map(|id| store.passing_models(*id, run, &wanted)).collect();
            let mut of_each = stream::iter(of_each).buffer_unordered(CONCURRENCY);
            while let Some(found) = of_each.try_next().await? {
                top.merge(found);
            }
            store.models_of_page(top.finish(), &wanted).await?
        };
        let (models, next_page_token) = page.finish_with(|key| Ok(pages.token(key)))?;
        Ok(SearchLoggedModelsResponse { models, next_page_token })
    }

    /// Returns a page of the newest models. The list alone determines which models are on the page.
    async fn newest_models(
        &self,
        experiments: &[ExperimentId],
        wanted: &LoggedModelCriteria,
        mut reading: ReadBudget,
    ) -> Result<ResponsePage<SortKey>> {
        let after = wanted.after.as_ref().and_then(SortKey::latest_first);
        let after = after.and_then(|(created, model)| Some((Reverse(created), ModelId::parse(model)?)));
        let first = after.as_ref().map(|(created, model)| list_positions::newest_first(created.0, model.as_str()));
        // Two entries are read in addition to the page: the list may include the last model of the
        // previous page, and one more entry shows whether there is another page.
        let most = wanted.page_size.saturating_add(2);
        let lists = experiments.iter().map(|experiment| {
            let range = LoggedModelsByStage::all(experiment).stage(&Stage::Active).range();
            self.model_list(*experiment, range.starting(first.as_deref().unwrap_or_default()), most)
        });
        let lists: Vec<_> = lists.collect();
        let lists: Vec<Vec<_>> = stream::iter(lists).buffered(CONCURRENCY).try_collect().await?;
        let mut listed: Vec<_> = lists.into_iter().flatten().collect();
        let place = |(created, at): &(i64, ModelLocation)| (Reverse(*created), at.model.clone());
        listed.retain(|listed| after.as_ref().is_none_or(|after| place(listed) > *after));
        listed.sort_by_cached_key(place);
        let mut page = ResponsePage::new(wanted.page_size);
        let mut rest = listed.as_slice();
        while !rest.is_empty() && !page.is_full() {
            let (portion, others) = rest.split_at(reading.portion(page.missing().min(rest.len())));
            let places: Vec<_> = portion.iter().map(|(_, at)| at.clone()).collect();
            let mut found = Vec::new();
            for (at, items) in read_models(&self.table, &places).await? {
                // The model may have been deleted since it was listed.
                if !is_deleted(&items.model) {
                    let key = wanted.order.key(&SearchableLoggedModel::of(&at, &items)?);
                    let bytes = items.size();
                    found.push((key, MatchingModel { at, items }, bytes));
                }
            }
            reading.portion_was(portion.len());
            rest = others;
            self.add_models(found, &mut page, wanted).await?;
            if reading.is_used_up() && !page.is_empty() {
                break;
            }
        }
        if !rest.is_empty() {
            page.ends_here();
        }
        Ok(page)
    }

    /// Reads up to `most` entries of a list of models, with their creation times.
    async fn model_list(
        &self,
        experiment: ExperimentId,
        range: KeyRange,
        most: usize,
    ) -> Result<Vec<(i64, ModelLocation)>> {
        let mut query = Query::of(range.clone()).limit(most);
        let mut listed = Vec::new();
        loop {
            let page = self.table.query_page(&query).await?;
            let read = |item: &Item| list_positions::created_and_model(item.sort_key(&range)?);
            let models = read_all(&page.items, "a place in a list of logged models", read)?;
            listed.extend(models.into_iter().map(|(created, model)| (created, ModelLocation { experiment, model })));
            match page.next {
                Some(next) if listed.len() < most => query = query.starting_at(next),
                _ => return Ok(listed),
            }
        }
    }

    /// Returns the first models of an experiment that pass the filter. If a run is given, only the
    /// models that it created are read.
    async fn passing_models(
        &self,
        experiment: ExperimentId,
        run: Option<&str>,
        wanted: &LoggedModelCriteria,
    ) -> Result<entities::listing::SelectedEntities<SortKey, MatchingModel>> {
        let (mut top, mut pace) = (FirstEntities::new(wanted.page_size), CooperativeYield::default());
        if let Some(run) = run {
            let list = LoggedModelsOfRun::all(&experiment).stage(&Stage::Active).run(&Field::from(run));
            let listed = self.model_list(experiment, list.range(), usize::MAX).await?;
            let places: Vec<_> = listed.into_iter().map(|(_, at)| at).collect();
            for places in places.chunks(BATCH_SIZE) {
                for (at, items) in read_models(&self.table, places).await? {
                    pace.keep().await;
                    wanted.add_if_passing(at, items, &mut top)?;
                }
            }
            return Ok(top.finish());
        }
        let mut query = Query::of(rows::LoggedModel::all(&experiment));
        let mut unfinished = None;
        loop {
            let read = self.table.query_page(&query).await?;
            let mut groups = group_by_model(experiment, unfinished.take(), read.items)?;
            if read.next.is_some() {
                unfinished = groups.pop();
            }
            let groups: Vec<_> = groups.into_iter().map(|(at, items)| self.with_segments(at, items, wanted)).collect();
            let mut groups = stream::iter(groups).buffered(CONCURRENCY);
            while let Some((at, items)) = groups.try_next().await? {
                pace.keep().await;
                wanted.add_if_passing(at, items, &mut top)?;
            }
            match read.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(top.finish()),
            }
        }
    }

    /// Returns a model, including the segments of its points if filter or order use them.
    async fn with_segments(
        &self,
        at: ModelLocation,
        mut items: ModelItems,
        wanted: &LoggedModelCriteria,
    ) -> Result<(ModelLocation, ModelItems)> {
        if wanted.uses_metrics() && !is_deleted(&items.model) {
            items.segments = read_model_segments(&self.table, &at, items.metrics.as_ref()).await?;
        }
        Ok((at, items))
    }

    /// Returns a page of the models that were found.
    async fn models_of_page(
        &self,
        found: entities::listing::SelectedEntities<SortKey, MatchingModel>,
        wanted: &LoggedModelCriteria,
    ) -> Result<ResponsePage<SortKey>> {
        let mut page = ResponsePage::new(wanted.page_size);
        self.add_models(found.entities, &mut page, wanted).await?;
        if found.end.is_some() {
            page.ends_here();
        }
        Ok(page)
    }

    /// Adds models to a page while there is room.
    async fn add_models(
        &self,
        found: Vec<(SortKey, MatchingModel, usize)>,
        page: &mut ResponsePage<SortKey>,
        wanted: &LoggedModelCriteria,
    ) -> Result<()> {
        let found: Vec<_> = found.into_iter().map(|(key, found, _)| self.with_all_points(key, found)).collect();
        let mut found = stream::iter(found).buffered(CONCURRENCY);
        while !page.is_full()
            && let Some((key, MatchingModel { at, items })) = found.try_next().await?
        {
            let mut model = model_whole(&at, &items)?;
            if wanted.hides_runs {
                model.hide_runs();
            }
            page.add(key, &model)?;
        }
        Ok(())
    }

    /// Returns a model of the page, including the segments of its points, because the response
    /// contains all points.
    async fn with_all_points(&self, key: SortKey, mut found: MatchingModel) -> Result<(SortKey, MatchingModel)> {
        let MatchingModel { at, items } = &mut found;
        if items.segments.is_empty() {
            items.segments = read_model_segments(&self.table, at, items.metrics.as_ref()).await?;
        }
        check_point_bytes(at, items)?;
        Ok((key, found))
    }
}

/// Returns the page size for `max_results`.
fn page_size(max_results: i64) -> Result<usize> {
    match max_results {
        0 => Ok(DEFAULT_PAGE_SIZE),
        1.. => Ok(usize::try_from(max_results.min(MAX_PAGE_SIZE)).unwrap_or(DEFAULT_PAGE_SIZE)),
        _ => limits::max_results(max_results).map(|()| DEFAULT_PAGE_SIZE),
    }
}
