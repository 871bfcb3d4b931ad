//! Links from traces to runs and to versions of prompts.

use std::collections::BTreeSet;

use access::Granted;
use entities::attributes::{Attribute, EDITS, EXPIRES, PROMPTS, RUNS, TextSet};
use entities::{LocatedTrace, RunLocation, StoredTrace, TraceItem, TraceStub, now_ms};
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::rows;
use mlflow_api::{Error, ErrorCode, Result, TraceId};
use rand::RngExt;
use table::{Condition, Failure, Update, bytes_set, number};
use trace_blocks::resolve_item;

use super::document_change::{MAX_DOCUMENT_BYTES, document_full};
use super::store::Store;

/// Number of traces that are linked concurrently.
const CONCURRENCY: usize = 16;
/// Maximum number of runs that a trace may be linked to before it arrives.
const MAX_RUNS: usize = 100;
/// How long links to a trace that has not arrived are kept, in seconds: a week.
const STUB_LIFETIME_SECONDS: i64 = 7 * 86_400;

/// Checks whether a trace is not linked to a run and has room for the link. If it has no room, the
/// link is dropped, because otherwise the whole request would be rejected.
fn is_unlinked(trace: &StoredTrace, run: &str) -> bool {
    !trace.runs().iter().any(|known| known == run) && trace.item().size() + run.len() <= MAX_DOCUMENT_BYTES
}

impl Store {
    /// Links traces to a run. Takes one request per trace that was not linked to it before, or two
    /// if the trace's mark is more than a minute old, or three if the trace is packed. Takes one more
    /// per block that contains some of the traces.
    pub async fn trace_link_to_run(&self, traces: &[Granted<LocatedTrace>], run: &str) -> Result<()> {
        let mut unlinked = self.located_documents(traces).await?;
        unlinked.retain(|trace| is_unlinked(trace, run));
        self.trace_link(&unlinked, run).await
    }

    /// Links traces that have not arrived yet to a run. This is common, because clients export
    /// traces in the background and link them right away. The links are kept for a week. Takes one
    /// request per trace, or two if links to the trace have already been stored.
    ///
    /// # Errors
    /// Returns `BAD_REQUEST` if a trace that has not arrived is linked to the maximum number of
    /// runs.
    pub async fn traces_link_before_arrival(
        &self,
        traces: &BTreeSet<&TraceId>,
        run: &Granted<RunLocation>,
    ) -> Result<()> {
        let links: Vec<_> = traces.iter().map(|trace| self.trace_link_before_arrival(trace, run)).collect();
        stream::iter(links).buffer_unordered(CONCURRENCY).try_collect::<Vec<_>>().await?;
        Ok(())
    }

    async fn trace_link_before_arrival(&self, trace: &TraceId, run: &Granted<RunLocation>) -> Result<()> {
        let id = run.run.as_str();
        let mut is_awaited = false;
        let mut attempts = self.table.attempts("a trace");
        loop {
            attempts.next().await?;
            let expires = now_ms() / 1_000 + STUB_LIFETIME_SECONDS;
            let written = if is_awaited {
                let update = Update::new(rows::Trace::key(trace)).only_if(Condition::Exists(EXPIRES.into()));
                let update = update.add(RUNS, bytes_set([id.as_bytes().to_vec()])).add(EDITS, number(1));
                self.table.apply(&update.set(EXPIRES, number(expires))).await
            } else {
                let edits = i64::from(rand::rng().random::<u32>()) << 24;
                let stub = TraceStub::item(trace, id, run.experiment, edits, expires);
                self.table.put(stub, &Condition::item_missing()).await
            };
            let found = match written {
                Ok(()) => return Ok(()),
                Err(Failure::Refused { item, .. }) => resolve_item(&self.table, item).await?,
                Err(failure) => return Err(failure.into()),
            };
            match found {
                Some(TraceItem::Trace(come)) => {
                    let kept = self.retention_cache.since([come.experiment()]).await?;
                    let to_link = kept.has(&come) && is_unlinked(&come, id);
                    return if to_link { self.trace_link(&[come], id).await } else { Ok(()) };
                }
                Some(TraceItem::Stub(known)) => {
                    if known.runs().len() >= MAX_RUNS && !known.runs().iter().any(|known| known == id) {
                        let message =
                            format!("Trace {trace} does not exist yet and is already linked to {MAX_RUNS} runs.");
                        return Err(Error::new(ErrorCode::BadRequest, message));
                    }
                    is_awaited = true;
                }
                None => is_awaited = false,
            }
        }
    }

    /// Links traces to a run. The caller must have checked that the traces' experiment is writable.
    pub(super) async fn trace_link(&self, traces: &[StoredTrace], run: &str) -> Result<()> {
        let links: Vec<_> = traces.iter().map(|trace| self.trace_add(trace, RUNS, vec![run.to_owned()])).collect();
        stream::iter(links).buffer_unordered(CONCURRENCY).try_collect::<Vec<_>>().await?;
        Ok(())
    }

    /// Links a trace to versions of prompts, given as `name/version`. Takes one request, or none if
    /// all links exist, and one more if the trace's mark is more than a minute old. If the trace is packed,
    /// takes one for its block, and three to link it.
    pub async fn trace_link_prompts(&self, trace: &Granted<LocatedTrace>, prompts: Vec<String>) -> Result<()> {
        let trace = self.trace_document(trace).await?;
        let known = trace.prompts();
        let new: Vec<_> = prompts.into_iter().filter(|prompt| !known.contains(prompt)).collect();
        if new.is_empty() {
            return Ok(());
        }
        if trace.item().size() + new.iter().map(String::len).sum::<usize>() > MAX_DOCUMENT_BYTES {
            return Err(document_full(trace.id()));
        }
        let is_there = self.trace_add(&trace, PROMPTS, new).await?;
        if is_there { Ok(()) } else { Err(TraceId::not_found(trace.id().as_str())) }
    }

    /// Adds values to a set in a trace's document. Returns `false` if the trace does not exist.
    async fn trace_add(
        &self,
        trace: &StoredTrace,
        attribute: Attribute<TextSet>,
        values: Vec<String>,
    ) -> Result<bool, Error> {
        let mut values: Vec<_> = values.into_iter().map(String::into_bytes).collect();
        values.sort_unstable();
        values.dedup();
        let update = Update::new(rows::Trace::key(trace.id())).add(attribute, bytes_set(values));
        Ok(self.trace_update(trace, &update.add(EDITS, number(1)), &Condition::Always).await?.is_some())
    }
}
