//! Deletion of traces.
//!
//! A trace's document and its spans are deleted in one transaction, on condition that the document
//! has not changed since it was read. If there are too many spans for one transaction, the first
//! ones are deleted in the transaction, and the rest after it.
//!
//! The trace's mark, which is its entry in the time order, remains. If the mark has spans, a mark without
//! spans is written before the transaction, and the mark with spans is deleted after it, by the packer if
//! it is not quiet yet. Readers that find the trace in a block see from the mark that it has been deleted. The packer later removes the mark and the
//! block's copy of the trace. Spans that arrive in the meantime are ignored.

use access::Granted;
use entities::attributes::EDITS;
use entities::{
    MAX_REVIEWS_IN_TRANSACTION, StoredTrace, TraceItem, issue_count_writes, now_ms, remove_late_reviews,
    reviews_of_traces,
};
use futures::stream::{self, StreamExt};
use key_schema::{Key, rows};
use mlflow_api::{Error, ExperimentId, Result, TraceId};
use runtime::clock::Moment;
use table::{Condition, Failure, Query, Write, WriteRefusal, number};
use trace_blocks::{TraceFile, day_of, drop_marked_spans, resolve_item};

use super::deletion_scan::{OccupiedBy, OccupiedPlace, OldestPlaces};
use super::store::Store;

/// Number of traces that are deleted concurrently.
const CONCURRENCY: usize = 8;
/// Maximum duration of one request to delete traces. The function's timeout is 29 seconds.
const MAX_DURATION: std::time::Duration = std::time::Duration::from_secs(20);

impl Store {
    /// Deletes the given traces if they belong to the experiment, and returns how many existed.
    ///
    /// Takes one request per hundred traces, and two to find their items in review queues, or four
    /// if the experiment has some. Each trace takes two more requests to read and delete its spans,
    /// one per 25 items of spans beyond the first transaction, and one to write its mark if the
    /// mark is more than a minute old.
    pub async fn traces_delete(&self, experiment: &Granted<ExperimentId>, ids: &[TraceId]) -> Result<u64> {
        let mut heads = self.trace_unexpired_documents(&ids.iter().collect::<Vec<_>>()).await?;
        heads.retain(|_, trace| trace.experiment() == **experiment);
        let id = **experiment;
        self.traces_remove(heads.into_values().collect(), |trace| trace.experiment() == id).await
    }

    /// Deletes at most `most` traces of the experiment that began no later than `latest`, oldest
    /// first, and returns their number. Stops after 20 seconds. The client may repeat the request
    /// to delete the remaining traces. Takes two requests per hundred marks or per block, one to
    /// read the traces of a hundred marks, and two or three per deleted trace.
    pub async fn traces_delete_until(
        &self,
        experiment: &Granted<ExperimentId>,
        latest: i64,
        most: Option<usize>,
    ) -> Result<u64> {
        let (begun, id) = (Moment::now(), **experiment);
        let mut left = most.unwrap_or(usize::MAX);
        let mut deleted = 0;
        // Expired traces are treated as deleted, and `gc` removes them.
        let since = self.retention_cache.since([id]).await?.of(id).unwrap_or(i64::MIN);
        let mut days = self.trace_days(id).await?;
        days.retain(|day| day.day <= day_of(latest) && day.day >= day_of(since));
        while let Some(day) = days.pop() {
            let mut oldest = OldestPlaces::of(id, day, latest);
            while let Some(places) = oldest.next(self).await? {
                let is_wanted =
                    |trace: &StoredTrace| trace.experiment() == id && (since..=latest).contains(&trace.request_time());
                let there = self.traces_at_places(places).await?.into_iter();
                let traces: Vec<_> = there.filter(is_wanted).take(left).collect();
                left -= traces.len();
                deleted += self.traces_remove(traces, is_wanted).await?;
                if left == 0 || (begun.age() > MAX_DURATION && deleted > 0) {
                    return Ok(deleted);
                }
                if begun.age() > MAX_DURATION {
                    // An error is returned here, because clients would conclude from a result of 0
                    // that no traces are left.
                    return Err(Error::unavailable("found no trace in time, because too many were deleted recently"));
                }
            }
        }
        Ok(deleted)
    }

    /// Returns the traces at these positions in the time order. Takes one request per hundred
    /// marks. Marks of traces that this process has deleted are skipped.
    async fn traces_at_places(&self, places: Vec<OccupiedPlace>) -> Result<Vec<StoredTrace>> {
        let may_be_there = |there: &OccupiedPlace| match there.occupied_by {
            OccupiedBy::Mark(at) => !self.trace_cache.was_deleted(&there.partition, &there.place, at),
            OccupiedBy::Packed(_) => false,
        };
        let marked: Vec<_> =
            places.iter().filter(|there| may_be_there(there)).map(|there| &there.place.trace).collect();
        let heads = self.trace_unexpired_documents(&marked).await?;
        let traces = places.into_iter().filter_map(|there| match there.occupied_by {
            OccupiedBy::Mark(_) => {
                heads.get(&there.place.trace).filter(|head| there.partition.holds(head, &there.place)).cloned()
            }
            OccupiedBy::Packed(trace) => Some(trace),
        });
        Ok(traces.collect())
    }

    async fn traces_remove(
        &self,
        traces: Vec<StoredTrace>,
        is_wanted: impl Fn(&StoredTrace) -> bool + Sync,
    ) -> Result<u64> {
        let Some(experiment) = traces.first().map(StoredTrace::experiment) else { return Ok(0) };
        let ids: Vec<_> = traces.iter().map(|trace| trace.id().clone()).collect();
        let mut reviews = reviews_of_traces(&self.table, experiment, &ids.iter().collect::<Vec<_>>()).await?;
        let removals = traces.into_iter().zip(&ids).map(|(trace, id)| {
            let reviews = reviews.remove(id).unwrap_or_default();
            let removal = self.trace_remove(trace, reviews, &is_wanted);
            async move { removal.await.map(|is_removed| Some(id).filter(|_| is_removed)) }
        });
        // Every removal runs to completion, even if another one fails. A removal that is
        // interrupted would leave spans behind until the packer processes the trace's mark.
        let removals: Vec<_> = removals.collect();
        let removed: Vec<Result<Option<&TraceId>>> =
            stream::iter(removals).buffer_unordered(CONCURRENCY).collect().await;
        let gone: Vec<_> = removed.iter().flatten().flatten().copied().collect();
        remove_late_reviews(&self.table, experiment, &gone).await?;
        let removed = removed.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(removed.into_iter().flatten().count() as u64)
    }

    /// Returns the keys of a trace's spans: first those that are deleted in the transaction with
    /// the document, at most `most` of them, then the remaining ones. Takes one request per MB.
    async fn keys_of_spans(&self, trace: &StoredTrace, most: usize) -> Result<(Vec<Key>, Vec<Key>)> {
        let mut query = Query::of(rows::TraceSpans::all(&trace.experiment(), trace.id())).for_removal();
        let (mut together, mut rest, mut bytes) = (Vec::new(), Vec::new(), 0);
        loop {
            let page = self.table.query_page(&query).await?;
            for item in &page.items {
                bytes += item.size();
                let is_with_it = together.len() < most && bytes <= MAX_SPAN_BYTES_IN_TRANSACTION;
                if is_with_it { &mut together } else { &mut rest }.extend(item.key());
            }
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok((together, rest)),
            }
        }
    }

    /// Deletes the file of an archived trace before the trace, because the trace refers to it. Returns
    /// whether the trace may be deleted. A file that this server cannot access is left in place.
    async fn delete_trace_file(&self, trace: &StoredTrace) -> bool {
        let deleted = match TraceFile::of(self.artifacts(), trace) {
            Ok(Some(file)) => file.delete().await,
            Ok(None) | Err(_) => Ok(()),
        };
        // As in MLflow, the trace is kept, and not counted as deleted.
        if let Err(error) = &deleted {
            tracing::error!(trace = %trace.id(), %error, cause = error.cause, "the file of an archived trace could not be deleted");
        }
        deleted.is_ok()
    }

    /// Deletes a trace with its spans and its items in review queues. If the trace has changed since it was
    /// read, deletes it only if `is_wanted` still accepts it. Returns whether a trace was deleted.
    ///
    /// Takes two requests: one that reads the keys of the spans, and the transaction. Takes one more per MB
    /// of spans beyond the first, one per 25 items beyond the first hundred, one if the trace's mark is more
    /// than a minute old, and two if the mark has spans.
    async fn trace_remove(
        &self,
        trace: StoredTrace,
        reviews: Vec<Key>,
        is_wanted: &(impl Fn(&StoredTrace) -> bool + Sync),
    ) -> Result<bool> {
        let mut trace = trace;
        let mut reviews = reviews;
        // If the trace is in more review queues than fit into the transaction, its items in some of
        // the queues are deleted before the transaction.
        let others = reviews.split_off(reviews.len().min(MAX_REVIEWS_IN_TRANSACTION));
        self.table.write_many(Vec::new(), &others).await?;
        let mut attempts = self.table.attempts("a trace");
        loop {
            attempts.next().await?;
            let counts = issue_count_writes(trace.experiment(), Some(trace.item()), None);
            let most = MAX_SPANS_IN_TRANSACTION.saturating_sub(reviews.len() + counts.len());
            let (spans, rest) = self.keys_of_spans(&trace, most).await?;
            self.trace_mark_for_deletion(&trace).await?;
            if !self.delete_trace_file(&trace).await {
                return Ok(false);
            }
            let is_same = Condition::Equals(EDITS.into(), number(trace.edits()));
            let head = Write::Delete(rows::Trace::key(trace.id()), is_same);
            let with_it = spans.iter().chain(&reviews).map(|key| Write::Delete(key.clone(), Condition::Always));
            let writes: Vec<_> = std::iter::once(head).chain(with_it).chain(counts).collect();
            let begun = now_ms();
            let outcome = self.table.transact(&writes).await;
            self.trace_cache.forget_trace(trace.id());
            match outcome {
                Ok(()) => {
                    self.trace_cache.keep_deleted(&trace, begun);
                    self.table.write_many(Vec::new(), &rest).await?;
                    drop_marked_spans(&self.table, &trace, now_ms()).await?;
                    if trace.judges_a_session() {
                        let row = rows::TraceOfSession::key(&trace.experiment(), trace.id());
                        self.table.write_many(Vec::new(), &[row]).await?;
                    }
                    return Ok(true);
                }
                Err(Failure::Cancelled(reasons)) => match reasons.into_iter().next() {
                    Some(WriteRefusal::Refused(Some(item))) => {
                        // If the item is a stub, which stores links to a trace before it arrives,
                        // then another request has deleted the trace in the meantime.
                        let now = resolve_item(&self.table, Some(item)).await?.and_then(TraceItem::trace);
                        let Some(now) = now else { return Ok(false) };
                        trace = now;
                        if !is_wanted(&trace) {
                            return Ok(false);
                        }
                    }
                    // Another request has deleted the trace first.
                    Some(WriteRefusal::Refused(None)) => return Ok(false),
                    _ => return Err(Error::unavailable("the transaction that deletes a trace was cancelled")),
                },
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}

/// Maximum number of span items in the transaction that deletes a trace. A transaction has up to a
/// hundred writes, and one of them deletes the document.
const MAX_SPANS_IN_TRANSACTION: usize = 99;
/// Maximum size in bytes of the span items in the transaction that deletes a trace. DynamoDB allows
/// 4 MB, but each KB takes two write units, all of them in one partition.
const MAX_SPAN_BYTES_IN_TRANSACTION: usize = 400 << 10;
