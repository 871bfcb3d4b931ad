//! Searching traces.
//!
//! Marks name them newest first ([`walk`]). Portions of them are read and checked, and their spans only where the filter asks for spans and
//! all else passes, until the page is full. Another order than newest first needs all that the filter's times let pass before it knows
//! which come first; the first ones are kept in memory only.

mod asked;
mod figures;
mod seen;
mod sessions;
mod span;
mod walk;

use std::collections::BTreeSet;

use access::Granted;
use entities::StoredTrace;
use futures::stream::{self, StreamExt, TryStreamExt};
use listing::{Pace, Page, Reading, Top};
use mlflow_api::traces::{FoundTraces, TraceInfo};
use mlflow_api::{ExperimentId, Result};
use search::trace::Sessions;
use search::{Direction, SortKey};
use serde_json::Value;

pub use asked::TraceSearch;
pub(crate) use asked::known as known_experiments;
pub use figures::Correlation;
use seen::Seen;
use span::SeenSpan;
use walk::Walks;

use super::mark::Mark;
use super::store::Store;

/// Traces whose spans are read at a time.
const AT_ONCE: usize = 8;
/// Traces read at a time at most: 16 requests at once.
const LARGEST_PORTION: usize = 1_600;
/// Traces read at first, where a filter decides how many are needed.
const FIRST_PORTION: usize = 20;

impl Store {
    /// Searches traces of these experiments. One request for each experiment; then, newest first, one for each day and experiment and for
    /// each hundred traces that are looked at, and where the filter asks for spans, one for each that passes all else. A read unit per 30
    /// marks, and per 4 KB of each trace.
    pub async fn trace_search(
        &self,
        experiments: &[Granted<ExperimentId>],
        search: TraceSearch,
        json: fn(&TraceInfo) -> Value,
    ) -> Result<FoundTraces> {
        let mut reading = Reading::default();
        let store = self.over(reading.of(&self.table));
        let experiments: Vec<_> = experiments.iter().map(|experiment| **experiment).collect();
        let mut page = Page::new(search.page_size);
        let times = search.asked.filter.request_times();
        if !times.is_empty() {
            let sessions = store.trace_sessions(&experiments, &search.asked.filter).await?;
            let newest_first = search.asked.order.by_time() == Some(Direction::Descending);
            let behind = search.behind().filter(|_| newest_first);
            let mut walks = Walks::of(&store, &experiments, times, behind.as_ref()).await?;
            reading.begins_here();
            let look = Look { store: &store, search: &search, sessions: &sessions };
            if newest_first {
                look.fill(&mut walks, &mut page, &mut reading, json).await?;
            } else {
                look.sort(&mut walks, &mut page, &mut reading, json).await?;
            }
        }
        // As in MLflow, there may be nothing behind a full page.
        if page.is_full() {
            page.ends_here();
        }
        let (traces, next_page_token) = page.finish(search.fingerprint)?;
        Ok(FoundTraces { traces, next_page_token })
    }
}

impl Store {
    /// The traces that marks stand for, in their order. One request per hundred.
    async fn traces_at(&self, marks: &[(ExperimentId, Mark)]) -> Result<Vec<StoredTrace>> {
        let ids: BTreeSet<_> = marks.iter().map(|(_, mark)| &mark.trace).collect();
        let heads = self.trace_heads(&ids.into_iter().collect::<Vec<_>>()).await?;
        let stand = marks.iter().filter_map(|(experiment, mark)| {
            // A trace that began at another time at first has two marks.
            heads.get(&mark.trace).filter(|trace| mark.stands_for(trace, *experiment)).cloned()
        });
        Ok(stand.collect())
    }
}

impl TraceSearch {
    /// The place of the last trace of the page before, newest first.
    fn behind(&self) -> Option<Mark> {
        let (time, id) = self.after.as_ref()?.latest_first()?;
        Some(Mark { time, trace: mlflow_api::TraceId::parse(id)?, shard: 0 })
    }
}

/// A search under way.
struct Look<'a> {
    store: &'a Store,
    search: &'a TraceSearch,
    sessions: &'a Sessions,
}

impl Look<'_> {
    /// Newest first: reads as far as the page needs.
    async fn fill(
        &self,
        walks: &mut Walks,
        page: &mut Page<SortKey>,
        reading: &mut Reading,
        json: fn(&TraceInfo) -> Value,
    ) -> Result<()> {
        let lets_all_pass = self.search.asked.filter.lets_all_pass();
        let mut portion = FIRST_PORTION;
        while !page.is_full() {
            if walks.is_late() && !page.is_empty() {
                page.ends_here();
                return Ok(());
            }
            let wanted = if lets_all_pass { page.missing() } else { page.missing().max(portion) };
            portion = (portion * 2).min(LARGEST_PORTION);
            let marks = walks.next(self.store, reading.portion(wanted)).await?;
            if marks.is_empty() {
                return Ok(());
            }
            let found = self.at(&marks, page.missing()).await?;
            reading.portion_was(marks.len());
            for (key, trace) in found {
                if !page.add(key, &json(&trace.info))? {
                    return Ok(());
                }
            }
            if reading.is_used_up() && !page.is_empty() {
                page.ends_here();
            }
        }
        Ok(())
    }

    /// In another order: reads all.
    async fn sort(
        &self,
        walks: &mut Walks,
        page: &mut Page<SortKey>,
        reading: &mut Reading,
        json: fn(&TraceInfo) -> Value,
    ) -> Result<()> {
        let mut top = Top::new(page.missing());
        loop {
            let marks = walks.next(self.store, reading.portion(LARGEST_PORTION)).await?;
            if marks.is_empty() {
                break;
            }
            for (key, trace) in self.at(&marks, usize::MAX).await? {
                let bytes = trace.bytes;
                top.add(key, trace, bytes);
            }
            reading.portion_was(marks.len());
        }
        let found = top.finish();
        let has_more = found.has_more();
        for (key, trace, _) in found.entities {
            if !page.add(key, &json(&trace.info))? {
                return Ok(());
            }
        }
        if has_more {
            page.ends_here();
        }
        Ok(())
    }

    /// The first of these traces, at most so many, that pass and come after the page before, with their keys.
    async fn at(&self, marks: &[(ExperimentId, Mark)], most: usize) -> Result<Vec<(SortKey, Seen)>> {
        let (filter, order) = (&self.search.asked.filter, &self.search.asked.order);
        let (mut passed, mut pace) = (Vec::new(), Pace::default());
        for trace in &self.store.traces_at(marks).await? {
            pace.keep().await;
            let seen = Seen::of(trace)?;
            let key = order.key(&seen);
            let is_behind = self.search.after.as_ref().is_none_or(|after| key > *after);
            if is_behind && filter.matches(&seen, self.sessions) {
                passed.push((key, seen));
            }
        }
        if !filter.asks_for_spans() {
            passed.truncate(most);
            return Ok(passed);
        }
        let with_spans = passed.into_iter().map(|(key, seen)| async move {
            let spans = self.store.trace_spans_in(seen.info.experiment, &seen.info.id).await?;
            let is_met = filter.matches_spans(spans.iter().map(SeenSpan::of));
            Ok::<_, mlflow_api::Error>(is_met.then_some((key, seen)))
        });
        let checked = stream::iter(with_spans.collect::<Vec<_>>()).buffered(AT_ONCE);
        checked.try_filter_map(|found| std::future::ready(Ok(found))).take(most).try_collect().await
    }
}
