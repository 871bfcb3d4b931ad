//! Searches for traces.
//!
//! Traces are read newest first from marks and blocks ([`time_merge`]). A mark refers to the
//! trace's document, and a block contains copies of documents. The traces are filtered in portions
//! until the page is full. Spans are read only if the filter refers to them, and only for traces
//! that pass the other conditions of the filter. For any other order, all traces in the filter's
//! time range have to be read, but only the first ones in the order are kept in memory. If the
//! filter names a client's request, an index is read instead of the blocks ([`client_requests`]).

mod aggregation;
mod client_requests;
mod found_traces;
mod listing;
mod partition_reader;
mod request;
mod sessions;
mod span_fields;
mod time_merge;
mod trace_fields;

use std::sync::Arc;

use access::Granted;
use entities::listing::{CooperativeYield, FirstEntities, ReadBudget, ResponsePage};
use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::traces::{SearchTracesResponse, TraceInfo};
use mlflow_api::{ExperimentId, Result};
use search::trace::MatchingSessions;
use search::{SortDirection, SortKey};
use serde_json::Value;
use trace_blocks::{LargeTraceTurn, TraceKey};

pub use aggregation::Correlation;
use found_traces::{FoundTrace, split_by_blocks};
use partition_reader::{LazyBlock, OccupiedSpot, SpotEntry};
pub use request::TraceSearchRequest;
pub(crate) use request::parse_experiments as known_experiments;
use span_fields::SearchableSpan;
use time_merge::MergedPlaces;
use trace_fields::SearchableTrace;

use super::store::Store;

/// Number of traces whose spans are read concurrently.
const CONCURRENCY: usize = 8;
/// Maximum number of traces per read. If all of them have marks, a read takes 21 concurrent
/// requests. If all are in blocks, it takes one request, and one more for the spans.
const MAX_BATCH_SIZE: usize = 2_048;
/// Number of traces in the first read, if the filter determines how many have to be read. Each
/// further read is twice as large as the previous one, or eight times as large if the traces are in
/// blocks, where reading them costs almost nothing.
const FIRST_BATCH_SIZE: usize = 20;
const GROWTH: usize = 2;
const GROWTH_IN_BLOCKS: usize = 8;

impl Store {
    /// Searches the traces of these experiments, newest first unless the search has another order.
    /// `json` converts a trace to JSON for the response.
    ///
    /// Takes one request per experiment, two per partition of a day, one per hundred recently
    /// changed traces, and one per 40 blocks. If the filter refers to spans, takes one more per
    /// hundred items of spans in blocks, and one per recently changed trace that passes the other
    /// conditions. Costs a read unit per 30 marks, and per 4 KB of each block and of each recently
    /// changed trace. A filter that names clients' requests costs less ([`Store::trace_places`]).
    pub async fn trace_search(
        &self,
        experiments: &[Granted<ExperimentId>],
        search: TraceSearchRequest,
        json: impl Fn(TraceInfo) -> Value + Sync,
    ) -> Result<SearchTracesResponse> {
        let mut reading = ReadBudget::default();
        let store = self.with_table(reading.of(&self.table));
        let experiments: Vec<_> = experiments.iter().map(|experiment| **experiment).collect();
        let mut page = ResponsePage::new(search.page_size);
        let times = search.parsed.filter.request_times();
        if !times.is_empty() {
            let sessions = store.trace_sessions(&experiments, &search.parsed.filter).await?;
            let newest_first = search.parsed.order.by_time() == Some(SortDirection::Descending);
            let behind = search.place_of_last().filter(|_| newest_first);
            let mut walks = store.trace_places(&experiments, &search.parsed.filter, times, behind.as_ref()).await?;
            reading.begins_here();
            let look = SearchRun { store: &store, search: &search, sessions: &sessions };
            if newest_first {
                look.fill(&mut walks, &mut page, &mut reading, &json).await?;
            } else {
                look.sort(&mut walks, &mut page, &mut reading, &json).await?;
            }
        }
        // As in MLflow, a full page has a token for the next page even if no traces follow.
        if page.is_full() {
            page.ends_here();
        }
        let (traces, next_page_token) = page.finish(search.fingerprint)?;
        Ok(SearchTracesResponse { traces, next_page_token })
    }
}

impl TraceSearchRequest {
    /// Returns the position of the last trace on the previous page, if the order is newest first.
    fn place_of_last(&self) -> Option<TraceKey> {
        let (time, id) = self.after.as_ref()?.latest_first()?;
        Some(TraceKey { time, trace: mlflow_api::TraceId::parse(id)? })
    }
}

/// A search in progress.
struct SearchRun<'a> {
    store: &'a Store,
    search: &'a TraceSearchRequest,
    sessions: &'a MatchingSessions,
}

impl SearchRun<'_> {
    /// Fills the page with the newest traces, and reads only as far as necessary.
    async fn fill(
        &self,
        walks: &mut MergedPlaces,
        page: &mut ResponsePage<SortKey>,
        reading: &mut ReadBudget,
        json: &(impl Fn(TraceInfo) -> Value + Sync),
    ) -> Result<()> {
        let lets_all_pass = self.search.parsed.filter.lets_all_pass();
        let mut portion = FIRST_BATCH_SIZE;
        while !page.is_full() {
            if walks.is_late() && !page.is_empty() {
                page.ends_here();
                return Ok(());
            }
            let wanted = if lets_all_pass { page.missing() } else { page.missing().max(portion) };
            let spots = walks.next(self.store, reading.portion(wanted)).await?;
            let Some(last) = spots.last() else { return Ok(()) };
            let growth = if matches!(last.entry, SpotEntry::Mark) { GROWTH } else { GROWTH_IN_BLOCKS };
            portion = (portion * growth).min(MAX_BATCH_SIZE);
            let read = spots.len();
            let found = self.at(spots, page.missing()).await?;
            reading.portion_was(read);
            for (key, trace) in found {
                if !page.add(key, &json(trace.info))? {
                    return Ok(());
                }
            }
            if reading.is_used_up() && !page.is_empty() {
                page.ends_here();
            }
        }
        Ok(())
    }

    /// Fills the page in an order other than newest first, for which all traces have to be read.
    async fn sort(
        &self,
        walks: &mut MergedPlaces,
        page: &mut ResponsePage<SortKey>,
        reading: &mut ReadBudget,
        json: &(impl Fn(TraceInfo) -> Value + Sync),
    ) -> Result<()> {
        let mut top = FirstEntities::new(page.missing());
        loop {
            let spots = walks.next(self.store, reading.portion(MAX_BATCH_SIZE)).await?;
            let read = spots.len();
            if read == 0 {
                break;
            }
            for (key, trace) in self.at(spots, usize::MAX).await? {
                let bytes = trace.bytes;
                top.add(key, trace, bytes);
            }
            reading.portion_was(read);
        }
        let found = top.finish();
        let has_more = found.has_more();
        for (key, trace, _) in found.entities {
            if !page.add(key, &json(trace.info))? {
                return Ok(());
            }
        }
        if has_more {
            page.ends_here();
        }
        Ok(())
    }

    /// Returns the first traces at these positions, at most `most`, that pass the filter and come
    /// after the previous page, with their sort keys.
    async fn at(&self, spots: Vec<OccupiedSpot>, most: usize) -> Result<Vec<(SortKey, SearchableTrace)>> {
        let (filter, order) = (&self.search.parsed.filter, &self.search.parsed.order);
        let (mut passed, mut pace) = (Vec::new(), CooperativeYield::default());
        for found in self.store.traces_at(spots).await? {
            let FoundTrace::Trace(trace, block) = found else { continue };
            pace.keep().await;
            let seen = SearchableTrace::of(&trace)?;
            let key = order.key(&seen);
            let is_behind = self.search.after.as_ref().is_none_or(|after| key > *after);
            if is_behind && filter.matches(&seen, self.sessions) {
                passed.push((key, seen, block));
            }
        }
        if !filter.asks_for_spans() {
            passed.truncate(most);
            return Ok(passed.into_iter().map(|(key, seen, _)| (key, seen)).collect());
        }
        let mut found = Vec::new();
        for portion in split_by_blocks(passed, |(.., block)| block.as_ref()) {
            found.extend(self.with_spans(portion, most - found.len()).await?);
            if found.len() >= most {
                break;
            }
        }
        Ok(found)
    }

    /// Returns the first traces, at most `most`, that have a span which passes the filter.
    async fn with_spans(
        &self,
        portion: Vec<(SortKey, SearchableTrace, Option<Arc<LazyBlock>>)>,
        most: usize,
    ) -> Result<Vec<(SortKey, SearchableTrace)>> {
        let filter = &self.search.parsed.filter;
        let in_blocks = portion.iter().map(|(_, seen, block)| (&seen.info.id, block.as_ref()));
        let mut packed = self.store.packed_spans(in_blocks).await?;
        let turn = &LargeTraceTurn::default();
        let checks = portion.into_iter().map(|(key, seen, _)| {
            let read = packed.remove(&seen.info.id);
            async move {
                let spans = self.store.spans_unless_read(read, &seen.stored, turn).await?;
                let is_met = filter.matches_spans(spans.iter().map(SearchableSpan::of));
                // Matching long texts takes time, so other tasks get a chance to run.
                tokio::task::yield_now().await;
                Ok::<_, mlflow_api::Error>(is_met.then_some((key, seen)))
            }
        });
        let checked = stream::iter(checks.collect::<Vec<_>>()).buffered(CONCURRENCY);
        checked.try_filter_map(|found| std::future::ready(Ok(found))).take(most).try_collect().await
    }
}
