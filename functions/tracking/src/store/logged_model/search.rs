//! Searching logged models.
//!
//! There is no index of their params, tags and metrics: an experiment has few models beside its runs. The newest are found in a
//! list, and those of a run in another; every other search reads the models of its experiments whole. Of what it reads it
//! keeps a page.

use std::cmp::Reverse;

use access::Granted;
use entities::{
    ModelItems, ModelLocation, find, group_by_model, model_whole, read_all, read_model_segments, read_models,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::index::{LoggedModelsByStage, LoggedModelsOfRun};
use key_schema::{Field, KeyRange, Stage, place, rows};
use mlflow_api::logged_models::{LoggedModel, LoggedModels};
use mlflow_api::requests::logged_models::SearchLoggedModels;
use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{Error, ExperimentId, ModelId, Result, limits};
use search::{
    MeasuredPoint, ModelCode, ModelFields, ModelFilter, ModelOrder, ModelOrderBy, ModelPages, ModelText, ModelTime,
    SortKey, parse_model_filter, parse_model_order,
};
use table::{Item, Query};

use super::lifecycle::is_deleted;
use crate::store::Store;
use crate::store::run_search::known_experiments;

/// Models on a page where the request asks for none (`SEARCH_LOGGED_MODEL_MAX_RESULTS_DEFAULT`).
const DEFAULT_PAGE: usize = 100;
/// Models on a page at most, each with all its points: MLflow takes any number, here the rest comes on further pages.
const LARGEST_PAGE: i64 = 1_000;
/// Experiments read at a time.
const AT_ONCE: usize = 8;
/// Models of a run that are read at a time.
const PORTION: usize = 50;

/// Models on a page where the request does not say (`SearchLoggedModels` in `service.proto`).
const UNSAID_PAGE: i64 = 50;

/// A search over logged models.
#[derive(Clone, Debug)]
pub struct LoggedModelSearch {
    /// The experiments it names, each once.
    pub experiments: Vec<ExperimentId>,
    wanted: Wanted,
    /// What its page tokens are bound to: experiments, filter and order as they were asked.
    asked: (Vec<String>, String, Vec<ModelOrderBy>),
}

impl LoggedModelSearch {
    /// Reads what was asked. Mistakes come to light in MLflow's order: datasets, token, filter, experiments, order.
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
        let after = pages(&named).after(&asked.page_token)?;
        let filter = parse_model_filter(&named.1, &datasets)?;
        let experiments = known_experiments(&named.0)?;
        let order = parse_model_order(&named.2)?;
        let page_size = page_size(asked.max_results.map_or(UNSAID_PAGE, i64::from))?;
        Ok(Self { experiments, wanted: Wanted { filter, order, after, page_size }, asked: named })
    }
}

/// The pages of a search.
fn pages((experiment_ids, filter, order_by): &(Vec<String>, String, Vec<ModelOrderBy>)) -> ModelPages<'_> {
    ModelPages { experiment_ids, filter, order_by }
}

/// What a model on a page has to be, and where the page begins.
#[derive(Clone, Debug)]
struct Wanted {
    filter: ModelFilter,
    order: ModelOrder,
    after: Option<SortKey>,
    page_size: usize,
}

impl Wanted {
    /// Whether points of metrics decide about a model.
    fn asks_for_metrics(&self) -> bool {
        self.filter.asks_for_metrics() || self.order.asks_for_metrics()
    }
}

impl Store {
    /// Searches logged models of these experiments.
    ///
    /// Without a filter, newest first: one request an experiment and one per 50 models of the page. With `source_run_id = '…'`: the
    /// same, for all models of that run. Any other search reads all models of its experiments, deleted ones too: a request
    /// and 128 read units per MB. In each case one request more for each model of the page that has more points than its document
    /// holds, or for each model looked at if the search asks for metrics.
    pub async fn logged_model_search(
        &self,
        experiments: &[Granted<ExperimentId>],
        search: LoggedModelSearch,
    ) -> Result<LoggedModels> {
        let LoggedModelSearch { experiments: _, wanted, asked } = search;
        let experiments: Vec<_> = experiments.iter().map(|experiment| **experiment).collect();
        let pages = pages(&asked);
        let page_size = wanted.page_size;

        let mut page = if wanted.filter == ModelFilter::default() && wanted.order.is_newest_first() {
            self.newest_models(&experiments, &wanted).await?
        } else {
            // Models that no run made are in no list.
            let run = wanted.filter.source_run().filter(|run| !run.is_empty());
            let pages: Vec<_> = experiments.iter().map(|id| self.models_that_pass(*id, run, &wanted)).collect();
            let mut pages = stream::iter(pages).buffer_unordered(AT_ONCE);
            let mut page = Page::new(page_size);
            while let Some(other) = pages.try_next().await? {
                page.take(other.found);
            }
            page.finish();
            page
        };
        let last = page.found.last().filter(|_| page.has_more);
        let next_page_token = last.map(|found| pages.token(&found.key));
        // One of the newest may have been deleted since it was listed.
        page.found.retain(|found| !is_deleted(&found.items.model));
        let models: Vec<_> = page.found.into_iter().map(|found| self.model_of_page(found)).collect();
        Ok(LoggedModels { models: stream::iter(models).buffered(AT_ONCE).try_collect().await?, next_page_token })
    }

    /// A page of the newest models. The list says all that decides which they are.
    async fn newest_models(&self, experiments: &[ExperimentId], wanted: &Wanted) -> Result<Page> {
        let after = wanted.after.as_ref().and_then(SortKey::latest_first);
        let after = after.and_then(|(created, model)| Some((Reverse(created), ModelId::parse(model)?)));
        let first = after.as_ref().map(|(created, model)| place::newest_first(created.0, model.as_str()));
        // The last one of the page before may be listed, too; and one more shows whether there is another page.
        let most = wanted.page_size.saturating_add(2);
        let lists = experiments.iter().map(|experiment| {
            let range = LoggedModelsByStage::all(experiment).stage(&Stage::Active).range();
            self.model_list(*experiment, range.starting(first.as_deref().unwrap_or_default()), most)
        });
        let lists: Vec<_> = lists.collect();
        let lists: Vec<Vec<_>> = stream::iter(lists).buffered(AT_ONCE).try_collect().await?;
        let mut listed: Vec<_> = lists.into_iter().flatten().collect();
        let place = |(created, at): &(i64, ModelLocation)| (Reverse(*created), at.model.clone());
        listed.retain(|listed| after.as_ref().is_none_or(|after| place(listed) > *after));
        listed.sort_by_cached_key(place);
        let mut page = Page { has_more: listed.len() > wanted.page_size, ..Page::new(wanted.page_size) };
        let places: Vec<_> = listed.into_iter().take(wanted.page_size).map(|(_, at)| at).collect();
        for (at, items) in read_models(&self.table, &places).await? {
            let key = wanted.order.key(&Searched::of(&at, &items)?);
            page.found.push(Found { key, at, items });
        }
        Ok(page)
    }

    /// The models in a list, at most so many, with the times they were created.
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
            let read = |item: &Item| place::created_and_model(item.sort_key(&range)?);
            let models = read_all(&page.items, "a place in a list of logged models", read)?;
            listed.extend(models.into_iter().map(|(created, model)| (created, ModelLocation { experiment, model })));
            match page.next {
                Some(next) if listed.len() < most => query = query.starting_at(next),
                _ => return Ok(listed),
            }
        }
    }

    /// A page of the models of an experiment that pass: of those that this run made, or of all.
    async fn models_that_pass(&self, experiment: ExperimentId, run: Option<&str>, wanted: &Wanted) -> Result<Page> {
        let mut page = Page::new(wanted.page_size);
        if let Some(run) = run {
            let list = LoggedModelsOfRun::all(&experiment).stage(&Stage::Active).run(&Field::from(run));
            let listed = self.model_list(experiment, list.range(), usize::MAX).await?;
            let places: Vec<_> = listed.into_iter().map(|(_, at)| at).collect();
            for places in places.chunks(PORTION) {
                for (at, items) in read_models(&self.table, places).await? {
                    page.look_at(at, items, wanted)?;
                }
            }
            return Ok(page);
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
            let mut groups = stream::iter(groups).buffered(AT_ONCE);
            while let Some((at, items)) = groups.try_next().await? {
                page.look_at(at, items, wanted)?;
            }
            match read.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(page),
            }
        }
    }

    /// A model with the segments of its points, if they decide about it.
    async fn with_segments(
        &self,
        at: ModelLocation,
        mut items: ModelItems,
        wanted: &Wanted,
    ) -> Result<(ModelLocation, ModelItems)> {
        if wanted.asks_for_metrics() && !is_deleted(&items.model) {
            items.segments = read_model_segments(&self.table, &at, items.metrics.as_ref()).await?;
        }
        Ok((at, items))
    }

    /// A model of the page as it is answered, with all points of its metrics.
    async fn model_of_page(&self, found: Found) -> Result<LoggedModel> {
        let Found { at, mut items, .. } = found;
        if items.segments.is_empty() {
            items.segments = read_model_segments(&self.table, &at, items.metrics.as_ref()).await?;
        }
        model_whole(&at, &items)
    }
}

/// The number of models on a page.
fn page_size(max_results: i64) -> Result<usize> {
    match max_results {
        0 => Ok(DEFAULT_PAGE),
        1.. => Ok(usize::try_from(max_results.min(LARGEST_PAGE)).unwrap_or(DEFAULT_PAGE)),
        _ => limits::max_results(max_results).map(|()| DEFAULT_PAGE),
    }
}

/// A model that passes.
struct Found {
    key: SortKey,
    at: ModelLocation,
    items: ModelItems,
}

/// The first models that pass, of those looked at so far: a page of them, and a few more.
struct Page {
    found: Vec<Found>,
    size: usize,
    has_more: bool,
}

impl Page {
    fn new(size: usize) -> Self {
        Self { found: Vec::new(), size, has_more: false }
    }

    fn look_at(&mut self, at: ModelLocation, items: ModelItems, wanted: &Wanted) -> Result<()> {
        if is_deleted(&items.model) {
            return Ok(());
        }
        let model = Searched::of(&at, &items)?;
        if !wanted.filter.matches(&model) {
            return Ok(());
        }
        let key = wanted.order.key(&model);
        if wanted.after.as_ref().is_none_or(|after| key > *after) {
            self.take([Found { key, at, items }]);
        }
        Ok(())
    }

    /// Takes models in; forgets those behind the page before there are too many.
    fn take(&mut self, found: impl IntoIterator<Item = Found>) {
        self.found.extend(found);
        if self.found.len() > 2 * (self.size + PORTION) {
            self.cut(self.size + 1);
        }
    }

    fn cut(&mut self, length: usize) {
        self.found.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        self.found.truncate(length);
    }

    /// Cuts what was found to the page.
    fn finish(&mut self) {
        self.has_more = self.found.len() > self.size;
        self.cut(self.size);
    }
}

/// A model as a search sees it.
struct Searched(LoggedModel);

impl Searched {
    fn of(at: &ModelLocation, items: &ModelItems) -> Result<Self> {
        model_whole(at, items).map(Self)
    }
}

impl ModelFields for Searched {
    fn text(&self, attribute: ModelText) -> Option<&str> {
        let info = &self.0.info;
        match attribute {
            ModelText::ModelId => Some(&info.model_id),
            ModelText::Name => Some(&info.name),
            ModelText::ModelType => Some(&info.model_type),
            ModelText::SourceRunId => Some(&info.source_run_id),
            ModelText::ArtifactLocation => Some(&info.artifact_uri),
            ModelText::LifecycleStage => Some(LifecycleStage::Active.name()),
            ModelText::StatusMessage => None,
        }
    }

    fn code(&self, attribute: ModelCode) -> i64 {
        match attribute {
            ModelCode::ExperimentId => self.0.info.experiment_id.parse().unwrap_or_default(),
            ModelCode::Status => self.0.info.status.number(),
        }
    }

    fn time(&self, attribute: ModelTime) -> i64 {
        match attribute {
            ModelTime::Created => self.0.info.creation_timestamp_ms,
            ModelTime::Updated => self.0.info.last_updated_timestamp_ms,
        }
    }

    fn param(&self, key: &str) -> Option<&str> {
        find(&self.0.data.params, key)
    }

    fn tag(&self, key: &str) -> Option<&str> {
        find(&self.0.info.tags, key)
    }

    fn points(&self) -> impl Iterator<Item = MeasuredPoint<'_>> {
        self.0.data.metrics.iter().map(|point| MeasuredPoint {
            metric: &point.key,
            value: point.value,
            timestamp: point.timestamp,
            step: point.step,
            run: &point.run_id,
            dataset_name: &point.dataset_name,
            dataset_digest: &point.dataset_digest,
        })
    }
}
