//! Changing a trace's document.

use entities::{StoredTrace, now_ms};
use key_schema::rows;
use mlflow_api::{Error, ErrorCode, Result, TraceId};
use table::{Failure, Item};

use super::draft::Draft;
use super::store::Store;

/// Bytes of a document that clients fill; the rest of DynamoDB's 400 KB is for what the server adds.
pub(super) const ROOM: usize = 320 << 10;

/// The refusal of what a document has no room for.
pub(super) fn no_room(trace: &TraceId) -> Error {
    let message = format!("Trace {trace} has no room for this: all but its spans may take {ROOM} bytes.");
    Error::new(ErrorCode::BadRequest, message)
}

/// What is known of a document before it is changed.
pub(super) enum Known {
    /// This request has read it, or that there is none.
    Read(Option<StoredTrace>),
    /// As this process wrote it some time ago; or it is new, as far as the process knows.
    Remembered(Option<StoredTrace>),
}

/// A change of a trace's document. It may be planned several times, and its effect on what it has changed already is none.
pub(super) trait Change: Sync {
    /// Plans it, given the document as it is, if there is one.
    fn plan(&self, store: &Store, stored: Option<&StoredTrace>) -> impl Future<Output = Result<Draft>> + Send;

    /// Whether it may use the room that is kept for what the server adds.
    fn is_servers(&self) -> bool {
        false
    }
}

impl Store {
    /// Changes a trace's document, given what is known of it and a time for which this request has put a mark. One request where both are
    /// right and nobody else changes it; one more where what is remembered has all of the change already.
    pub(super) async fn trace_change(
        &self,
        trace: &TraceId,
        known: Known,
        marked: Option<i64>,
        change: &impl Change,
    ) -> Result<StoredTrace> {
        let (mut stored, mut is_read) = match known {
            Known::Read(stored) => (stored, true),
            Known::Remembered(stored) => (stored, false),
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
                stored = self.trace_heads(&[trace]).await?.remove(trace);
                is_read = true;
                continue;
            }
            let draft = planned?;
            if let Some(unchanged) = stored.as_ref().filter(|_| !draft.is_changed()) {
                return Ok(unchanged.clone());
            }
            if draft.size() > ROOM && draft.grows() && !change.is_servers() {
                return Err(no_room(trace));
            }
            let (mark, is_there) = draft.mark();
            if draft.begins_to_judge_a_session() {
                let row = Item::new(rows::TraceOfSession::key(&draft.experiment(), trace));
                self.table.write_many(vec![row], &[]).await?;
            }
            if !is_there && marked != Some(mark.time) {
                let mark_row = self.trace_mark(draft.experiment(), &mark).await?;
                self.table.write_many(vec![mark_row], &[]).await?;
                marked = Some(mark.time);
            }
            let (item, condition) = draft.finish((!is_there).then(now_ms));
            match self.table.put(item.clone(), &condition).await {
                Ok(()) => {
                    let written = StoredTrace::of(item)?;
                    self.known.keep_trace(&written);
                    return Ok(written);
                }
                Err(Failure::Refused { item, .. }) => {
                    self.known.forget_trace(trace);
                    stored = item.map(StoredTrace::of).transpose()?;
                    is_read = true;
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}
