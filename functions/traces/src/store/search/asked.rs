//! A search of traces, as it was asked.

use std::collections::HashSet;

use mlflow_api::{Error, ErrorCode, ExperimentId, Result, limits};
use search::trace::{self, Related, parse_trace_search};
use search::{Fingerprint, SortKey, decode_page_token};

/// Traces on a page where the request does not say (`SearchTracesV3` in `service.proto`).
const DEFAULT_PAGE: i64 = 100;
/// Characters of a wrong list of experiments that MLflow repeats in its error.
const REPEATED: usize = 20;

/// A search of traces.
#[derive(Clone, Debug)]
pub struct TraceSearch {
    /// The experiments it names, each once.
    pub experiments: Vec<ExperimentId>,
    pub(super) asked: trace::TraceSearch,
    pub(super) page_size: usize,
    pub(super) fingerprint: Fingerprint,
    /// Sort key of the last trace of the page before.
    pub(super) after: Option<SortKey>,
}

impl TraceSearch {
    /// Reads a request. Its mistakes are reported in MLflow's order: places, size of the page,
    /// experiments, order, filter, token.
    pub fn read(
        experiments: &[&str],
        filter: &str,
        max_results: Option<i32>,
        order_by: &[String],
        page_token: &str,
    ) -> Result<Self> {
        check_places(experiments)?;
        let max_results = max_results.map_or(DEFAULT_PAGE, i64::from);
        limits::max_results(max_results)?;
        let experiments = known(experiments)?;
        let asked = parse_trace_search(filter, order_by)?;
        let fingerprint = Fingerprint::of_trace_search(&experiments, filter, order_by);
        let after = decode_page_token(fingerprint, page_token)?;
        let page_size = usize::try_from(max_results).unwrap_or(usize::MAX);
        Ok(Self { experiments, asked, page_size, fingerprint, after })
    }
}

impl TraceSearch {
    /// The other entities by which traces are selected or sorted.
    pub fn related(&self) -> impl Iterator<Item = Related> {
        self.asked.related()
    }
}

/// Refuses names of tables, which another server of MLflow's knows (`_resolve_experiment_ids_and_locations`).
fn check_places(experiments: &[&str]) -> Result<()> {
    let others: Vec<_> = experiments.iter().filter(|place| place.contains('.')).copied().collect();
    if others.is_empty() {
        return Ok(());
    }
    let listed = others.join(", ");
    let listed = match listed.char_indices().nth(REPEATED) {
        Some((end, _)) => format!("{}...", &listed[..end]),
        None => listed,
    };
    Err(Error::invalid(format!("Locations must be a list of experiment IDs. Found invalid experiment IDs: {listed}.")))
}

/// The experiments a search names, each once. An integer that no experiment can have names none.
pub(crate) fn known(texts: &[&str]) -> Result<Vec<ExperimentId>> {
    let (mut ids, mut seen) = (Vec::new(), HashSet::new());
    for text in texts {
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
