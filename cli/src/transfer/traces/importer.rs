//! Imports traces.
//!
//! Traces are read in pages, and their spans in groups. Several groups are written concurrently.
//! For each, the spans are written first, then the marks, and the documents last. The documents
//! have to follow the marks immediately, because a mark without a document is removed after some
//! minutes.

use std::collections::{BTreeSet, HashMap};

use entities::attributes::{EDITS, IMPORTED};
use entities::{StoredTrace, TraceStub, issue_count_writes};
use futures::stream::{self, TryStreamExt};
use key_schema::{Ascending, Key, rows};
use mlflow_api::traces::{SPANS_LOCATION_TAG, TRACKING_STORE, TraceState};
use spans::Span;
use table::{Condition, Item, Query, Write, text};
use trace_blocks::day_of;
use traces::store::{MAX_DOCUMENT_BYTES, WholeTraceContent, day_row, shards_of_day};

use super::KIND;
use super::database_reader::SourcePlace;
use super::planner::{self, PlannedTrace};
use super::span_files::SpanFileReader;
use super::table_reader::{self, TraceDifference};
use crate::Failure;
use crate::transfer::experiments::ImportedExperiment;
use crate::transfer::import::{ImportContext, ImportDecision, fingerprint};

/// Number of groups of traces that are written concurrently.
const CONCURRENCY: usize = 8;
/// Maximum size of documents that are written together, in bytes.
const MAX_DOCUMENTS_BYTES: usize = 1 << 20;

/// A trace that has to be written.
struct TraceToWrite {
    planned: PlannedTrace,
    spans: Vec<Span>,
    fingerprint: String,
    /// The trace that it replaces.
    replaced: Option<StoredTrace>,
    shards: u32,
}

/// Imports the traces of an experiment.
///
/// # Errors
/// The source cannot be read, the table cannot be read or written, or the id of a trace is taken and
/// `--remap` is not given.
pub(crate) async fn import(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    let files = &SpanFileReader::default();
    let start: (Option<SourcePlace>, Vec<Vec<PlannedTrace>>) = (Some((i64::MIN, String::new())), Vec::new());
    let groups = stream::try_unfold(start, |(mut after, mut ready)| async move {
        loop {
            if let Some(mut group) = ready.pop() {
                planner::read_spans(context, experiment, &mut group, true).await?;
                return Ok::<_, Failure>(Some((group, (after, ready))));
            }
            let Some(place) = after.take() else { return Ok(None) };
            let page = planner::next_page(context, experiment, &place, true).await?;
            after.clone_from(&page.last);
            ready = page.groups();
            ready.reverse();
        }
    });
    let imports = groups.map_ok(|group| import_group(context, experiment, files, group));
    imports.try_buffer_unordered(CONCURRENCY).try_collect().await
}

async fn import_group(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    files: &SpanFileReader,
    group: Vec<PlannedTrace>,
) -> Result<(), Failure> {
    let days: BTreeSet<_> = group.iter().map(|trace| day_of(trace.record.time)).collect();
    let shards = shards_of_days(context, experiment, days).await?;
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for planned in group {
        let shards = shards.get(&day_of(planned.record.time)).copied().unwrap_or(1);
        let Some((trace, size)) = prepare(context, experiment, files, planned, shards).await? else { continue };
        if bytes + size > MAX_DOCUMENTS_BYTES {
            write(context, experiment, std::mem::take(&mut batch)).await?;
            bytes = 0;
        }
        bytes += size;
        batch.push(trace);
    }
    write(context, experiment, batch).await
}

/// Returns the number of partitions of each day. Creates days that do not exist yet, with one
/// partition. Takes one request, and one per new day.
async fn shards_of_days(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    days: BTreeSet<i64>,
) -> Result<HashMap<i64, u32>, Failure> {
    let failed = |failure: table::Failure| format!("cannot read or write the days of traces: {failure:?}");
    let key = |day: i64| rows::TraceDay::key(&experiment.id, &Ascending(day));
    let keys: Vec<_> = days.iter().map(|day| key(*day)).collect();
    let known = context.table.get_many(&keys).await.map_err(failed)?;
    let mut shards = HashMap::new();
    for day in days {
        if let Some(row) = known.get(&key(day)) {
            shards.insert(day, shards_of_day(row));
            continue;
        }
        let row = day_row(experiment.id, day, 1);
        match context.writer.transact(&[Write::Put(row, Condition::item_missing())]).await {
            // If the day was created in the meantime, it may have more partitions. A trace may be
            // in any of them, so the first one is still valid.
            Ok(()) | Err(table::Failure::Cancelled(_)) => {}
            Err(failure) => return Err(failed(failure).into()),
        }
        shards.insert(day, 1);
    }
    Ok(shards)
}

/// Decides what happens to a trace, and reads its spans if they are in a file. Returns the trace and
/// the size of its document if it has to be written, and reports it otherwise.
async fn prepare(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    files: &SpanFileReader,
    mut planned: PlannedTrace,
    shards: u32,
) -> Result<Option<(TraceToWrite, usize)>, Failure> {
    let fingerprint = fingerprint(&planned.record)?;
    let imported = planned.imported().cloned();
    let is_unchanged = imported.as_ref().is_some_and(|document| document.get(IMPORTED) == Some(fingerprint.as_str()));
    let replaced = imported.map(StoredTrace::of).transpose().map_err(|error| error.message)?;
    let has_spans = replaced.as_ref().is_some_and(has_spans_here);
    if is_unchanged && (planned.file.is_none() || has_spans) {
        context.report.unchanged(KIND, 1);
        return Ok(None);
    }
    let mut spans = std::mem::take(&mut planned.spans);
    if let Some(file) = &planned.file {
        let read = match files.read(context, file).await {
            // Clients write the file only when the trace ends.
            Ok(None) if planned.record.state == TraceState::InProgress => None,
            Ok(None) => Some(Err(format!("because their file {} was not found", file.name()))),
            Ok(Some(spans)) => Some(Ok(spans)),
            Err(reason) => Some(Err(reason)),
        };
        // If no spans were found, the trace must not refer to spans in the table, because clients
        // would wait for them.
        let is_read = matches!(&read, Some(Ok(spans)) if !spans.is_empty());
        if let Some(read) = read {
            spans = planner::taken(context, &planned.source_id, &planned.id, read, true);
        }
        if is_read {
            planned.record.spans_location = Some(TRACKING_STORE.to_owned());
        } else if is_unchanged {
            context.report.unchanged(KIND, 1);
            return Ok(None);
        }
    }
    let is_interrupted = ImportDecision::of(planned.imported(), &fingerprint) == ImportDecision::Interrupted;
    if let Some(document) = planned.imported().filter(|_| !is_interrupted) {
        match table_reader::difference(&context.table, &context.archive, document, &fingerprint).await? {
            TraceDifference::None if !is_unchanged => {
                context.report.unchanged(KIND, 1);
                return Ok(None);
            }
            TraceDifference::Here => {
                context.report.changed_here(KIND, planned.id.as_str());
                return Ok(None);
            }
            // Either the source has changed, or the trace is unchanged and its spans, which an
            // earlier import did not find, have been found now.
            TraceDifference::None | TraceDifference::Source => {}
        }
    }
    // The stub has the links to runs that were created before the trace arrived.
    if let Some(stub) = planned.document.as_ref().and_then(TraceStub::of) {
        planned.record.runs.extend(stub.runs().iter().cloned());
    }
    let size = planned.document_size(experiment);
    if size > MAX_DOCUMENT_BYTES {
        let reason = format!("because everything except their spans takes more than {MAX_DOCUMENT_BYTES} bytes");
        context.report.omitted(KIND, &planned.source_id, reason);
        return Ok(None);
    }
    Ok(Some((TraceToWrite { planned, spans, fingerprint, replaced, shards }, size)))
}

fn has_spans_here(trace: &StoredTrace) -> bool {
    trace.info().is_ok_and(|info| info.tag(SPANS_LOCATION_TAG) == Some(TRACKING_STORE))
}

/// Writes traces, and reports them.
async fn write(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    traces: Vec<TraceToWrite>,
) -> Result<(), Failure> {
    let infos: Vec<_> =
        traces.iter().map(|trace| trace.planned.record.info(&trace.planned.id, experiment.id)).collect();
    let contents: Vec<_> = traces
        .iter()
        .zip(&infos)
        .map(|(trace, info)| {
            let PlannedTrace { record, .. } = &trace.planned;
            WholeTraceContent { info, runs: &record.runs, prompts: &record.prompts, spans: &trace.spans }
        })
        .collect();
    let mut rows = Vec::new();
    for content in &contents {
        rows.extend(content.rows().map_err(|error| error.message)?);
    }
    let written: BTreeSet<_> = rows.iter().filter_map(Item::key).collect();
    for document in traces.iter().filter_map(|trace| trace.planned.imported()) {
        context.writer.begin_replacement(document).await?;
    }
    context.writer.put_all(rows).await?;
    let (mut marks, mut new, mut changed) = (Vec::new(), Vec::new(), Vec::new());
    for (trace, content) in traces.iter().zip(&contents) {
        let head = content.head(trace.shards, trace.replaced.as_ref());
        marks.extend(head.marks.into_iter().map(|mark| mark.with(IMPORTED, text(&trace.fingerprint))));
        let document = head.document.with(IMPORTED, text(&trace.fingerprint));
        match &trace.replaced {
            None => new.push(document),
            Some(replaced) => changed.push((document, trace, replaced)),
        }
    }
    context.writer.put_all(marks).await?;
    let count = new.len() as u64;
    let (counted, new): (Vec<_>, Vec<_>) = new
        .into_iter()
        .map(|document| (issue_count_writes(experiment.id, None, Some(&document)), document))
        .partition(|(counts, _)| !counts.is_empty());
    context.writer.put_all(new.into_iter().map(|(_, document)| document).collect()).await?;
    for (counts, document) in counted {
        // A trace and the counts of its issues are written in one transaction, so that a repeated
        // import does not count the trace twice.
        let put = Write::Put(document, Condition::Always);
        let written = context.writer.transact(&std::iter::once(put).chain(counts).collect::<Vec<_>>()).await;
        written.map_err(|failure| format!("cannot write traces: {failure:?}"))?;
    }
    context.report.imported(KIND, count);
    for (document, trace, replaced) in changed {
        let is_same = Condition::Equals(EDITS.into(), table::number(replaced.edits()));
        let counts = issue_count_writes(experiment.id, Some(replaced.item()), Some(&document));
        let put = Write::Put(document, is_same);
        match context.writer.transact(&std::iter::once(put).chain(counts).collect::<Vec<_>>()).await {
            Ok(()) => {
                context.writer.delete_all(stale_spans(context, trace, replaced, &written).await?).await?;
                context.report.updated(KIND, 1);
            }
            Err(table::Failure::Cancelled(_)) => context.report.changed_here(KIND, trace.planned.id.as_str()),
            Err(failure) => return Err(format!("cannot write trace {}: {failure:?}", trace.planned.id).into()),
        }
    }
    Ok(())
}

/// Returns the keys of the spans that a replaced trace no longer has.
async fn stale_spans(
    context: &ImportContext,
    trace: &TraceToWrite,
    replaced: &StoredTrace,
    written: &BTreeSet<Key>,
) -> Result<Vec<Key>, Failure> {
    let spans = rows::TraceSpans::all(&replaced.experiment(), &trace.planned.id);
    let items = context.table.query(Query::of(spans)).await;
    let items = items.map_err(|failure| format!("cannot read the spans of {}: {failure:?}", trace.planned.id))?;
    Ok(items.iter().filter_map(Item::key).filter(|key| !written.contains(key)).collect())
}
