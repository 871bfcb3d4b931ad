//! The archival of a single trace.

use artifact_store::{Archive, ArtifactStore};
use entities::attributes::{EDITS, IN_BLOCK, IN_MARK, MARKED_AT, STATE, TAGS};
use entities::{StoredTrace, entry_name, now_ms};
use key_schema::{Key, rows};
use mlflow_api::traces::{
    ARCHIVAL_FAILURE_TAG, ARCHIVE_LOCATION_TAG, ARCHIVE_REPO, MALFORMED_TRACE, SPANS_LOCATION_TAG, TRACKING_STORE,
    TraceState,
};
use mlflow_api::{Error, ErrorCode, Result};
use table::{Condition, Failure, Item, Query, Table, Value, Write, number, text};
use trace_blocks::{
    LargeTraceTurn, QUIET_MARK_AGE, TraceFile, TraceSpans, drop_marked_spans, read_trace_spans, span_items, trace_tag,
};

use super::claim::Claim;

/// Maximum number of items with spans that the transaction deletes. A transaction has up to a hundred
/// writes, and two of them are for the document and the mark.
const MAX_DELETED_ITEMS: usize = 96;
/// Maximum size in bytes of the items that the transaction deletes. A transaction has up to 4 MB.
const MAX_DELETED_BYTES: usize = 3 << 20;

/// What happened to a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TraceOutcome {
    /// The trace was archived.
    Archived,
    /// The trace needs no archival: it was archived before, its spans are not in the table, or an
    /// earlier attempt has shown that it cannot be archived.
    Done,
    /// The trace has no spans, or spans that are too large to be read.
    Blocked,
    /// The trace is in progress.
    InProgress,
    /// The trace was changed recently. A later pass archives it.
    Transient,
}

/// Archives traces below a location.
pub(super) struct TraceArchiver<'a> {
    pub(super) table: &'a Table,
    pub(super) artifacts: &'a ArtifactStore,
    pub(super) spans: &'a Archive,
    /// URI of the location.
    pub(super) archive: &'a str,
    /// Limits the amount of spans that are in memory at a time.
    pub(super) turn: LargeTraceTurn,
}

/// The stored spans of a trace.
struct StoredSpans {
    /// Keys of the items with spans that are deleted together with the change of the document.
    together: Vec<Key>,
    /// Keys of further items.
    rest: Vec<Key>,
    spans: TraceSpans,
}

impl TraceArchiver<'_> {
    /// Archives a trace, given its document. Takes six requests and one upload, and about twelve
    /// write units, plus two per KB of the document and of the spans.
    ///
    /// # Errors
    /// Failures of the table and of the artifact store. The next pass archives the trace.
    pub(super) async fn archive(&self, trace: &StoredTrace) -> Result<TraceOutcome> {
        if let Some(outcome) = outcome_without_archival(trace) {
            return Ok(outcome);
        }
        let Some(file) = TraceFile::below(self.artifacts, self.archive, trace)? else {
            return Ok(TraceOutcome::Blocked);
        };
        let Some(claim) = Claim::take(self.table, trace).await? else { return Ok(TraceOutcome::Transient) };
        let stored = match self.stored_spans(trace).await {
            // The spans are too large for any response.
            Err(error) if error.code == ErrorCode::BadRequest => return Ok(TraceOutcome::Blocked),
            stored => stored?,
        };
        if stored.spans.is_empty() {
            return Ok(TraceOutcome::Blocked);
        }
        let StoredSpans { together, rest, spans } = stored;
        let size = spans::size(&spans);
        let encoded = runtime::clock::aside_from(size, move || {
            let remains: Vec<_> = spans.iter().map(spans::without_content).collect();
            (spans::to_archive(&spans), remains)
        });
        let (encoded, remains) = encoded.await.map_err(Error::internal)?;
        let content = match encoded {
            Ok(content) => content,
            Err(reason) => {
                tracing::warn!(trace = %trace.id(), %reason, "a trace cannot be archived, and is marked as malformed");
                return self.mark_failure(trace, &claim).await;
            }
        };
        let written = tokio::time::timeout(claim.rest(), file.write(content)).await;
        written.map_err(|_| Error::unavailable("a trace could not be archived in time"))??;
        // These items have no effect as long as the whole spans are stored.
        let remaining = span_items(trace.experiment(), trace.id(), &remains, true, now_ms())?;
        self.table.write_many(remaining, &[]).await?;
        if !claim.is_fresh() {
            return Err(Error::unavailable("a trace could not be archived in time"));
        }
        let mut document = changed(trace, &claim, |tags| {
            tags.insert(entry_name(SPANS_LOCATION_TAG).into_owned(), text(ARCHIVE_REPO));
            tags.insert(entry_name(ARCHIVE_LOCATION_TAG).into_owned(), text(file.uri()));
        });
        // Spans in a block or a mark do not belong to the trace any more.
        drop((document.take(IN_BLOCK), document.take(IN_MARK)));
        let deletions = together.into_iter().map(|key| Write::Delete(key, Condition::Always));
        if !self.finish(trace, document, &claim, deletions.collect()).await? {
            return Ok(TraceOutcome::Transient);
        }
        self.table.write_many(Vec::new(), &rest).await?;
        drop_marked_spans(self.table, trace, now_ms()).await?;
        Ok(TraceOutcome::Archived)
    }

    /// Marks a trace whose spans cannot be archived, as MLflow does. Users can delete the tag to have
    /// the archival repeated.
    async fn mark_failure(&self, trace: &StoredTrace, claim: &Claim) -> Result<TraceOutcome> {
        let document = changed(trace, claim, |tags| {
            tags.insert(entry_name(ARCHIVAL_FAILURE_TAG).into_owned(), text(MALFORMED_TRACE));
        });
        let is_marked = self.finish(trace, document, claim, Vec::new()).await?;
        Ok(if is_marked { TraceOutcome::Done } else { TraceOutcome::Transient })
    }

    /// Writes the new version of a document, on condition that neither the trace nor its mark has
    /// changed. Returns whether it was written.
    async fn finish(&self, trace: &StoredTrace, document: Item, claim: &Claim, others: Vec<Write>) -> Result<bool> {
        let is_same = Condition::Equals(EDITS.into(), number(trace.edits()));
        let writes: Vec<_> = [Write::Put(document, is_same), claim.check()].into_iter().chain(others).collect();
        match self.table.transact(&writes).await {
            Ok(()) => Ok(true),
            Err(Failure::Cancelled(_)) => Ok(false),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Reads the spans of a trace. The keys are read first, so that every item that is deleted later
    /// was read.
    async fn stored_spans(&self, trace: &StoredTrace) -> Result<StoredSpans> {
        let mut query = Query::of(rows::TraceSpans::all(&trace.experiment(), trace.id())).for_removal();
        let (mut together, mut rest, mut size) = (Vec::new(), Vec::new(), 0);
        loop {
            let page = self.table.query_page(&query).await?;
            for item in &page.items {
                size += item.size();
                let is_together = together.len() < MAX_DELETED_ITEMS && size <= MAX_DELETED_BYTES;
                if is_together { &mut together } else { &mut rest }.extend(item.key());
            }
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => break,
            }
        }
        let spans = read_trace_spans(self.table, self.spans, trace, &self.turn).await?;
        Ok(StoredSpans { together, rest, spans })
    }
}

/// Returns the outcome for a trace that is not archived now, given its document. `None` if it may be
/// archived (`_is_trace_actionable_for_archival`).
fn outcome_without_archival(trace: &StoredTrace) -> Option<TraceOutcome> {
    let is_elsewhere = trace_tag(trace, SPANS_LOCATION_TAG).is_some_and(|location| location != TRACKING_STORE);
    if is_elsewhere || trace_tag(trace, ARCHIVAL_FAILURE_TAG).is_some() {
        return Some(TraceOutcome::Done);
    }
    if trace.item().get(STATE) == Some(TraceState::InProgress) {
        return Some(TraceOutcome::InProgress);
    }
    let is_quiet = trace.marked_at() <= now_ms().saturating_sub(QUIET_MARK_AGE);
    (!is_quiet).then_some(TraceOutcome::Transient)
}

/// Returns the next version of a trace's document, with changed tags.
fn changed(trace: &StoredTrace, claim: &Claim, change: impl FnOnce(&mut table::Map)) -> Item {
    let mut item = trace.item().clone();
    if let Value::M(tags) = item.0.entry(TAGS.name().to_owned()).or_insert_with(|| table::map(table::Map::new())) {
        change(tags);
    }
    item.with(EDITS, number(trace.edits().saturating_add(1))).with(MARKED_AT, number(claim.at))
}
