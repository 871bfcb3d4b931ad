//! Requests of clients about a trace as a whole: `StartTrace` in both versions, and `EndTrace`.

use access::Granted;
use entities::experiments::check_is_active;
use entities::{LocatedTrace, StoredTrace};
use mlflow_api::json::read_value;
use mlflow_api::limits::MAX_TAG_VALUE_LENGTH as VALUE;
use mlflow_api::traces::{
    ARTIFACT_LOCATION_TAG, COST, FINALIZED_KEY, MAX_METADATA_LENGTH, NAME_TAG, SERVER_TAGS, SESSION,
    SPANS_LOCATION_TAG, TOKEN_USAGE, TraceInfo, TraceState,
};
use mlflow_api::{Error, ExperimentId, Result, limits, proto_json};
use serde_json::{Map, Value};

use trace_blocks::read_trace_item;

use super::document_change::{DocumentChange, KnownDocument, check_experiment};
use super::document_draft::TraceDraft;
use super::export::{artifact_location, other_experiment_error};
use super::store::Store;
use super::tag;

/// Validates a trace from a client with MLflow's checks.
fn check(started: &TraceInfo) -> Result<()> {
    if !proto_json::is_time(started.request_time) {
        return Err(Error::invalid("The time of the trace is not between the years 1 and 9999."));
    }
    tag::check_name(started.tag(NAME_TAG))?;
    started.metadata(SESSION).map_or(Ok(()), |session| limits::at_most("Session ID", MAX_METADATA_LENGTH, session))
}

struct TraceStartChange<'a> {
    started: &'a TraceInfo,
    experiment: ExperimentId,
    artifact_location: String,
    is_final: bool,
    /// Whether the caller may only add to an existing trace, and not change it.
    adds_only: bool,
}

impl DocumentChange for TraceStartChange<'_> {
    async fn plan(&self, _: &Store, stored: Option<&StoredTrace>) -> Result<TraceDraft> {
        let started = self.started;
        let mut draft = match stored {
            Some(stored) if stored.experiment() != self.experiment => {
                return Err(other_experiment_error(&started.id, self.experiment));
            }
            Some(stored) if self.adds_only => return Ok(self.fill_missing(TraceDraft::of(stored))),
            Some(stored) => TraceDraft::of(stored),
            None => TraceDraft::new(&started.id, self.experiment, started.request_time, started.state),
        };
        draft.set_time(started.request_time);
        draft.set_duration(started.duration);
        draft.set_state(started.state);
        draft.set_client_request(started.client_request_id.as_deref());
        if let Some(preview) = &started.request_preview {
            draft.set_request(preview);
        }
        if let Some(preview) = &started.response_preview {
            draft.set_response(preview);
        }
        set_tags(&mut draft, &started.tags);
        draft.set_tag(ARTIFACT_LOCATION_TAG, &self.artifact_location);
        set_metadata(&mut draft, &started.metadata);
        if self.is_final {
            draft.set_metadata(FINALIZED_KEY, "true");
        }
        for (id, assessment) in &started.assessments {
            draft.set_assessment(id, assessment);
        }
        Ok(draft)
    }
}

impl TraceStartChange<'_> {
    /// Adds those of the sent fields that the trace does not have yet. Existing fields are kept.
    fn fill_missing(&self, mut draft: TraceDraft) -> TraceDraft {
        let started = self.started;
        if draft.is_in_progress() {
            draft.set_state(started.state);
        }
        if draft.duration().is_none() {
            draft.set_duration(started.duration);
        }
        if !draft.has_client_request() && started.client_request_id.is_some() {
            draft.set_client_request(started.client_request_id.as_deref());
        }
        if let Some(preview) = started.request_preview.as_deref().filter(|_| !draft.has_request()) {
            draft.set_request(preview);
        }
        if let Some(preview) = started.response_preview.as_deref().filter(|_| !draft.has_response()) {
            draft.set_response(preview);
        }
        let new = |entries: &[(String, String)], has: &dyn Fn(&str) -> bool| {
            entries.iter().filter(|(key, _)| !has(key)).cloned().collect::<Vec<_>>()
        };
        let tags = new(&started.tags, &|key| draft.has_tag(key));
        let metadata = new(&started.metadata, &|key| draft.metadata(key).is_some());
        set_tags(&mut draft, &tags);
        set_metadata(&mut draft, &metadata);
        if self.is_final {
            draft.set_metadata(FINALIZED_KEY, "true");
        }
        for (id, assessment) in &started.assessments {
            if !draft.has_assessment(id) {
                draft.set_assessment(id, assessment);
            }
        }
        draft
    }
}

/// The fields that a client of version 2 sends at the end of a trace.
#[derive(Clone, Debug)]
pub struct EndedTrace {
    /// End time in ms.
    pub end_time: i64,
    /// Final state.
    pub state: TraceState,
    /// Metadata to set.
    pub metadata: Vec<(String, String)>,
    /// Tags to set.
    pub tags: Vec<(String, String)>,
}

struct TraceEndChange<'a> {
    trace: &'a StoredTrace,
    ended: &'a EndedTrace,
}

impl DocumentChange for TraceEndChange<'_> {
    async fn plan(&self, _: &Store, stored: Option<&StoredTrace>) -> Result<TraceDraft> {
        let mut draft = TraceDraft::of(check_experiment(stored, self.trace)?);
        draft.set_duration(Some(self.ended.end_time.saturating_sub(draft.time())));
        draft.set_state(self.ended.state);
        set_metadata(&mut draft, &self.ended.metadata);
        set_tags(&mut draft, &self.ended.tags);
        Ok(draft)
    }
}

fn set_tags(draft: &mut TraceDraft, tags: &[(String, String)]) {
    for (key, value) in tags.iter().filter(|(key, _)| !SERVER_TAGS.contains(&key.as_str())) {
        draft.set_tag(key, &limits::truncated(VALUE, value));
    }
}

fn set_metadata(draft: &mut TraceDraft, metadata: &[(String, String)]) {
    for (key, value) in metadata {
        match key.as_str() {
            TOKEN_USAGE => merge_numbers(draft, key, value, &TOKEN_KEYS, token_count),
            COST => merge_numbers(draft, key, value, &COST_KEYS, finite),
            _ => draft.set_metadata(key, &limits::truncated(VALUE, value)),
        }
    }
}

/// The fields of token usage that MLflow keeps, in the order in which it prints them
/// (`trace_analytics.py`).
pub const TOKEN_KEYS: [&str; 6] = [
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation_input_tokens_above_1hr",
];
/// The fields of the cost, in the order in which MLflow prints them.
pub const COST_KEYS: [&str; 3] = ["input_cost", "output_cost", "total_cost"];

/// Updates the numbers in a metadata entry's JSON with those numbers that the new value contains.
pub(super) fn merge_numbers(
    draft: &mut TraceDraft,
    key: &str,
    value: &str,
    keys: &[&str],
    number: impl Fn(&Value) -> Option<Value>,
) {
    match merged_numbers(draft.metadata(key), value, keys, number) {
        Some(merged) => draft.set_metadata(key, &merged),
        None => draft.remove_metadata(key),
    }
}

/// Returns the numbers of a metadata entry, updated with those that the new value contains. A field
/// that is not a number in the new value is removed. Returns `None` if no number is left.
fn merged_numbers(
    known: Option<&str>,
    value: &str,
    keys: &[&str],
    number: impl Fn(&Value) -> Option<Value>,
) -> Option<String> {
    let object = |text: &str| match read_value(text.as_bytes()) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    };
    let (mut known, new) = (known.map(object).unwrap_or_default(), object(value));
    for (name, value) in new.iter().filter(|(name, _)| keys.contains(&name.as_str())) {
        match number(value) {
            Some(number) => drop(known.insert(name.clone(), number)),
            None => drop(known.remove(name)),
        }
    }
    let ordered: Map<_, _> =
        keys.iter().filter_map(|name| Some(((*name).to_owned(), known.get(*name)?.clone()))).collect();
    (!ordered.is_empty()).then(|| mlflow_api::python::json_spaced(&Value::Object(ordered)))
}

/// Returns the value of the token usage or of the cost ([`TOKEN_USAGE`] and [`COST`]) as it is stored
/// in the metadata, or `None` if it has no valid number. Other metadata is stored as it is.
#[must_use]
pub fn normalized_metadata(key: &str, value: &str) -> Option<String> {
    match key {
        TOKEN_USAGE => merged_numbers(None, value, &TOKEN_KEYS, token_count),
        COST => merged_numbers(None, value, &COST_KEYS, finite),
        _ => Some(value.to_owned()),
    }
}

/// Converts a number or a text to a 64-bit integer (`token_count_or_none`).
fn token_count(value: &Value) -> Option<Value> {
    let number = match value {
        Value::Number(number) => number.as_i64().map_or_else(|| whole_number(number.as_f64()?), Some),
        Value::String(text) => text.trim().parse().ok().or_else(|| whole_number(text.trim().parse().ok()?)),
        _ => None,
    };
    number.map(Value::from)
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked before")]
fn whole_number(number: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (number.fract() == 0.0 && (-LIMIT..LIMIT).contains(&number)).then_some(number as i64)
}

/// Converts a number or a text to a finite number (`finite_float_or_none`).
fn finite(value: &Value) -> Option<Value> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => mlflow_api::python::parse_float(text),
        _ => None,
    };
    number.filter(|number| number.is_finite()).map(Value::from)
}

impl Store {
    /// Stores the fields of a trace that a client sends. The trace may already exist. If the caller
    /// may change traces, the sent fields take precedence. Otherwise the sent fields are only
    /// added, and the response contains nothing of the stored trace.
    ///
    /// Takes two requests, or one if this process wrote the trace last. Takes one more for marks if
    /// the trace is new, moves to another time, or has a mark that is more than a minute old. Takes
    /// one more for the experiment if no lease on it is valid.
    pub async fn trace_start(
        &self,
        experiment: &Granted<ExperimentId>,
        started: &TraceInfo,
        may_change: bool,
    ) -> Result<TraceInfo> {
        let start = TraceStartChange { adds_only: !may_change, ..self.trace_started(experiment, started, true).await? };
        let known = match self.trace_cache.trace(&started.id) {
            Some(known) => KnownDocument::Cached(Some(known)),
            None => KnownDocument::Read(read_trace_item(&self.table, &started.id).await?),
        };
        let written = self.trace_change(&started.id, known, Vec::new(), &start).await?.info()?;
        if may_change {
            return Ok(written);
        }
        let (sent, _) = start.plan(self, None).await?.finish(None);
        let mut sent = StoredTrace::of(sent)?.info()?;
        // This stored tag is part of the response, because clients learn from it whether the server
        // has the spans.
        sent.tags.extend(written.tags.into_iter().filter(|(key, _)| key == SPANS_LOCATION_TAG));
        Ok(sent)
    }

    /// Starts a trace for a client of version 2, which ends the trace with a later request. Takes
    /// two requests, and one for the experiment if no lease on it is valid. Each call generates a
    /// new id, so a client that received no response must not retry.
    pub async fn trace_start_v2(&self, experiment: &Granted<ExperimentId>, started: &TraceInfo) -> Result<TraceInfo> {
        let start = self.trace_started(experiment, started, false).await?;
        let draft = start.plan(self, None).await?;
        let mark = self.trace_mark(draft.experiment(), draft.trace(), draft.time()).await?;
        self.put_with_marks(vec![mark.item()]).await?;
        let (item, _) = draft.finish(Some(&mark));
        self.table.create(item.clone(), Vec::new()).await?;
        StoredTrace::of(item)?.info()
    }

    async fn trace_started<'a>(
        &self,
        experiment: &Granted<ExperimentId>,
        started: &'a TraceInfo,
        is_final: bool,
    ) -> Result<TraceStartChange<'a>> {
        check(started)?;
        let id = **experiment;
        let state = self.experiments.state(id).await?.ok_or_else(|| id.not_found())?;
        check_is_active(id, state.stage)?;
        let artifact_location = artifact_location(&state.artifact_location, &started.id);
        Ok(TraceStartChange { started, experiment: id, artifact_location, is_final, adds_only: false })
    }

    /// Ends a trace for a client of version 2. Takes one request, or two if the trace's mark is
    /// more than a minute old, or three if the trace is packed.
    pub async fn trace_end_v2(&self, trace: &Granted<LocatedTrace>, ended: &EndedTrace) -> Result<TraceInfo> {
        let session = ended.metadata.iter().find(|(name, _)| name == SESSION);
        session.map_or(Ok(()), |(_, session)| limits::at_most("Session ID", MAX_METADATA_LENGTH, session))?;
        tag::check_name(ended.tags.iter().find(|(key, _)| key == NAME_TAG).map(|(_, name)| name.as_str()))?;
        let trace = self.trace_document(trace).await?;
        let end = TraceEndChange { trace: &trace, ended };
        self.trace_change(trace.id(), KnownDocument::current(&trace), Vec::new(), &end).await?.info()
    }
}
