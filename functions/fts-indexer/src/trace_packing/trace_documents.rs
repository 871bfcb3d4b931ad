//! Reads the documents of marked traces.

use std::collections::HashMap;

use entities::attributes::{ARRIVED, MARKED_AT, STATE, TO_PACK, WAITS};
use entities::{StoredTrace, TracePointer, TraceRow, is_found_by_client_request};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::rows;
use mlflow_api::traces::TraceState;
use mlflow_api::{ExperimentId, TraceId};
use table::{Condition, Failure, Item, Query, Result, Update, number};
use trace_blocks::{MAX_TRACE_BYTES, TraceKey, TracePartition, room};

use crate::trace_packing::marks::Mark;
use crate::trace_packing::{CONCURRENCY, MAX_MARKS_PER_BLOCK, Packer};

/// Number of documents that are read in one request.
const BATCH_SIZE: usize = 100;
/// How long, in ms, a trace in progress is expected to run at most.
const MAX_PROGRESS_MS: i64 = 3_600_000;

/// Delay, in ms, after which a trace is checked again because the index of clients' request IDs did
/// not contain it yet. Usually, entries appear within seconds.
const INDEX_DELAY_MS: i64 = 900_000;

/// Age, in ms, after which spans without a trace are deleted. After this time no request relies on
/// them, because a request relies only on spans that it has written itself.
const ORPHAN_AGE_MS: i64 = 600_000;

/// Maximum number of marks at one place that a packing pass holds in memory. Each may have 4 KB of spans.
const MAX_MARKS_PER_PLACE: usize = 4;

/// A document exists, but cannot be read.
struct UnreadableDocument;

/// The documents of marked traces.
#[derive(Debug, Default)]
pub(super) struct TraceDocuments {
    /// Traces that may be packed, in the order of their marks.
    pub(super) live: Vec<LiveTrace>,
    /// Marks that are no longer valid.
    pub(super) dead: Vec<Mark>,
    /// Marks of traces whose current version is in their block.
    pub(super) packed: Vec<Mark>,
    /// Time in ms within which the traces that may not be packed yet have to be checked again.
    /// These are traces in progress, traces that the index of clients' request IDs does not contain
    /// yet, and traces that were created since their marks were read.
    pub(super) recheck_within: Option<i64>,
}

impl TraceDocuments {
    fn recheck_within_ms(&mut self, ms: i64) {
        self.recheck_within = Some(self.recheck_within.map_or(ms, |known| known.min(ms)));
    }
}

/// A trace that may be packed.
#[derive(Debug)]
pub(super) struct LiveTrace {
    pub(super) mark: Mark,
    pub(super) trace: StoredTrace,
    /// Number of bytes that the trace takes in a block.
    pub(super) packed_bytes: usize,
}

impl LiveTrace {
    /// Returns the trace, and the mark with spans that it refers to.
    pub(super) fn with_marked_spans(&self) -> (StoredTrace, Option<Item>) {
        (self.trace.clone(), self.mark.spans_of(&self.trace).cloned())
    }
}

/// The item under the key of a trace that exists.
#[derive(Debug)]
enum DocumentState {
    Document(StoredTrace),
    /// The trace is packed.
    Pointer(TracePointer),
    /// The item cannot be read. Other traces are packed nevertheless.
    Unreadable,
}

impl DocumentState {
    /// Returns `None` for a stub, which stores links to a trace before it arrives.
    fn of(item: Item) -> Option<Self> {
        match TraceRow::of(item) {
            Ok(TraceRow::Document(trace)) => Some(Self::Document(trace)),
            Ok(TraceRow::Pointer(pointer)) => Some(Self::Pointer(pointer)),
            Ok(TraceRow::Stub(_)) => None,
            Err(_) => Some(Self::Unreadable),
        }
    }

    fn experiment(&self) -> Option<ExperimentId> {
        match self {
            Self::Document(trace) => Some(trace.experiment()),
            Self::Pointer(pointer) => Some(pointer.experiment()),
            Self::Unreadable => None,
        }
    }
}

impl Packer<'_> {
    /// Reads the documents of marked traces. Takes one request per hundred documents, and costs one
    /// read unit per 4 KB of each document. Takes one more request for each document that is
    /// missing or turns out to be too large.
    pub(super) async fn documents(&self, marks: &[Mark]) -> Result<TraceDocuments> {
        let (mut found, mut waiting) = (TraceDocuments::default(), Vec::new());
        for marks in marks.chunks(BATCH_SIZE) {
            let documents = self.read_documents(marks).await?;
            for mark in marks {
                // A trace whose start time has changed has two marks, of which only one has the
                // current time.
                let trace = documents.get(&mark.place.trace);
                let mark = mark.clone();
                let room_of = |trace: &StoredTrace| room(trace).ok().filter(|room| *room <= MAX_TRACE_BYTES);
                match trace {
                    Some(DocumentState::Unreadable) => waiting.push(mark),
                    Some(DocumentState::Pointer(pointer)) if self.is_here(pointer, &mark.place) => {
                        found.packed.push(mark);
                    }
                    Some(DocumentState::Document(trace)) if trace.experiment() == self.partition.experiment => {
                        if !self.partition.holds(trace, &mark.place) {
                            found.dead.push(mark);
                        } else if self.is_young(trace) || !self.can_release(trace, &mark) {
                            found.recheck_within_ms(MAX_PROGRESS_MS);
                        } else if let Some(room) = room_of(trace) {
                            found.live.push(LiveTrace { mark, trace: trace.clone(), packed_bytes: room });
                        } else {
                            waiting.push(mark);
                        }
                    }
                    Some(DocumentState::Pointer(pointer)) if pointer.experiment() == self.partition.experiment => {
                        found.dead.push(mark);
                    }
                    None | Some(_) => {
                        if self.delete_orphans(&mark).await? {
                            found.dead.push(mark);
                        } else {
                            found.recheck_within_ms(MAX_PROGRESS_MS);
                        }
                    }
                }
            }
        }
        let waiting: Vec<_> = waiting.iter().map(|mark| self.skip_mark(mark)).collect();
        stream::iter(waiting).buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
        self.without_unindexed(found).await
    }

    /// Removes traces that are not in the index of clients' request IDs yet, because searches by
    /// request ID find such traces only by their marks. Takes one request of half a read unit for
    /// each trace with a client request ID.
    async fn without_unindexed(&self, mut found: TraceDocuments) -> Result<TraceDocuments> {
        let checks = std::mem::take(&mut found.live).into_iter().map(|live| async move {
            Ok::<_, Failure>((is_found_by_client_request(self.table, &live.trace).await?, live))
        });
        let mut checked = stream::iter(checks.collect::<Vec<_>>()).buffered(CONCURRENCY);
        while let Some((is_found, live)) = checked.try_next().await? {
            if is_found {
                found.live.push(live);
            } else {
                found.recheck_within_ms(INDEX_DELAY_MS);
            }
        }
        Ok(found)
    }

    /// Checks whether a pointer leads to the block that covers a place of this partition.
    fn is_here(&self, pointer: &TracePointer, place: &TraceKey) -> bool {
        TracePartition::of_pointer(pointer) == self.partition && pointer.request_time() == place.time
    }

    /// Reads the traces of marks. Traces that do not exist are left out.
    async fn read_documents(&self, marks: &[Mark]) -> Result<HashMap<TraceId, DocumentState>> {
        let keys: Vec<_> = marks.iter().map(|mark| rows::Trace::key(&mark.place.trace)).collect();
        let mut found = HashMap::new();
        match self.table.get_many(&keys).await {
            Ok(items) => {
                let of_item = |(key, item)| Some((rows::Trace::parse(&key)?.trace, DocumentState::of(item)?));
                found.extend(items.into_iter().filter_map(of_item));
            }
            Err(Failure::Unreadable(_)) => {
                for (mark, key) in marks.iter().zip(&keys) {
                    let item = match self.table.get(key).await {
                        Err(Failure::Unreadable(what)) => {
                            tracing::error!(what, "a trace cannot be packed");
                            Some(DocumentState::Unreadable)
                        }
                        item => item?.and_then(DocumentState::of),
                    };
                    found.extend(item.map(|trace| (mark.place.trace.clone(), trace)));
                }
            }
            Err(failure) => return Err(failure),
        }
        Ok(found)
    }

    /// Checks whether a trace is in progress and was started so recently that it may still end.
    fn is_young(&self, trace: &StoredTrace) -> bool {
        let is_in_progress = trace.item().get(STATE) == Some(TraceState::InProgress);
        is_in_progress && self.now.saturating_sub(trace.request_time()) < MAX_PROGRESS_MS
    }

    /// Checks whether a trace can be packed if its spans are in a mark. Such a mark cannot be deleted
    /// unless a pointer replaces the document. If the mark is not among those that were read, the trace
    /// was created after that.
    fn can_release(&self, trace: &StoredTrace, mark: &Mark) -> bool {
        trace.in_mark().is_none() || (self.releases && mark.spans_of(trace).is_some())
    }

    /// Deletes marks with spans to which no document refers, for example because the trace was deleted,
    /// at positions that also have a mark without spans. Otherwise these spans would stay until there are
    /// enough marks for a block. The mark without spans stays, because the block that covers its position may
    /// contain the trace. Takes one request per hundred such positions, and one per deletion.
    pub(super) async fn delete_unused_spans(&self, marks: &[Mark]) -> Result<()> {
        let candidates: Vec<_> = marks.iter().filter(|mark| mark.is_mixed()).cloned().collect();
        for candidates in candidates.chunks(BATCH_SIZE) {
            let documents = self.read_documents(candidates).await?;
            let mut unused = Vec::new();
            for mark in candidates {
                let Ok(used) = self.used_spans(mark, &documents) else { continue };
                unused.extend(mark.with_spans().filter(|item| Some(*item) != used).cloned());
            }
            self.delete_marks(&unused).await?;
        }
        Ok(())
    }

    /// Caps the marks of a place that a pass holds in memory. Every process that has not cached a trace
    /// may write a mark of up to 4 KB. If there are too many, and all of them are quiet, deletes those with
    /// spans, except for the latest one and the one that the document refers to. Returns the marks that
    /// are left, or only the latest one if it is not quiet, so that the place is not packed in this
    /// pass. Also returns the number of deleted marks. Takes one request, and one per deletion.
    pub(super) async fn limit_marks(&self, items: Vec<Item>) -> Result<(Vec<Item>, usize)> {
        if items.len() <= MAX_MARKS_PER_PLACE {
            return Ok((items, 0));
        }
        let latest = items.iter().max_by_key(|item| item.get(MARKED_AT)).cloned();
        let latest_only = || (latest.iter().cloned().collect(), 0);
        let Some(mark) = Mark::of(items).filter(|mark| self.is_quiet(mark)) else { return Ok(latest_only()) };
        let documents = self.read_documents(std::slice::from_ref(&mark)).await?;
        let Ok(used) = self.used_spans(&mark, &documents) else { return Ok(latest_only()) };
        let is_unused = |item: &&Item| Some(*item) != used && Some(*item) != latest.as_ref();
        let unused: Vec<_> = mark.with_spans().filter(is_unused).cloned().collect();
        for unused in unused.chunks(MAX_MARKS_PER_BLOCK) {
            self.delete_marks(unused).await?;
            runtime::clock::sleep(self.thresholds.pause).await;
        }
        Ok((mark.items.iter().filter(|item| !unused.contains(item)).cloned().collect(), unused.len()))
    }

    /// Returns the mark with spans to which the document of its trace refers, if there is one. Returns an
    /// error if the document cannot be read.
    fn used_spans<'a>(
        &self,
        mark: &'a Mark,
        documents: &HashMap<TraceId, DocumentState>,
    ) -> std::result::Result<Option<&'a Item>, UnreadableDocument> {
        match documents.get(&mark.place.trace) {
            Some(DocumentState::Unreadable) => Err(UnreadableDocument),
            Some(DocumentState::Document(trace)) if self.partition.holds(trace, &mark.place) => {
                Ok(mark.spans_of(trace))
            }
            _ => Ok(None),
        }
    }

    /// Deletes this experiment's spans of a trace that is not in the experiment. Such spans remain
    /// if an export was interrupted or rejected, and only the mark shows where they are. Returns
    /// `false` if some spans are kept because they are so recent that they may belong to a request
    /// in flight. Takes one request, and one for each item of spans.
    async fn delete_orphans(&self, mark: &Mark) -> Result<bool> {
        // A request that creates the trace from now on puts a mark with spans again before it relies on
        // the mark, so the mark is not deleted.
        if mark.has_spans() && mark.put > self.now.saturating_sub(ORPHAN_AGE_MS) {
            return Ok(false);
        }
        let spans = rows::TraceSpans::all(&self.partition.experiment, &mark.place.trace);
        let mut query = Query::of(spans).for_removal();
        loop {
            let page = self.table.query_page(&query).await?;
            // A request may have created the trace since it was checked, so it is read again.
            // Requests after this point write the spans that they rely on themselves.
            let trace = match page.items.as_slice() {
                [] => None,
                _ => self.table.get(&rows::Trace::key(&mark.place.trace)).await?,
            };
            let experiment = trace.and_then(DocumentState::of).and_then(|trace| trace.experiment());
            if experiment == Some(self.partition.experiment) {
                return Ok(false);
            }
            for item in &page.items {
                let (Some(key), Some(arrived)) = (item.key(), item.get(ARRIVED)) else { return Ok(false) };
                if arrived > self.now.saturating_sub(ORPHAN_AGE_MS) {
                    return Ok(false);
                }
                let is_as_read = Condition::Equals(ARRIVED.into(), number(arrived));
                match self.table.delete(&key, &is_as_read).await {
                    // The item does not exist any more if the response to an earlier attempt was
                    // lost.
                    Ok(()) | Err(Failure::Refused { item: None, .. }) => {}
                    Err(Failure::Refused { .. }) => return Ok(false),
                    Err(failure) => return Err(failure),
                }
            }
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(true),
            }
        }
    }

    /// Makes later passes skip the marks of a position until one of them is put again.
    async fn skip_mark(&self, mark: &Mark) -> Result<()> {
        for item in mark.items.iter() {
            let Some(key) = item.key() else { continue };
            let update = Update::new(key).set(WAITS, number(1)).remove(TO_PACK);
            match self.table.apply(&update.only_if(Condition::unchanged(item, MARKED_AT))).await {
                Ok(()) | Err(Failure::Refused { .. }) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }
}
