//! Lists that are read in full, for selective filters and for orders that no list has.

use std::collections::{HashMap, VecDeque};

use entities::RunLocation;
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::place;
use mlflow_api::Result;
use run_index::{Candidate, Entry, Source, in_all};
use search::RunList;

use super::run_finder::Finder;
use crate::store::run_search::searched_experiment::{CONCURRENCY, SearchedExperiment};

impl Finder<'_> {
    /// Reads lists in full, and then the runs that are in all of them. In the default order, it
    /// reads runs only until the page is full.
    pub(crate) async fn gather(&mut self, searched: &[&SearchedExperiment], lists: &[RunList]) -> Result<()> {
        let gathered = self.entries_in_all(searched, lists, usize::MAX).await?.unwrap_or_default();
        let source = self.gathered(gathered.into_iter().map(|entry| (entry.at, entry.started)));
        self.fill_page(vec![source]).await
    }

    /// Returns the runs of all indexed experiments that are in all of these lists, with their start
    /// times in ms. Returns `None` if the lists have more entries than the limit.
    pub(crate) async fn runs_in_all(
        &self,
        lists: &[RunList],
        limit: usize,
    ) -> Result<Option<HashMap<RunLocation, i64>>> {
        let searched = self.searched.values().copied().filter(|within| self.uncovered.contains_key(&within.id));
        let entries = self.entries_in_all(&searched.collect::<Vec<_>>(), lists, limit).await?;
        Ok(entries.map(|entries| entries.into_iter().map(|entry| (entry.at, entry.started)).collect()))
    }

    async fn entries_in_all(
        &self,
        searched: &[&SearchedExperiment],
        lists: &[RunList],
        limit: usize,
    ) -> Result<Option<Vec<Entry>>> {
        let (limit, after) = (limit / searched.len().max(1), self.search.start_newest_first());
        let asks = &self.search.filter.asks();
        let gathered = searched.iter().map(|within| async {
            let of_plan = within.lists_of(self.plan, self.search.view);
            in_all(&self.store.table, &of_plan, lists, asks, self.plan.started, after.as_deref(), limit).await
        });
        let gathered: Vec<Option<Vec<_>>> =
            stream::iter(gathered.collect::<Vec<_>>()).buffered(CONCURRENCY).try_collect().await?;
        Ok(gathered.into_iter().collect::<Option<Vec<_>>>().map(|entries| entries.into_iter().flatten().collect()))
    }

    /// Returns a source of known runs, in the order of the search. In the order newest first, it
    /// has only those after the previous page.
    pub(crate) fn gathered(&self, runs: impl Iterator<Item = (RunLocation, i64)>) -> Source {
        let is_exact = self.search.is_newest_first();
        let candidates = runs.map(|(at, started)| {
            let place = place::newest_first(started, at.run.as_str());
            Candidate::gathered(Entry { at, started, newest_first: place.clone(), place, item: None }, is_exact)
        });
        let mut candidates: Vec<_> = candidates.collect();
        if let Some(after) = self.search.start_newest_first().filter(|_| is_exact) {
            candidates.retain(|candidate| candidate.place() > after.as_str());
        }
        candidates.sort_unstable_by(|a, b| a.order(b, false));
        Source::Gathered(VecDeque::from(candidates))
    }
}
