//! Progress of a search that takes candidates until its page is full.

use mlflow_api::response_size::MAX_PAGE_JSON_BYTES;
use search::SortKey;

use super::run_collector::PassStats;

/// Maximum number of candidates to read at once, in 16 concurrent requests.
const MAX_BATCH_SIZE: usize = 1_600;

/// How many candidates of a search were examined, and how many of them passed.
pub(super) struct Progress {
    /// Number of runs that the search has to find.
    pub(super) wanted: usize,
    /// Number of candidates after which the search gives up if fewer than one in four have passed.
    /// `None` if it never gives up.
    trial: Option<usize>,
    /// Number of candidates that were examined so far.
    pub(super) examined: usize,
    pub(super) passed: PassStats,
}

/// Why a page ends.
pub(super) enum PageEnd {
    /// The search has found as many runs as it needs.
    Full,
    /// The read budget or the response size is exhausted after this run.
    CutOff(SortKey),
}

impl Progress {
    /// Creates the state of a search that has not examined any candidates.
    pub(super) fn new(wanted: usize, trial: Option<usize>) -> Self {
        Self { wanted, trial, examined: 0, passed: PassStats::default() }
    }

    /// Records that a batch of candidates was examined, with statistics about those that passed.
    pub(super) fn record(&mut self, examined: usize, passed: PassStats) {
        self.examined += examined;
        self.passed.merge(passed);
    }

    /// Returns the number of runs that are still to be found.
    pub(super) fn missing(&self) -> usize {
        self.wanted.saturating_sub(self.passed.runs)
    }

    /// Returns how many candidates to read next. The batch is large enough to fill the page if
    /// candidates continue to pass at the current rate, with some margin unless all have passed. If
    /// hardly any have passed, the batch is twice as large as all earlier ones together. Batches
    /// after the first do not extend past the point at which the search may give up.
    pub(super) fn next_batch_size(&self) -> usize {
        if self.examined == 0 {
            return self.wanted.min(MAX_BATCH_SIZE);
        }
        let (examined, passed, missing) = (self.examined, self.passed.runs, self.missing().max(1));
        let at_same_rate = missing.saturating_mul(examined).div_ceil(passed.max(1));
        let with_margin = if passed < examined { at_same_rate.saturating_mul(5) / 4 + 1 } else { missing };
        let size = with_margin.min(examined.saturating_mul(2)).clamp(missing.min(MAX_BATCH_SIZE), MAX_BATCH_SIZE);
        let until_trial = self.trial.and_then(|trial| trial.checked_sub(examined)).filter(|left| *left > 0);
        until_trial.map_or(size, |left| size.min(left))
    }

    /// Returns why the page ends here, or `None` if the search goes on. A page without runs is
    /// never cut off, because clients could not continue after it.
    pub(super) fn page_end(&self, is_budget_used_up: bool) -> Option<PageEnd> {
        if self.passed.runs >= self.wanted {
            return Some(PageEnd::Full);
        }
        let is_cut_off = self.passed.bytes > MAX_PAGE_JSON_BYTES || is_budget_used_up;
        self.passed.last.clone().filter(|_| is_cut_off).map(PageEnd::CutOff)
    }

    /// Checks whether the search gives up, because its trial is over and fewer than one in four
    /// candidates passed.
    pub(super) fn has_failed_trial(&self) -> bool {
        self.trial.is_some_and(|trial| self.examined >= trial) && self.passed.runs.saturating_mul(4) < self.examined
    }
}
