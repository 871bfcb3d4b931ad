//! What a trace is linked to: runs, and versions of prompts.

use access::Granted;
use entities::StoredTrace;
use entities::attributes::{EDITS, PROMPTS, RUNS};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::rows;
use mlflow_api::{Error, Result, TraceId};
use table::{Condition, Update, bytes_set, number};

use super::change::{ROOM, no_room};
use super::store::Store;

/// Traces that are linked at a time.
const AT_ONCE: usize = 16;

impl Store {
    /// Links traces to a run; those that are not there are passed over. One request for each that was not linked to it, and one for a mark.
    pub async fn trace_link_to_run(&self, traces: &[Granted<StoredTrace>], run: &str) -> Result<()> {
        let unlinked = traces.iter().filter(|trace| !trace.runs().iter().any(|known| known == run));
        // What is full is not linked any more, rather than all of them refused.
        let unlinked = unlinked.filter(|trace| trace.item().size() + run.len() <= ROOM);
        let unlinked: Vec<StoredTrace> = unlinked.map(|trace| (**trace).clone()).collect();
        self.trace_link(&unlinked, run).await
    }

    /// The same for traces of an experiment that may be written to.
    pub(super) async fn trace_link(&self, traces: &[StoredTrace], run: &str) -> Result<()> {
        let links: Vec<_> = traces.iter().map(|trace| self.trace_add(trace, RUNS, vec![run.to_owned()])).collect();
        stream::iter(links).buffer_unordered(AT_ONCE).try_collect::<Vec<_>>().await?;
        Ok(())
    }

    /// Links a trace to versions of prompts, given as `name/version`. One request, none if it is linked to all of them, and one for a
    /// mark.
    pub async fn trace_link_prompts(&self, trace: &Granted<StoredTrace>, prompts: Vec<String>) -> Result<()> {
        let known = trace.prompts();
        let new: Vec<_> = prompts.into_iter().filter(|prompt| !known.contains(prompt)).collect();
        if new.is_empty() {
            return Ok(());
        }
        if trace.item().size() + new.iter().map(String::len).sum::<usize>() > ROOM {
            return Err(no_room(trace.id()));
        }
        let is_there = self.trace_add(trace, PROMPTS, new).await?;
        if is_there { Ok(()) } else { Err(TraceId::not_found(trace.id().as_str())) }
    }

    /// Adds to a set of a trace; false where there is no such trace.
    async fn trace_add(
        &self,
        trace: &StoredTrace,
        attribute: &'static str,
        values: Vec<String>,
    ) -> Result<bool, Error> {
        let mut values: Vec<_> = values.into_iter().map(String::into_bytes).collect();
        values.sort_unstable();
        values.dedup();
        let update = Update::new(rows::Trace::key(trace.id())).add(attribute, bytes_set(values));
        Ok(self.trace_update(trace, &update.add(EDITS, number(1)), &Condition::Always).await?.is_some())
    }
}
