//! The parameters of a search of runs.

use std::collections::HashSet;

use key_schema::list_positions;
use mlflow_api::requests::runs::SearchRuns;
use mlflow_api::tracking::ViewType;
use mlflow_api::{Error, ErrorCode, ExperimentId, Result, limits};
use search::{Fingerprint, RunFilter, RunOrder, SortKey, decode_page_token, parse_run_search};

/// Page size for requests without `max_results` (`SearchRuns` in `service.proto`).
const DEFAULT_PAGE_SIZE: i64 = 1_000;

/// A parsed search of runs.
#[derive(Clone, Debug)]
pub struct RunSearch {
    /// The experiments in the request, without duplicates.
    pub experiments: Vec<ExperimentId>,
    pub(super) filter: RunFilter,
    pub(super) order: RunOrder,
    /// Which lifecycle stages to show.
    pub(super) view: ViewType,
    pub(super) page_size: usize,
    pub(super) fingerprint: Fingerprint,
    /// Sort key of the last run on the previous page.
    pub(super) after: Option<SortKey>,
    /// Whether the response omits the logged models of the runs.
    pub hides_models: bool,
}

impl RunSearch {
    /// Parses a request. Errors are reported in MLflow's order: page size, filter, order, token,
    /// experiments.
    pub fn read(request: &SearchRuns) -> Result<Self> {
        let max_results = request.max_results.map_or(DEFAULT_PAGE_SIZE, i64::from);
        limits::max_results(max_results)?;
        let (filter, order) = parse_run_search(&request.filter, &request.order_by)?;
        let view = request.run_view_type.unwrap_or(ViewType::ActiveOnly);
        let experiments = known_experiments(&request.experiment_ids);
        let known = experiments.as_deref().unwrap_or_default();
        let fingerprint = Fingerprint::of_run_search(known, &request.filter, &request.order_by, view);
        let after = decode_page_token(fingerprint, &request.page_token)?;
        let page_size = usize::try_from(max_results).unwrap_or(usize::MAX);
        let experiments = experiments?;
        Ok(Self { experiments, filter, order, view, page_size, fingerprint, after, hides_models: false })
    }

    /// Checks whether the order is MLflow's default, newest first.
    pub(super) fn is_newest_first(&self) -> bool {
        self.order.sorting().is_newest_first()
    }

    /// Returns the number of runs to look for: one more than the page size, to show whether there
    /// is another page.
    pub(super) fn runs_to_find(&self) -> usize {
        self.page_size.saturating_add(1)
    }

    /// Returns the position in a newest-first list after which the page starts. `None` for the
    /// first page, and for searches in another order.
    pub(super) fn start_newest_first(&self) -> Option<String> {
        let (started, run) = self.after.as_ref().and_then(SortKey::latest_first)?;
        Some(list_positions::newest_first(started, run))
    }
}

/// Parses the ids of the experiments to search, and removes duplicates. Integers that are out of
/// range for experiment ids are ignored.
pub(crate) fn known_experiments(texts: &[String]) -> Result<Vec<ExperimentId>> {
    let (mut ids, mut seen) = (Vec::new(), HashSet::new());
    for text in texts {
        if text.is_empty() {
            return Err(Error::invalid("Invalid experiment ID ''. Experiment ID must be a valid integer."));
        }
        match ExperimentId::parse(text) {
            Ok(id) if !seen.insert(id) => {}
            Ok(id) => ids.push(id),
            Err(error) if error.code == ErrorCode::ResourceDoesNotExist => {}
            Err(error) => return Err(error),
        }
    }
    limits::searched_experiments(ids.len())?;
    Ok(ids)
}
