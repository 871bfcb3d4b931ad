//! Storage of trace tags.

use access::Granted;
use entities::attributes::{EDITS, EXPERIMENT, IN_BLOCK, MARKED_AT, SHARD, START_TIME, TAGS};
use entities::{LocatedTrace, POINTER, StoredTrace, TraceItem, entry_name};
use key_schema::rows;
use mlflow_api::limits::trace_tag;
use mlflow_api::traces::{MAX_TAG_VALUE_LENGTH, NAME_TAG};
use mlflow_api::{Error, Result, TraceId, limits};
use table::{Condition, Failure, Item, Update, number, text};
use trace_blocks::resolve_item;

use super::document_change::{MAX_DOCUMENT_BYTES, document_full};
use super::document_draft::TraceDraft;
use super::mark::reliable_since;
use super::store::Store;

/// Checks the length of a trace's name.
pub(crate) fn check_name(name: Option<&str>) -> Result<()> {
    name.map_or(Ok(()), |name| limits::at_most("Trace name", MAX_TAG_VALUE_LENGTH, name))
}

/// Checks a tag that a client sets, and truncates its value.
pub(crate) fn check(key: &str, value: &str) -> Result<String> {
    let value = trace_tag(key, value)?;
    check_name((key == NAME_TAG).then_some(value.as_str()))?;
    Ok(value)
}

/// Returns MLflow's error for a missing tag.
pub(crate) fn no_tag(trace: &str, key: &str) -> Error {
    Error::not_found(format!("No trace tag with key '{key}' for trace with ID '{trace}'"))
}

impl Store {
    /// Sets a tag of a trace. Takes one request, or two if the trace's mark is more than a minute
    /// old, or four if the trace is packed.
    pub async fn trace_set_tag(&self, trace: &Granted<LocatedTrace>, key: &str, value: &str) -> Result<()> {
        let value = check(key, value)?;
        let trace = self.trace_document(trace).await?;
        if trace.item().size() + key.len() + value.len() > MAX_DOCUMENT_BYTES {
            return Err(document_full(trace.id()));
        }
        let name = entry_name(key);
        let update = Update::new(rows::Trace::key(trace.id())).set((TAGS, name.as_ref()), text(value));
        self.trace_update(&trace, &update.add(EDITS, number(1)), &Condition::Always)
            .await?
            .ok_or_else(|| TraceId::not_found(trace.id().as_str()))
    }

    /// Deletes a tag of a trace. Takes as many requests as [`Store::trace_set_tag`].
    pub async fn trace_delete_tag(&self, trace: &Granted<LocatedTrace>, key: &str) -> Result<()> {
        let missing = || no_tag(trace.id().as_str(), key);
        let known = self.located_documents(std::slice::from_ref(trace)).await?.pop().ok_or_else(missing)?;
        let name = entry_name(key);
        let path = || table::AttributePath::from((TAGS, name.as_ref()));
        let update = Update::new(rows::Trace::key(trace.id())).remove(path()).add(EDITS, number(1));
        self.trace_update(&known, &update, &Condition::Exists(path())).await?.ok_or_else(missing)
    }

    /// Updates a part of a trace's document regardless of its other parts, given the document as it
    /// was read. Takes one request, or two if the trace's mark is more than a minute old. Takes one
    /// more if the trace is packed, because its document is written first.
    ///
    /// Returns `None` if the condition does not hold, or if the trace was deleted and created again
    /// in another experiment, which this request may not change. If the response to an earlier
    /// attempt was lost, the change may have been made nevertheless.
    pub(super) async fn trace_update(
        &self,
        known: &StoredTrace,
        update: &Update,
        condition: &Condition,
    ) -> Result<Option<()>> {
        let mut known = known.clone();
        let is_granted = Condition::Equals(EXPERIMENT.into(), text(known.experiment().to_string()));
        let is_document = Condition::Not(Box::new(Condition::Equals(IN_BLOCK.into(), number(POINTER))));
        let condition = is_granted.and(is_document).and(condition.clone());
        let mut attempts = self.table.attempts("a trace");
        loop {
            attempts.next().await?;
            if known.is_behind_pointer() {
                let Some(written) = self.trace_write_packed(&known).await? else { return Ok(None) };
                known = written;
                continue;
            }
            let since = reliable_since();
            let put = self.trace_keep_mark(&known).await?;
            let (update, is_marked) = match &put {
                // The mark that was just written becomes the trace's mark, provided that the
                // trace's time has not changed.
                Some(put) => (update.clone().set(MARKED_AT, number(put.at)), is_at(&known)),
                None => (update.clone(), Condition::Not(Box::new(Condition::Below(MARKED_AT.into(), number(since))))),
            };
            match self.table.update(&update.only_if(condition.clone().and(is_marked))).await {
                Ok(item) => {
                    self.trace_cache.keep_trace(&StoredTrace::of(item)?);
                    return Ok(Some(()));
                }
                Err(Failure::Refused { item, after_lost_answer }) => {
                    self.trace_cache.forget_trace(known.id());
                    let Some(now) = self.trace_now(&known, item).await? else { return Ok(None) };
                    if now.is_behind_pointer() {
                        known = now;
                        continue;
                    }
                    let was_marked = match &put {
                        Some(put) => put.is_of(&now),
                        None => now.marked_at() >= since,
                    };
                    if was_marked {
                        return Ok(after_lost_answer.then_some(()));
                    }
                    known = now;
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}

impl Store {
    /// Writes the document of a packed trace in place of its pointer, so that parts of it can be
    /// updated. Returns the trace as it is stored then, or `None` if it is gone. Takes two requests.
    async fn trace_write_packed(&self, known: &StoredTrace) -> Result<Option<StoredTrace>> {
        let mark = self.trace_keep_mark(known).await?;
        let (item, condition) = TraceDraft::of(known).finish(mark.as_ref());
        match self.table.put(item.clone(), &condition).await {
            Ok(()) => Ok(Some(StoredTrace::of(item)?)),
            Err(Failure::Refused { item, .. }) => self.trace_now(known, item).await,
            Err(failure) => Err(failure.into()),
        }
    }

    /// Returns the trace that an item of a refused write stands for, if it is still in the same
    /// experiment.
    async fn trace_now(&self, known: &StoredTrace, item: Option<Item>) -> Result<Option<StoredTrace>> {
        let now = resolve_item(&self.table, item).await?.and_then(TraceItem::trace);
        Ok(now.filter(|now| now.experiment() == known.experiment()))
    }
}

/// Returns the condition that a trace still has the same time and the same partition number.
fn is_at(known: &StoredTrace) -> Condition {
    let shard = match known.shard() {
        0 => Condition::Missing(SHARD.into()),
        shard => Condition::Equals(SHARD.into(), number(shard)),
    };
    Condition::Equals(START_TIME.into(), number(known.request_time())).and(shard)
}
