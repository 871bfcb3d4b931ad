//! Filters runs, and keeps those that belong on the page.

use std::collections::HashMap;

use entities::listing::{CooperativeYield, FirstEntities};
use entities::{ExperimentState, RunItems, RunLocation, SearchableRun, run_whole};
use mlflow_api::{ExperimentId, Result, tracking};
use search::{FirstValue, SortKey};

use super::found_runs::{FoundRun, FoundRuns};
use crate::store::run_search::planned_search::PlannedSearch;
use crate::store::run_search::request::RunSearch;

/// Statistics about the candidates that passed the filter.
#[derive(Default)]
pub(super) struct PassStats {
    /// Number of runs that passed.
    pub(super) runs: usize,
    /// Approximate total size of the runs that passed, in bytes.
    pub(super) bytes: usize,
    /// Greatest sort key among the runs that passed, in the order of the search.
    pub(super) last: Option<SortKey>,
}

impl PassStats {
    /// Adds a run that passed.
    fn add(&mut self, key: &SortKey, bytes: usize) {
        self.runs += 1;
        self.bytes += bytes;
        if self.last.as_ref().is_none_or(|last| key > last) {
            self.last = Some(key.clone());
        }
    }

    /// Merges the statistics of further candidates into these statistics.
    pub(super) fn merge(&mut self, other: Self) {
        self.runs += other.runs;
        self.bytes += other.bytes;
        self.last = self.last.take().max(other.last);
    }
}

/// A filter for runs, which keeps the first ones in the order of the search.
pub(super) struct RunCollector<'a> {
    search: &'a RunSearch,
    experiments: HashMap<ExperimentId, &'a ExperimentState>,
    top: FirstEntities<SortKey, tracking::Run>,
    /// Where the page was cut off, if it was: the read budget or the response size was exhausted.
    /// Later runs have not been examined.
    end: Option<SortKey>,
    has_more: bool,
    pace: CooperativeYield,
}

impl<'a> RunCollector<'a> {
    /// Creates an empty collector.
    pub(super) fn new(planned: &PlannedSearch<'a>) -> Self {
        let experiments = planned.experiments.iter().map(|experiment| (experiment.id, &experiment.state));
        Self {
            search: planned.search,
            experiments: experiments.collect(),
            top: FirstEntities::new(planned.search.page_size),
            end: None,
            has_more: false,
            pace: CooperativeYield::default(),
        }
    }

    /// Keeps a run if it passes the filter and comes after the previous page. If `must_lack_value`
    /// is set, a run is kept only if it has no value for the column that the search is ordered by.
    pub(super) async fn examine(
        &mut self,
        at: &RunLocation,
        items: &RunItems,
        must_lack_value: bool,
        passed: &mut PassStats,
    ) -> Result<()> {
        self.pace.keep().await;
        let Some(state) = self.experiments.get(&at.experiment) else { return Ok(()) };
        let run = run_whole(at, items, state)?;
        if !(must_lack_value && self.has_first_value(&run)) && self.passes(&run) {
            self.keep(run, items.size(), passed);
        }
        Ok(())
    }

    fn has_first_value(&self, run: &tracking::Run) -> bool {
        self.search
            .order
            .key(&SearchableRun(run))
            .first_value()
            .is_some_and(|value| !matches!(value, FirstValue::Missing))
    }

    fn passes(&self, run: &tracking::Run) -> bool {
        self.search.view.shows(run.info.lifecycle_stage) && self.search.filter.matches(&SearchableRun(run))
    }

    /// Keeps a run that passes the filter, unless it is on a previous page.
    fn keep(&mut self, run: tracking::Run, bytes: usize, passed: &mut PassStats) {
        let key = self.search.order.key(&SearchableRun(&run));
        if self.search.after.as_ref().is_none_or(|after| key > *after) {
            passed.add(&key, bytes);
            self.top.add(key, run, bytes);
        }
    }

    /// Records that more runs follow after this page.
    pub(super) fn has_more(&mut self) {
        self.has_more = true;
    }

    /// Ends the page after the run with this sort key. Later runs may exist, but have not been
    /// examined.
    pub(super) fn cut_off_after(&mut self, last: SortKey) {
        self.has_more = true;
        self.end = Some(last);
    }

    /// Returns the runs of the page, in order, and whether more runs follow.
    pub(super) fn finish(self) -> FoundRuns {
        let found = self.top.finish();
        let has_more = self.has_more || found.end.is_some();
        let is_on_page = |key: &SortKey| self.end.as_ref().is_none_or(|end| key <= end);
        let runs = found.entities.into_iter().filter(|(key, ..)| is_on_page(key));
        FoundRuns { runs: runs.map(|(key, run, _)| FoundRun { key, run }).collect(), has_more }
    }
}
