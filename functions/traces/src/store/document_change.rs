//! Conditional updates of a trace's document.

use entities::{StoredTrace, TraceItem, TraceStub, issue_count_writes};
use key_schema::rows;
use mlflow_api::{Error, ErrorCode, Result, TraceId};
use table::{Condition, Failure, Item, Write, WriteRefusal};
use trace_blocks::{read_trace_item, resolve_item, restore_marked_spans, restore_spans};

use super::document_draft::TraceDraft;
use super::mark::{PutMark, reliable_since};
use super::marked_spans::MarkedSpans;
use super::store::Store;

/// Maximum size in bytes of a document that consists of clients' data. The rest of DynamoDB's 400
/// KB is reserved for data of the server.
pub const MAX_DOCUMENT_BYTES: usize = 320 << 10;

/// Returns the error for a change that would make a document too large.
pub(super) fn document_full(trace: &TraceId) -> Error {
    let message =
        format!("Trace {trace} would be too large: everything except its spans may take {MAX_DOCUMENT_BYTES} bytes.");
    Error::new(ErrorCode::BadRequest, message)
}

/// The known state of a document before a change.
pub(super) enum KnownDocument {
    /// The document as this request has read it, or `None` if it does not exist.
    Read(Option<TraceItem>),
    /// The document as this process wrote it some time ago, or `None` if the process has no record
    /// of it.
    Cached(Option<StoredTrace>),
}

impl KnownDocument {
    /// Returns the state of a trace that this request has read.
    pub(super) fn current(trace: &StoredTrace) -> Self {
        Self::Read(Some(TraceItem::Trace(trace.clone())))
    }
}

/// Checks that the stored trace is still in the experiment to which the caller was granted access.
/// The trace may have been deleted and created again in another experiment since access was
/// checked.
pub(super) fn check_experiment<'a>(stored: Option<&'a StoredTrace>, granted: &StoredTrace) -> Result<&'a StoredTrace> {
    let stored = stored.filter(|stored| stored.experiment() == granted.experiment());
    stored.ok_or_else(|| TraceId::not_found(granted.id().as_str()))
}

/// A change to a trace's document. It may be planned several times, so planning must be idempotent.
/// The plan has to check that the document belongs to the experiment that the request may change.
pub(super) trait DocumentChange: Sync {
    /// Plans the change, given the current document, if there is one.
    fn plan(&self, store: &Store, stored: Option<&StoredTrace>) -> impl Future<Output = Result<TraceDraft>> + Send;

    /// Returns whether the change may use the space that is reserved for data of the server.
    fn is_servers(&self) -> bool {
        false
    }

    /// Returns whether this request has written spans of the trace. If so, the document is written
    /// even if nothing else changes. A packer that has not read the spans then fails to replace the
    /// document by a pointer, so readers find all spans of a trace with a pointer in its block. An
    /// archiver that has not read the spans fails to change the document, too.
    fn brings_spans(&self) -> bool {
        false
    }

    /// Returns the spans that this request has written in a mark, but not under the trace's key.
    fn marked_spans(&self) -> Option<&MarkedSpans> {
        None
    }
}

/// Converts an item to a trace or a stub, whichever it is. A stub stores links to a trace before it
/// arrives.
fn parts(item: Option<TraceItem>) -> (Option<StoredTrace>, Option<TraceStub>) {
    match item {
        Some(TraceItem::Trace(trace)) => (Some(trace), None),
        Some(TraceItem::Stub(awaited)) => (None, Some(awaited)),
        None => (None, None),
    }
}

impl Store {
    /// Changes a trace's document, given the state of the document that is known, and the marks
    /// that this request has written for the trace. Takes one request if the known state is current
    /// and no other request changes the document. Takes one more in each of these cases: the cached
    /// state already includes a change without spans; the trace was linked to a run before it arrived;
    /// marks have to be written, because the trace's mark is more than a minute old or the trace's time
    /// changes; the request has written spans in a mark, and the trace exists. Takes two more if the
    /// trace's time changes and its spans are in a mark.
    pub(super) async fn trace_change(
        &self,
        trace: &TraceId,
        known: KnownDocument,
        marked: Vec<PutMark>,
        change: &impl DocumentChange,
    ) -> Result<StoredTrace> {
        let ((mut stored, mut awaited), mut is_read) = match known {
            KnownDocument::Read(item) => (parts(item), true),
            KnownDocument::Cached(stored) => ((stored, None), false),
        };
        let mut marked = marked;
        let mut attempts = self.table.attempts("a trace");
        loop {
            attempts.next().await?;
            if let (Some(spans), Some(before)) = (change.marked_spans(), &stored) {
                // Planning reads the spans under the trace's key. They are stored again on each attempt,
                // because the trace, and these spans with it, may have been deleted since the last one.
                self.trace_store_spans(spans, before, &mut marked).await?;
            }
            let planned = change.plan(self, stored.as_ref()).await;
            let is_to_write = |draft: &TraceDraft| change.brings_spans() || draft.is_changed();
            let changes = planned.as_ref().is_ok_and(|draft| stored.is_none() || is_to_write(draft));
            if !changes && !is_read {
                // According to the cached document, there is nothing to do or the change is
                // rejected. The document is read again, because it may have been changed or deleted
                // since it was cached.
                self.trace_cache.forget_trace(trace);
                (stored, awaited) = parts(read_trace_item(&self.table, trace).await?);
                is_read = true;
                continue;
            }
            let mut draft = planned?;
            if let Some(awaited) = &awaited {
                draft.take_links(awaited);
            }
            if let Some(unchanged) = stored.as_ref().filter(|_| !is_to_write(&draft)) {
                return Ok(unchanged.clone());
            }
            if draft.size() > MAX_DOCUMENT_BYTES && draft.grows() && !change.is_servers() {
                return Err(document_full(trace));
            }
            if draft.gains_session_assessment() {
                let row = Item::new(rows::TraceOfSession::key(&draft.experiment(), trace));
                self.table.write_many(vec![row], &[]).await?;
            }
            let moved = draft.before().filter(|before| before.request_time() != draft.time()).cloned();
            if moved.is_some() {
                draft.forget_place_of_spans();
            }
            let spans = change.marked_spans().filter(|_| stored.is_none());
            let mark = match spans.and_then(|spans| spans.refer(&mut draft)) {
                Some(mark) => Some(mark),
                None => self.trace_keep_marks(&draft, &mut marked, spans.map(MarkedSpans::item)).await?,
            };
            if let Some(before) = &moved {
                // Neither the block nor the mark with the trace's spans is at the trace's new place. The
                // marks are written before, because an archiver releases only traces without marks.
                if before.has_packed_spans() {
                    restore_spans(&self.table, &self.archive, before).await?;
                }
                restore_marked_spans(&self.table, before).await?;
            }
            let (item, condition) = draft.finish(mark.as_ref());
            let counts = issue_count_writes(draft.experiment(), draft.before().map(StoredTrace::item), Some(&item));
            let Some(current) = self.trace_put(item.clone(), condition, counts).await? else {
                let written = StoredTrace::of(item)?;
                self.trace_cache.keep_trace(&written);
                return Ok(written);
            };
            self.trace_cache.forget_trace(trace);
            (stored, awaited) = parts(resolve_item(&self.table, current).await?);
            is_read = true;
        }
    }

    /// Writes a document, together with the numbers of traces per issue that change with it. Returns
    /// the current document, if there is one, if the condition does not hold. Takes one request,
    /// which costs twice the write units if a number changes.
    async fn trace_put(&self, item: Item, condition: Condition, counts: Vec<Write>) -> Result<Option<Option<Item>>> {
        if counts.is_empty() {
            return match self.table.put(item.clone(), &condition).await {
                Ok(()) => Ok(None),
                // An earlier attempt, whose response was lost, has written the document.
                Err(Failure::Refused { item: Some(found), after_lost_answer: true }) if found == item => Ok(None),
                Err(Failure::Refused { item, .. }) => Ok(Some(item)),
                Err(failure) => Err(failure.into()),
            };
        }
        let writes: Vec<_> = std::iter::once(Write::Put(item, condition)).chain(counts).collect();
        match self.table.transact(&writes).await {
            Ok(()) => Ok(None),
            Err(Failure::Cancelled(reasons)) => match reasons.into_iter().next() {
                Some(WriteRefusal::Refused(item)) => Ok(Some(item)),
                _ => Err(Error::unavailable("the transaction of an assessment was cancelled")),
            },
            Err(failure) => Err(failure.into()),
        }
    }

    /// Makes sure that the marks at the current and the new position of a trace are not deleted
    /// while the trace is changed. Also writes the item of a new trace's spans, if it is given. Returns
    /// the mark at the trace's position after the change, if this request has written that mark. Takes at
    /// most one request.
    async fn trace_keep_marks(
        &self,
        draft: &TraceDraft,
        marked: &mut Vec<PutMark>,
        spans: Option<Item>,
    ) -> Result<Option<PutMark>> {
        let experiment = draft.experiment();
        // Even marks that this request has written can be too old to rely on, because the process
        // may have been suspended for hours.
        let of_request = || marked.iter().filter(|put| put.at >= reliable_since());
        let mut new = Vec::new();
        let mut own = None;
        let before = draft.before();
        if let Some(before) = before.filter(|before| before.marked_at() < reliable_since()) {
            own = Some(of_request().find(|put| put.is_of(before)).cloned().unwrap_or_else(|| {
                let put = PutMark::of(before);
                new.push(put.clone());
                put
            }));
        }
        let time = draft.time();
        if before.is_none_or(|before| before.request_time() != time) {
            let known =
                of_request().find(|put| put.partition.experiment == experiment && put.place.time == time).cloned();
            own = Some(if let Some(put) = known {
                put
            } else {
                let put = self.trace_mark(experiment, draft.trace(), time).await?;
                let put = if before.is_some() { put.of_existing() } else { put };
                new.push(put.clone());
                put
            });
        }
        self.put_with_marks(new.iter().map(PutMark::item).chain(spans).collect()).await?;
        marked.extend(new);
        Ok(own)
    }
}
