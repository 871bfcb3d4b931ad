//! Tags of traces.

use access::Granted;
use entities::attributes::{EDITS, TAGS};
use entities::{StoredTrace, entry_name};
use key_schema::rows;
use mlflow_api::limits::trace_tag;
use mlflow_api::traces::{NAME_TAG, TAG_VALUE};
use mlflow_api::{Error, Result, TraceId, limits};
use table::{Condition, Failure, Update, number, text};

use super::change::{ROOM, no_room};
use super::store::Store;

/// Checks the name of a trace.
pub(crate) fn check_name(name: Option<&str>) -> Result<()> {
    name.map_or(Ok(()), |name| limits::at_most("Trace name", TAG_VALUE, name))
}

/// Checks a tag that a client sets, and cuts its value.
pub(crate) fn check(key: &str, value: &str) -> Result<String> {
    let value = trace_tag(key, value)?;
    check_name((key == NAME_TAG).then_some(value.as_str()))?;
    Ok(value)
}

/// MLflow's error for a tag that is not there.
pub(crate) fn no_tag(trace: &str, key: &str) -> Error {
    Error::not_found(format!("No trace tag with key '{key}' for trace with ID '{trace}'"))
}

impl Store {
    /// Sets a tag of a trace. One request.
    pub async fn trace_set_tag(&self, trace: &Granted<StoredTrace>, key: &str, value: &str) -> Result<()> {
        let value = check(key, value)?;
        if trace.item().size() + key.len() + value.len() > ROOM {
            return Err(no_room(trace.id()));
        }
        let name = entry_name(key);
        let update = Update::new(rows::Trace::key(trace.id())).set((TAGS, name.as_ref()), text(value));
        self.trace_update(trace.id(), update.add(EDITS, number(1)))
            .await?
            .ok_or_else(|| TraceId::not_found(trace.id().as_str()))
    }

    /// Deletes a tag of a trace. One request.
    pub async fn trace_delete_tag(&self, trace: &Granted<StoredTrace>, key: &str) -> Result<()> {
        let name = entry_name(key);
        let path = || table::Path::from((TAGS, name.as_ref()));
        let update = Update::new(rows::Trace::key(trace.id())).remove(path()).add(EDITS, number(1));
        let update = update.only_if(Condition::Exists(path()));
        self.trace_update(trace.id(), update).await?.ok_or_else(|| no_tag(trace.id().as_str(), key))
    }

    /// Changes a part of a trace's document, whatever the rest is; `None` where its condition does not hold. If the answer to an attempt
    /// was lost, that may be because the change is made.
    pub(super) async fn trace_update(&self, trace: &TraceId, update: Update) -> Result<Option<()>> {
        match self.table.update(&update).await {
            Ok(item) => {
                self.known.keep_trace(&StoredTrace::of(item)?);
                Ok(Some(()))
            }
            Err(Failure::Refused { item: Some(_), after_lost_answer: true }) => Ok(Some(())),
            Err(Failure::Refused { .. }) => {
                self.known.forget_trace(trace);
                Ok(None)
            }
            Err(failure) => Err(failure.into()),
        }
    }
}
