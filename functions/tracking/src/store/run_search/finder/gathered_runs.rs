//! Reads lists in full, for selective filters and for orders that no list has.

use std::collections::VecDeque;

use entities::RunLocation;
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::list_positions;
use mlflow_api::Result;
use run_index::{Candidate, CandidateSource, ListEntry, in_all};
use search::RunList;

use crate::store::run_search::planned_search::PlannedSearch;
use crate::store::run_search::searched_experiment::{CONCURRENCY, SearchedExperiment};

impl PlannedSearch<'_> {
    /// Returns the runs that are in all of these lists, with their start times in ms. Returns
    /// `None` if the lists have more entries than the limit, which is divided equally among the
    /// experiments.
    pub(crate) async fn runs_in_all(
        &self,
        experiments: &[&SearchedExperiment],
        lists: &[RunList],
        limit: usize,
    ) -> Result<Option<Vec<(RunLocation, i64)>>> {
        let (limit, after) = (limit / experiments.len().max(1), self.search.start_newest_first());
        let asks = &self.search.filter.asks();
        let gathered = experiments.iter().map(|experiment| async {
            let of_plan = experiment.lists_of(self.plan, self.search.view);
            in_all(self.table, &of_plan, lists, asks, self.plan.started, after.as_deref(), limit).await
        });
        let gathered: Vec<Option<Vec<_>>> =
            stream::iter(gathered.collect::<Vec<_>>()).buffered(CONCURRENCY).try_collect().await?;
        let entries = gathered.into_iter().collect::<Option<Vec<_>>>();
        Ok(entries.map(|entries| entries.into_iter().flatten().map(|entry| (entry.at, entry.started)).collect()))
    }

    /// Returns a source of candidates from known runs, in the order of the search. If the order is
    /// newest first, runs on previous pages are omitted.
    pub(crate) fn gathered_source(&self, runs: impl IntoIterator<Item = (RunLocation, i64)>) -> CandidateSource {
        let is_exact = self.search.is_newest_first();
        let candidates = runs.into_iter().map(|(at, started)| {
            let place = list_positions::newest_first(started, at.run.as_str());
            Candidate::gathered(ListEntry { at, started, newest_first: place.clone(), place, item: None }, is_exact)
        });
        let mut candidates: Vec<_> = candidates.collect();
        if let Some(after) = self.search.start_newest_first().filter(|_| is_exact) {
            candidates.retain(|candidate| candidate.place() > after.as_str());
        }
        candidates.sort_unstable_by(|a, b| a.order(b, false));
        CandidateSource::Gathered(VecDeque::from(candidates))
    }
}
