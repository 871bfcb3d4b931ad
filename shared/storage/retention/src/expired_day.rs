//! Deletes the traces of a day on which all traces have expired.
//!
//! Traces in blocks are deleted first, and then traces with marks. A mark is a row that lists a
//! trace as changed since its block was packed. For each trace, its document is deleted on
//! condition that it has not changed since it was read. Its spans and files are deleted next. The
//! block or the mark is deleted last, because until then it is the only reference to the trace.
//!
//! The partition's lock prevents concurrent packing. A trace that was changed recently is kept, and
//! so is its mark. A trace is also kept if its document shows that it has moved to another day.

use std::collections::HashSet;

use entities::archived_objects::drop_later;
use entities::attributes::{ARRIVED, EDITS, MARKED_AT};
use entities::{
    MAX_REVIEWS_IN_TRANSACTION, StoredTrace, TraceRow, issue_count_writes, now_ms, remove_late_reviews,
    reviews_of_traces,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{Key, WideDigest, rows};
use mlflow_api::{Error, ExperimentId, Result, TraceId};
use rand::RngExt;
use runtime::clock::Moment;
use table::{Condition, Failure, Item, Query, Write, WriteRefusal, number};
use trace_blocks::{
    Block, LOCK_USE_DURATION, PartitionLock, QUIET_MARK_AGE, SETTLED_SPAN_AGE, SpanGroup, TraceKey, TracePartition,
    objects, read_traces,
};

use crate::report::RemovalReport;
use crate::store::Retention;
use crate::trace_files::TraceFiles;
use crate::traces::{MAX_PACKER_PAUSES, PACKER_PAUSE};

/// Number of blocks that are read at a time. Each has about 30 KB.
const BLOCK_BATCH_SIZE: usize = 10;
/// Number of marks that are read at a time.
const MARK_BATCH_SIZE: usize = 100;
/// Number of traces that are deleted concurrently.
const CONCURRENCY: usize = 16;

/// A partition that is being emptied.
struct PartitionRemoval<'a> {
    retention: &'a Retention,
    partition: TracePartition,
    files: Option<TraceFiles>,
    report: &'a dyn RemovalReport,
    begun: Moment,
}

/// What happened to the trace at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TraceRemoval {
    /// The trace was deleted.
    Removed,
    /// There was no trace at the position.
    Missing,
    /// The trace was changed recently, and was not deleted.
    Kept,
}

impl Retention {
    /// Deletes the traces of a partition, and adds their number to `removed`. Keeps unreadable
    /// blocks, because they are the only record of which traces are left.
    pub(crate) async fn remove_expired_day(
        &self,
        partition: TracePartition,
        report: &dyn RemovalReport,
        removed: &mut u64,
    ) -> Result<()> {
        if !self.holds_traces(partition).await? {
            return Ok(());
        }
        let files = self.trace_files(partition.experiment).await?;
        loop {
            let lock = self.lock(partition).await?;
            let emptying =
                PartitionRemoval { retention: self, partition, files: files.clone(), report, begun: Moment::now() };
            // If a write failed, it may still be in flight. In that case the lock is not released,
            // but left to expire.
            let left = emptying.empty(removed).await?;
            if let Err(failure) = lock.give_back(&self.table).await {
                tracing::warn!(?failure, "a partition lock could not be released, and will expire");
            }
            match left {
                None => {}
                Some(0) => return Ok(()),
                Some(unreadable) => {
                    return Err(Error::internal(format!("{unreadable} blocks of traces cannot be read")));
                }
            }
        }
    }

    /// Checks whether a partition has marks or blocks. Sends two requests.
    pub(crate) async fn holds_traces(&self, partition: TracePartition) -> Result<bool> {
        for range in [partition.marks(), partition.blocks()] {
            if !self.table.query_page(&Query::of(range).for_removal().limit(1)).await?.items.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn lock(&self, partition: TracePartition) -> Result<PartitionLock> {
        for _ in 0..MAX_PACKER_PAUSES {
            let nonce = rand::rng().random();
            if let Some(lock) = PartitionLock::take(&self.table, partition, nonce, now_ms()).await? {
                return Ok(lock);
            }
            runtime::clock::sleep(PACKER_PAUSE).await;
        }
        Err(Error::unavailable("the traces of the experiment are being packed"))
    }
}

impl PartitionRemoval<'_> {
    /// Deletes the partition's traces for as long as the lock may be used, and adds their number to
    /// `removed`. Returns the number of unreadable blocks, or `None` if there may be more traces to
    /// delete.
    async fn empty(&self, removed: &mut u64) -> Result<Option<usize>> {
        let mut unreadable = 0;
        let mut query = Query::of(self.partition.blocks()).for_removal().limit(BLOCK_BATCH_SIZE);
        loop {
            let page = self.retention.table.query_page(&query).await?;
            for item in page.items {
                if self.begun.age() > LOCK_USE_DURATION {
                    return Ok(None);
                }
                let read = Block::of(item).and_then(|block| block.core().map(|core| (block, core)));
                let (block, core) = match read {
                    Ok(read) => read,
                    Err(error) => {
                        tracing::error!(%error, "a block of traces cannot be read, and is not deleted");
                        unreadable += 1;
                        continue;
                    }
                };
                let places: Vec<_> = core.into_iter().map(|trace| trace.place).collect();
                self.remove_traces(&places, removed).await?;
                self.remove_block(&block).await?;
            }
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => break,
            }
        }
        let mut query = Query::of(self.partition.marks()).limit(MARK_BATCH_SIZE);
        loop {
            if self.begun.age() > LOCK_USE_DURATION {
                return Ok(None);
            }
            let page = self.retention.table.query_page(&query).await?;
            let mut quiet: Vec<_> = page.items.iter().filter_map(quiet).collect();
            let mut places: Vec<_> = quiet.iter().map(|mark| mark.place.clone()).collect();
            places.dedup();
            let kept = self.remove_traces(&places, removed).await?;
            // The document of a trace that was kept may refer to a mark with spans.
            quiet.retain(|mark| !kept.contains(&mark.place));
            let unmarked = quiet.into_iter().map(|mark| async move {
                self.delete(&mark.key, &Condition::Equals(MARKED_AT.into(), number(mark.put))).await
            });
            stream::iter(unmarked.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY).try_collect::<Vec<bool>>().await?;
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(Some(unreadable)),
            }
        }
    }

    /// Deletes a block whose traces have been deleted. Deletes the block's spans first, because
    /// only the block refers to them. Archived spans are deleted later.
    async fn remove_block(&self, block: &Block) -> Result<()> {
        drop_later(&self.retention.table, objects(block.archived()), &block.key()).await?;
        let digests = block.groups().iter().filter_map(SpanGroup::digest_of_item);
        let spans: Vec<_> = digests.map(|digest: WideDigest| self.partition.spans_key(&digest)).collect();
        self.retention.table.write_many(Vec::new(), &spans).await?;
        let is_as_read = Condition::Equals(EDITS.into(), number(block.edits()));
        match self.retention.table.delete(&block.key(), &is_as_read).await {
            // The response to an earlier attempt was lost, and that attempt deleted the block.
            Ok(()) | Err(Failure::Refused { item: None, .. }) => Ok(()),
            Err(Failure::Refused { .. }) => Err(Error::unavailable("the traces of the experiment are being packed")),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Deletes the traces at these positions, and adds the number of deleted traces to `removed`.
    /// Skips positions without a trace. Keeps traces that were changed recently, and returns their
    /// positions.
    async fn remove_traces(&self, places: &[TraceKey], removed: &mut u64) -> Result<HashSet<TraceKey>> {
        let ids: Vec<_> = places.iter().map(|place| &place.trace).collect();
        let heads = read_traces(&self.retention.table, &ids).await?;
        let mut reviews = reviews_of_traces(&self.retention.table, self.partition.experiment, &ids).await?;
        let removals: Vec<_> = places
            .iter()
            .map(|place| {
                let reviews = reviews.remove(&place.trace).unwrap_or_default();
                let removal = self.remove_trace(place, heads.get(&place.trace), reviews);
                async move { removal.await.map(|removal| (place, removal)) }
            })
            .collect();
        let outcomes: Vec<_> = stream::iter(removals).buffer_unordered(CONCURRENCY).try_collect().await?;
        let places_of =
            |wanted| outcomes.iter().filter(move |(_, outcome)| *outcome == wanted).map(|(place, _)| *place);
        let gone: Vec<_> = places_of(TraceRemoval::Removed).map(|place| &place.trace).collect();
        remove_late_reviews(&self.retention.table, self.partition.experiment, &gone).await?;
        *removed += gone.len() as u64;
        Ok(places_of(TraceRemoval::Kept).cloned().collect())
    }

    /// Deletes the trace at this position, given its document and its items in review queues.
    async fn remove_trace(
        &self,
        place: &TraceKey,
        head: Option<&StoredTrace>,
        reviews: Vec<Key>,
    ) -> Result<TraceRemoval> {
        let (experiment, mut removal) = (self.partition.experiment, TraceRemoval::Missing);
        if let Some(head) = head.filter(|head| head.experiment() == experiment) {
            if !self.partition.holds(head, place) {
                return Ok(TraceRemoval::Missing);
            }
            let is_quiet = head.marked_at() <= now_ms().saturating_sub(QUIET_MARK_AGE);
            if !is_quiet {
                return Ok(TraceRemoval::Kept);
            }
            self.retention.delete_trace_file(head).await?;
            if !self.remove_document(head, reviews).await? {
                // The trace was changed in the meantime. The writer has put a new mark before the
                // change, so the trace can still be found through this mark.
                return Ok(TraceRemoval::Kept);
            }
            removal = TraceRemoval::Removed;
        }
        self.remove_spans(experiment, &place.trace).await?;
        if let Some(files) = self.files.as_ref().filter(|_| head.is_none() || removal == TraceRemoval::Removed) {
            files.remove(&place.trace, self.report).await;
        }
        Ok(removal)
    }

    /// Deletes a document on condition that it has not changed since it was read. In the same
    /// transaction, deletes the row that records that the trace may have an assessment of its
    /// session, and the trace's items in review queues, and subtracts the trace from the numbers of
    /// traces per issue. If there are too many items for a transaction, some are deleted before it.
    /// Returns whether the document is gone.
    async fn remove_document(&self, head: &StoredTrace, reviews: Vec<Key>) -> Result<bool> {
        let (key, is_same) = (rows::Trace::key(head.id()), Condition::Equals(EDITS.into(), number(head.edits())));
        let mut others = reviews;
        let early = others.split_off(others.len().min(MAX_REVIEWS_IN_TRANSACTION));
        self.retention.table.write_many(Vec::new(), &early).await?;
        others.extend(head.judges_a_session().then(|| rows::TraceOfSession::key(&head.experiment(), head.id())));
        let counts = issue_count_writes(head.experiment(), Some(head.item()), None);
        if others.is_empty() && counts.is_empty() {
            return self.delete(&key, &is_same).await;
        }
        let others = others.into_iter().map(|key| Write::Delete(key, Condition::Always));
        let writes: Vec<_> = std::iter::once(Write::Delete(key, is_same)).chain(others).chain(counts).collect();
        match self.retention.table.transact(&writes).await {
            Ok(()) => Ok(true),
            // If the document is missing, another process was faster.
            Err(Failure::Cancelled(reasons)) => Ok(matches!(reasons.first(), Some(WriteRefusal::Refused(None)))),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Deletes the spans of a trace that does not exist or is in another experiment. Recent spans
    /// are kept because they may belong to a request in flight. That request has written a mark, so
    /// the next removal finds the spans. All spans are kept if the trace has been created again.
    async fn remove_spans(&self, experiment: ExperimentId, trace: &TraceId) -> Result<()> {
        let mut query = Query::of(rows::TraceSpans::all(&experiment, trace)).for_removal();
        loop {
            let page = self.retention.table.query_page(&query).await?;
            // The age of copies is not known. If there are some, the trace is read again after them.
            let has_copies = page.items.iter().any(|item| item.get(ARRIVED).is_some_and(|arrived| arrived < 0));
            if has_copies && self.has_trace(experiment, trace).await? {
                return Ok(());
            }
            for item in &page.items {
                let (Some(key), Some(arrived)) = (item.key(), item.get(ARRIVED)) else { continue };
                if arrived <= now_ms().saturating_sub(SETTLED_SPAN_AGE) {
                    self.delete(&key, &Condition::Equals(ARRIVED.into(), number(arrived))).await?;
                }
            }
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(()),
            }
        }
    }

    /// Checks whether a trace exists in an experiment. Takes one request.
    async fn has_trace(&self, experiment: ExperimentId, trace: &TraceId) -> Result<bool> {
        let row = self.retention.table.get(&rows::Trace::key(trace)).await?.map(TraceRow::of).transpose()?;
        Ok(match row {
            Some(TraceRow::Document(trace)) => trace.experiment() == experiment,
            Some(TraceRow::Pointer(pointer)) => pointer.experiment() == experiment,
            Some(TraceRow::Stub(_)) | None => false,
        })
    }

    /// Deletes an item on condition that it has not changed since it was read. Returns whether the
    /// item no longer exists.
    async fn delete(&self, key: &Key, condition: &Condition) -> Result<bool> {
        match self.retention.table.delete(key, condition).await {
            // An earlier attempt whose response was lost, or another process, has deleted the item.
            Ok(()) | Err(Failure::Refused { item: None, .. }) => Ok(true),
            Err(Failure::Refused { .. }) => Ok(false),
            Err(failure) => Err(failure.into()),
        }
    }
}

/// A mark that was not written recently.
struct QuietMark {
    key: Key,
    /// The position of its trace.
    place: TraceKey,
    /// When it was written, in ms.
    put: i64,
}

/// Returns a mark, unless it was written recently.
fn quiet(mark: &Item) -> Option<QuietMark> {
    let key = mark.key()?;
    let (place, put) = (TraceKey::of_key(&key)?, mark.get(MARKED_AT).unwrap_or_default());
    (put <= now_ms().saturating_sub(QUIET_MARK_AGE)).then_some(QuietMark { key, place, put })
}
