//! Changing a trace's document.

use entities::{StoredTrace, now_ms};
use key_schema::rows;
use mlflow_api::{Result, TraceId};
use table::{Failure, Item};

use super::draft::Draft;
use super::store::Store;

/// A change of a trace's document. It may be planned several times, and its effect on what it has changed already is none.
pub(super) trait Change: Sync {
    /// Plans it, given the document as it is, if there is one.
    fn plan(&self, store: &Store, stored: Option<&StoredTrace>) -> impl Future<Output = Result<Draft>> + Send;
}

impl Store {
    /// Changes a trace's document, given what is known of it and a time for which this request has put a mark. One request where both are
    /// right and nobody else changes it.
    pub(super) async fn trace_change(
        &self,
        trace: &TraceId,
        known: Option<StoredTrace>,
        marked: Option<i64>,
        change: &impl Change,
    ) -> Result<StoredTrace> {
        let (mut stored, mut marked) = (known, marked);
        let mut attempts = self.table.attempts("a trace");
        loop {
            attempts.next().await?;
            let draft = change.plan(self, stored.as_ref()).await?;
            if let Some(stored) = stored.as_ref().filter(|_| !draft.is_changed()) {
                return Ok(stored.clone());
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
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}
