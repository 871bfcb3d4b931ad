//! Changing a trace's document.

use access::Granted;
use entities::{AwaitedTrace, StoredTrace, TraceItem, read_trace_item};
use key_schema::rows;
use mlflow_api::{Error, ErrorCode, Result, TraceId};
use table::{Failure, Item};

use super::draft::Draft;
use super::mark::{PutMark, reliable_since};
use super::store::Store;

/// Bytes of a document for data of clients; the rest of DynamoDB's 400 KB is for data of the
/// server.
pub(super) const ROOM: usize = 320 << 10;

/// The refusal of a change that has no room in a document.
pub(super) fn no_room(trace: &TraceId) -> Error {
    let message = format!("Trace {trace} has no room for this: all but its spans may take {ROOM} bytes.");
    Error::new(ErrorCode::BadRequest, message)
}

/// The known state of a document before it is changed.
pub(super) enum StartingPoint {
    /// This request has read it, or that there is none.
    Read(Option<TraceItem>),
    /// As this process wrote it some time ago; or it is new, as far as the process knows.
    Remembered(Option<StoredTrace>),
}

impl StartingPoint {
    /// The trace as the scope of this request has it.
    pub(super) fn granted(trace: &Granted<StoredTrace>) -> Self {
        Self::Read(Some(TraceItem::Trace((**trace).clone())))
    }
}

/// The trace that was read. It must still exist in the experiment that was granted: it may have
/// been deleted since, and made again in another one.
pub(super) fn still<'a>(stored: Option<&'a StoredTrace>, granted: &StoredTrace) -> Result<&'a StoredTrace> {
    let stored = stored.filter(|stored| stored.experiment() == granted.experiment());
    stored.ok_or_else(|| TraceId::not_found(granted.id().as_str()))
}

/// A change of a trace's document. It may be planned several times, and must not change again what
/// it has changed already. It has to check that the document belongs to the experiment that the
/// request may change.
pub(super) trait Change: Sync {
    /// Plans it, given the document as it is, if there is one.
    fn plan(&self, store: &Store, stored: Option<&StoredTrace>) -> impl Future<Output = Result<Draft>> + Send;

    /// Whether it may use the room that is kept for data of the server.
    fn is_servers(&self) -> bool {
        false
    }

    /// Whether this request has written spans of the trace: then its mark is kept even where the document stays as it is.
    fn brings_spans(&self) -> bool {
        false
    }
}

/// The trace of an item, or its stub from before it came.
fn parts(item: Option<TraceItem>) -> (Option<StoredTrace>, Option<AwaitedTrace>) {
    match item {
        Some(TraceItem::Trace(trace)) => (Some(trace), None),
        Some(TraceItem::Awaited(awaited)) => (None, Some(awaited)),
        None => (None, None),
    }
}

impl Store {
    /// Changes a trace's document, given the known state of it and the marks that this request has
    /// put for it. One request where the known state is right and no other request changes it. One
    /// more where the remembered state has all of the change already, or the trace was linked to a
    /// run before it came. One more for marks where the trace was marked more than a minute ago, or
    /// gets another time.
    pub(super) async fn trace_change(
        &self,
        trace: &TraceId,
        known: StartingPoint,
        marked: Vec<PutMark>,
        change: &impl Change,
    ) -> Result<StoredTrace> {
        let ((mut stored, mut awaited), mut is_read) = match known {
            StartingPoint::Read(item) => (parts(item), true),
            StartingPoint::Remembered(stored) => ((stored, None), false),
        };
        let mut marked = marked;
        let mut attempts = self.table.attempts("a trace");
        loop {
            attempts.next().await?;
            let planned = change.plan(self, stored.as_ref()).await;
            let changes = planned.as_ref().is_ok_and(|draft| stored.is_none() || draft.is_changed());
            if !changes && !is_read {
                // Nothing to do, or a refusal, as far as the process remembers: it may be another by now, or gone.
                self.known.forget_trace(trace);
                (stored, awaited) = parts(read_trace_item(&self.table, trace).await?);
                is_read = true;
                continue;
            }
            let mut draft = planned?;
            if let Some(awaited) = &awaited {
                draft.take_links(awaited);
            }
            if let Some(unchanged) = stored.as_ref().filter(|_| !draft.is_changed()) {
                if change.brings_spans() {
                    self.trace_keep_marks(&draft, &mut marked).await?;
                }
                return Ok(unchanged.clone());
            }
            if draft.size() > ROOM && draft.grows() && !change.is_servers() {
                return Err(no_room(trace));
            }
            if draft.begins_to_judge_a_session() {
                let row = Item::new(rows::TraceOfSession::key(&draft.experiment(), trace));
                self.table.write_many(vec![row], &[]).await?;
            }
            let mark = self.trace_keep_marks(&draft, &mut marked).await?;
            let (item, condition) = draft.finish(mark.as_ref());
            match self.table.put(item.clone(), &condition).await {
                Ok(()) => {
                    let written = StoredTrace::of(item)?;
                    self.known.keep_trace(&written);
                    return Ok(written);
                }
                Err(Failure::Refused { item, .. }) => {
                    self.known.forget_trace(trace);
                    (stored, awaited) = parts(item.map(TraceItem::of).transpose()?);
                    is_read = true;
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Sees to it that nobody takes away the marks at the places that a trace has and gets, while it is changed; the mark at the place that it
    /// gets, if this request has put it. One request, or none.
    async fn trace_keep_marks(&self, draft: &Draft, marked: &mut Vec<PutMark>) -> Result<Option<PutMark>> {
        let experiment = draft.experiment();
        // A request may have slept for hours, with its machine.
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
                new.push(put.clone());
                put
            });
        }
        self.put_with_marks(new.iter().map(PutMark::item).collect()).await?;
        marked.extend(new);
        Ok(own)
    }
}
