//! Storage of spans from `POST /v1/traces`.
//!
//! The spans are written first, in one batch with the marks of those traces that are new or whose
//! marks are more than a minute old. Small spans of a trace that this process has not cached are
//! written in the trace's mark ([`marked_spans`](super::marked_spans)). Then each trace's document is
//! written. If a document turns out to differ from the version that this process has cached, the
//! trace's mark is written at that point. If the request is interrupted anywhere, repeating it
//! completes it.

use std::sync::Arc;

use access::Granted;
use entities::experiments::check_is_active;
use entities::listing::CooperativeYield;
use entities::{RunLocation, StoredTrace};
use futures::stream::{self, StreamExt};
use key_schema::Key;
use mlflow_api::limits::MAX_TAG_VALUE_LENGTH as VALUE;
use mlflow_api::limits::truncated;
use mlflow_api::traces::{
    ARTIFACT_LOCATION_TAG, COST, FINALIZED_KEY, NAME_TAG, SERVER_TAGS, SESSION, SPANS_LOCATION_TAG, TOKEN_USAGE,
    TRACE_USER, TRACKING_STORE, TraceInfo, TraceState,
};
use mlflow_api::{Error, ErrorCode, ExperimentId, Result, TraceId, location};
use spans::{SharedTags, TraceExport, TraceSummary, TraceUsage};
use tokio::sync::Mutex;
use trace_blocks::{LargeTraceTurn, is_in_file};

use super::document_change::{DocumentChange, KnownDocument, MAX_DOCUMENT_BYTES};
use super::document_draft::TraceDraft;
use super::export_batches::{PackedTrace, SummarizedTrace, pack_traces, split_into_batches, summarize_traces};
use super::mark::{PutMark, reliable_since};
use super::marked_spans::MarkedSpans;
use super::store::Store;

/// Number of traces of one request whose documents are written concurrently.
const CONCURRENCY: usize = 16;

/// Returns the artifact location of a trace.
pub(super) fn artifact_location(experiment: &str, trace: &TraceId) -> String {
    location::append(experiment, &format!("traces/{trace}/artifacts"))
}

/// Returns the error for spans of a trace that belongs to another experiment.
pub(super) fn other_experiment_error(trace: &TraceId, experiment: ExperimentId) -> Error {
    Error::invalid(format!("Trace with ID '{trace}' does not belong to experiment {experiment}."))
}

/// Returns MLflow's error for spans of traces that were archived to files.
pub(crate) fn archived_traces_error<'a>(traces: impl IntoIterator<Item = &'a TraceId>) -> Error {
    let mut traces: Vec<_> = traces.into_iter().map(|trace| format!("'{trace}'")).collect();
    traces.sort_unstable();
    let message = format!("Cannot log spans to archived traces: {}.", traces.join(", "));
    Error::new(ErrorCode::InvalidState, message)
}

/// One trace of an export.
struct ExportedTrace {
    trace: TraceId,
    experiment: ExperimentId,
    artifact_location: String,
    resource: SharedTags,
    summary: TraceSummary,
    /// The spans, if they were written in a mark.
    marked_spans: Option<MarkedSpans>,
    /// Whether the caller may only add to an existing trace, and not change it.
    adds_only: bool,
    /// Shared by all traces of the request. It limits the amount of spans that are in memory at a
    /// time.
    turn: Arc<LargeTraceTurn>,
}

/// The experiment and the run that exported spans belong to.
struct ExportDestination<'a> {
    experiment: ExperimentId,
    artifact_location: &'a str,
    run: Option<&'a Granted<RunLocation>>,
    adds_only: bool,
    turn: Arc<LargeTraceTurn>,
}

impl ExportedTrace {
    /// Returns the state according to the root span, if it is among the spans.
    fn state(&self) -> Option<TraceState> {
        self.summary.root.as_ref().and_then(|root| TraceState::from_name(root.state.as_str()))
    }

    /// Checks whether a client has finalized the trace, in which case the trace's times, tokens and
    /// cost are kept. MLflow makes this check only if the export has a session, tokens or cost.
    fn is_final(&self, draft: &TraceDraft) -> bool {
        let looks = self.summary.session.is_some() || !self.summary.usage.is_empty();
        looks && draft.metadata(FINALIZED_KEY).is_some()
    }

    /// Returns the tags from the sender's resource and from the root span. If both have a tag, the
    /// root span takes precedence. Tags that only the server may set are left out.
    fn tags(&self) -> impl Iterator<Item = (&str, &str)> {
        let of_both = self.resource.iter().chain(&self.summary.tags).map(|(key, value)| (key.as_str(), value.as_str()));
        let name = self.summary.trace_name.iter().map(|name| (NAME_TAG, name.as_str()));
        of_both.chain(name).filter(|(key, _)| !SERVER_TAGS.contains(key) && *key != ARTIFACT_LOCATION_TAG)
    }

    fn take_times(&self, draft: &mut TraceDraft) {
        let (time, start) = (draft.time(), draft.time().min(self.summary.start_ms));
        let known_end = draft.duration().map(|duration| time.saturating_add(duration));
        draft.set_time(start);
        if let Some(end) = self.summary.end_ms {
            draft.set_duration(Some(known_end.unwrap_or(end).max(end).saturating_sub(start)));
        }
    }

    fn take_root(&self, draft: &mut TraceDraft) {
        if draft.is_in_progress()
            && let Some(state) = self.state()
        {
            draft.set_state(state);
        }
        let Some(root) = &self.summary.root else { return };
        if let Some(preview) = root.request_preview.as_deref().filter(|_| !draft.has_request()) {
            draft.set_request(preview);
        }
        if let Some(preview) = root.response_preview.as_deref().filter(|_| !draft.has_response()) {
            draft.set_response(preview);
        }
    }

    fn take_metadata(&self, draft: &mut TraceDraft, usage: &TraceUsage) {
        let is_final = self.is_final(draft);
        for (key, value) in [(TOKEN_USAGE, usage.tokens()), (COST, usage.cost())] {
            if let Some(value) = value.filter(|_| !(is_final && draft.metadata(key).is_some())) {
                draft.set_metadata(key, &value);
            }
        }
        for (key, value) in [(SESSION, &self.summary.session), (TRACE_USER, &self.summary.user)] {
            if let Some(value) = value.as_deref().filter(|_| draft.metadata(key).is_none()) {
                draft.set_metadata(key, &truncated(VALUE, value));
            }
        }
    }
}

impl DocumentChange for ExportedTrace {
    fn is_servers(&self) -> bool {
        true
    }

    fn brings_spans(&self) -> bool {
        true
    }

    fn marked_spans(&self) -> Option<&MarkedSpans> {
        self.marked_spans.as_ref()
    }

    async fn plan(&self, store: &Store, stored: Option<&StoredTrace>) -> Result<TraceDraft> {
        let mut draft = match stored {
            Some(stored) if stored.experiment() != self.experiment => {
                return Err(other_experiment_error(&self.trace, self.experiment));
            }
            Some(stored) if is_in_file(stored) => return Err(archived_traces_error([&self.trace])),
            Some(stored) => TraceDraft::of(stored),
            None => {
                let state = self.state().unwrap_or(TraceState::InProgress);
                let mut draft = TraceDraft::new(&self.trace, self.experiment, self.summary.start_ms, state);
                draft.set_tag(ARTIFACT_LOCATION_TAG, &self.artifact_location);
                draft
            }
        };
        // If the caller may only add, later spans do not change the times of a trace whose root has
        // ended.
        let keeps_times = self.adds_only && stored.is_some() && !draft.is_in_progress();
        if !keeps_times && !self.is_final(&draft) {
            self.take_times(&mut draft);
        }
        self.take_root(&mut draft);
        // The usage is computed from all spans of the trace, because usage that a parent span
        // already includes must not be counted twice.
        let of_all = if let Some(stored) = stored.filter(|_| !self.summary.usage.is_empty()) {
            // If the trace has too many spans to read, the usage is not computed, and the previous
            // values remain.
            Some(store.trace_usage(stored, &self.turn).await?.unwrap_or_default())
        } else {
            None
        };
        self.take_metadata(&mut draft, of_all.as_ref().unwrap_or(&self.summary.usage));
        draft.set_tag(SPANS_LOCATION_TAG, TRACKING_STORE);
        // Tags that do not fit into the document are dropped, because losing tags is better than
        // rejecting the spans.
        let has = self.adds_only.then(|| draft.clone());
        let may_set = |key: &str| !has.as_ref().is_some_and(|draft| draft.has_tag(key));
        draft.set_tags_within(MAX_DOCUMENT_BYTES, self.tags().filter(|(key, _)| may_set(key)));
        Ok(draft)
    }
}

impl Store {
    /// Returns the artifact location of a trace. Takes no request while a lease on its experiment
    /// is valid, and one otherwise.
    pub async fn trace_artifact_location(&self, info: &TraceInfo) -> Result<String> {
        let experiment = info.experiment;
        let state = self.experiments.state(experiment).await?.ok_or_else(|| experiment.not_found())?;
        Ok(artifact_location(&state.artifact_location, &info.id))
    }

    /// Stores exported spans. If a run is given, links those traces to it whose root spans are in
    /// the export. Returns the rejected spans, which belong to traces of another experiment.
    /// Rejected spans may have been written, but are never shown. If the caller may not change
    /// traces, existing spans and fields are kept.
    ///
    /// Takes two requests for a trace that is new, or that this process was the last to write. Takes
    /// three for any other trace, and a fourth if its mark is more than a minute old or if the spans
    /// were written in a mark. Takes one more request per 25 items beyond the first, per further trace,
    /// per link, for the first trace of a day, and for the experiment if no lease on it is valid.
    ///
    /// A large number of traces is processed in portions, one after another, to limit the amount of
    /// data that is packed and planned at a time.
    pub async fn spans_log(
        &self,
        experiment: &Granted<ExperimentId>,
        run: Option<&Granted<RunLocation>>,
        exports: Vec<TraceExport>,
        may_change: bool,
    ) -> Result<Vec<RejectedSpans>> {
        let id = **experiment;
        let state = self.experiments.state(id).await?.ok_or_else(|| id.not_found())?;
        check_is_active(id, state.stage)?;
        // All spans are checked before any span is written, because an error in one span rejects
        // the whole request.
        let bytes = exports.iter().map(|export| export.bytes).sum();
        let summarized =
            runtime::clock::aside_from(bytes, move || summarize_traces(exports)).await.map_err(Error::internal)??;
        let (artifact_location, turn) = (&state.artifact_location, Arc::default());
        let to = ExportDestination { experiment: id, artifact_location, run, adds_only: !may_change, turn };
        let mut rejected = Vec::new();
        for portion in split_into_batches(summarized) {
            rejected.extend(self.batch_log(&to, portion).await?);
        }
        Ok(rejected)
    }

    /// Stores one portion.
    async fn batch_log(&self, to: &ExportDestination<'_>, portion: Vec<SummarizedTrace>) -> Result<Vec<RejectedSpans>> {
        let experiment = to.experiment;
        let (mut writes, mut exported) = (Vec::new(), Vec::new());
        for packed in pack_traces(experiment, portion, to.adds_only).await? {
            let PackedTrace { trace, resource, summary, items } = packed;
            let known = self.trace_cache.trace(&trace).filter(|known| known.experiment() == experiment);
            let mut marked = self.marks_of_export(experiment, &trace, known.as_ref(), summary.start_ms).await?;
            let bytes = self.counts_bytes.then(|| items.iter().map(table::Item::size).sum());
            let keys = items.iter().filter_map(table::Item::key).collect();
            // A caller that may only add gets a separate item, because readers treat its spans differently.
            let is_new = known.is_none() && !to.adds_only && self.writes_marked_spans;
            let in_mark = is_new.then(|| MarkedSpans::of(&marked, &items, bytes)).flatten();
            let marked_spans = if let Some((spans, mark)) = in_mark {
                writes.push(mark);
                marked.clear();
                Some(spans)
            } else {
                writes.extend(marked.iter().map(|mark| mark.item_with(bytes)));
                writes.extend(items);
                None
            };
            let artifact_location = artifact_location(to.artifact_location, &trace);
            let (adds_only, turn) = (to.adds_only, Arc::clone(&to.turn));
            let change = ExportedTrace {
                trace,
                experiment,
                artifact_location,
                resource,
                summary,
                marked_spans,
                adds_only,
                turn,
            };
            exported.push((change, known, marked, keys));
        }
        self.put_with_marks(writes).await?;
        // The changes take turns, because planning a document with many thousand tags takes a long
        // time, and must not block other requests.
        let pace = &Mutex::new(CooperativeYield::default());
        let changes: Vec<_> = exported
            .into_iter()
            .map(|(change, known, marked, keys)| async move {
                pace.lock().await.keep().await;
                Box::pin(self.export_log(change, known, marked, keys, to.run)).await
            })
            .collect();
        // All changes run to completion, even if one fails.
        let outcomes: Vec<_> = stream::iter(changes).buffer_unordered(CONCURRENCY).collect().await;
        let rejected: Result<Vec<_>> = outcomes.into_iter().collect();
        Ok(rejected?.into_iter().flatten().collect())
    }

    /// Writes the document of a trace whose spans have been written to the items with these keys, and
    /// links it to the run. Returns the spans if they were rejected.
    async fn export_log(
        &self,
        change: ExportedTrace,
        known: Option<StoredTrace>,
        marked: Vec<PutMark>,
        keys: Vec<Key>,
        run: Option<&Granted<RunLocation>>,
    ) -> Result<Option<RejectedSpans>> {
        let changed = self.trace_change(&change.trace, KnownDocument::Cached(known), marked, &change).await;
        let trace = match changed {
            // The spans are reported as rejected rather than failing the request, because sending
            // them again would not help.
            Err(error) if error.code.http_status() == 400 => {
                return Ok(Some(RejectedSpans { spans: change.summary.spans, error, archived: None }));
            }
            Err(error) if error.code == ErrorCode::InvalidState => {
                // Readers do not expect whole spans of an archived trace in the table.
                self.table.write_many(Vec::new(), &keys).await?;
                return Ok(Some(RejectedSpans { spans: change.summary.spans, error, archived: Some(change.trace) }));
            }
            changed => changed?,
        };
        if let Some(run) = run.filter(|_| change.summary.root.is_some()) {
            self.trace_link(&[trace], run.run.as_str()).await?;
        }
        Ok(None)
    }

    /// Returns the marks to write together with the spans of a trace, given the trace's start time
    /// and the document that this process has cached.
    async fn marks_of_export(
        &self,
        experiment: ExperimentId,
        trace: &TraceId,
        known: Option<&StoredTrace>,
        start: i64,
    ) -> Result<Vec<PutMark>> {
        let old = known.filter(|known| known.marked_at() < reliable_since());
        let mut marks: Vec<_> = old.map(PutMark::of).into_iter().collect();
        if known.is_none_or(|known| start < known.request_time()) {
            marks.push(self.trace_mark(experiment, trace, start).await?);
        }
        Ok(marks)
    }
}

/// Spans of one trace that were rejected.
#[derive(Clone, Debug)]
pub struct RejectedSpans {
    /// Number of spans.
    pub spans: usize,
    /// Reason for the rejection.
    pub error: Error,
    /// The trace, if the spans were rejected because it was archived to a file.
    pub archived: Option<TraceId>,
}
