//! The parsed request of a search for traces.

use std::collections::HashSet;

use mlflow_api::{Error, ErrorCode, ExperimentId, Result, limits};
use search::trace::{self, RelatedEntity, parse_trace_search};
use search::{Fingerprint, SortKey, decode_page_token};

/// Default page size (`SearchTracesV3` in `service.proto`).
const DEFAULT_PAGE_SIZE: i64 = 100;
/// Number of characters of an invalid list of experiments that MLflow quotes in its error.
const MAX_QUOTED_CHARACTERS: usize = 20;

/// A search for traces.
#[derive(Clone, Debug)]
pub struct TraceSearchRequest {
    /// The experiments that the request names, without duplicates.
    pub experiments: Vec<ExperimentId>,
    pub(super) parsed: trace::TraceSearch,
    pub(super) page_size: usize,
    pub(super) fingerprint: Fingerprint,
    /// Sort key of the last trace on the previous page. `None` for the first page.
    pub(super) after: Option<SortKey>,
}

impl TraceSearchRequest {
    /// Parses a request. Errors are reported in MLflow's order: locations, page size, experiments,
    /// order, filter, page token.
    pub fn read(
        experiments: &[&str],
        filter: &str,
        max_results: Option<i32>,
        order_by: &[String],
        page_token: &str,
    ) -> Result<Self> {
        check_locations(experiments)?;
        let max_results = max_results.map_or(DEFAULT_PAGE_SIZE, i64::from);
        limits::max_results(max_results)?;
        let experiments = parse_experiments(experiments)?;
        let asked = parse_trace_search(filter, order_by)?;
        let fingerprint = Fingerprint::of_trace_search(&experiments, filter, order_by);
        let after = decode_page_token(fingerprint, page_token)?;
        let page_size = usize::try_from(max_results).unwrap_or(usize::MAX);
        Ok(Self { experiments, parsed: asked, page_size, fingerprint, after })
    }
}

impl TraceSearchRequest {
    /// Returns the related entities by which traces are filtered or sorted.
    pub fn related(&self) -> impl Iterator<Item = RelatedEntity> {
        self.parsed.related()
    }
}

/// Rejects locations that are names of tables, which only other MLflow servers support
/// (`_resolve_experiment_ids_and_locations`).
fn check_locations(experiments: &[&str]) -> Result<()> {
    let others: Vec<_> = experiments.iter().filter(|place| place.contains('.')).copied().collect();
    if others.is_empty() {
        return Ok(());
    }
    let listed = others.join(", ");
    let listed = match listed.char_indices().nth(MAX_QUOTED_CHARACTERS) {
        Some((end, _)) => format!("{}...", &listed[..end]),
        None => listed,
    };
    Err(Error::invalid(format!("Locations must be a list of experiment IDs. Found invalid experiment IDs: {listed}.")))
}

/// Parses experiment ids and removes duplicates. Integers that are out of range are skipped.
pub(crate) fn parse_experiments(texts: &[&str]) -> Result<Vec<ExperimentId>> {
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
