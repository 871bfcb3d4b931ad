//! Evaluation of filters on traces.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::HashSet;

use mlflow_api::ExperimentId;
use mlflow_api::json::unescaped;

use super::filter::TraceFilter;
use super::identifier::keys;
use super::predicate::{
    AssessmentKind, AssessmentPredicate, AssessmentTest, SpanField, SpanPredicate, TraceNumber, TracePredicate,
    TraceText,
};
use crate::literals::FilterNumber;

/// The tolerance, in ms, by which spans may start before the earliest time that a filter allows
/// (`_SPAN_SEARCH_TIMESTAMP_TOLERANCE_MS`).
const SPAN_START_TOLERANCE_MS: i64 = 10_000;

/// The fields of a trace that filters and orderings use, without its spans.
pub trait TraceFields {
    /// Returns the experiment.
    fn experiment(&self) -> ExperimentId;

    /// Returns a text attribute.
    fn text(&self, attribute: TraceText) -> Option<&str>;

    /// Returns the time when the trace began, in ms.
    fn request_time(&self) -> i64;

    /// Returns the duration, in ms.
    fn duration(&self) -> Option<i64>;

    /// Returns the value of a tag.
    fn tag(&self, key: &str) -> Option<&str>;

    /// Returns an entry of the metadata.
    fn metadata(&self, key: &str) -> Option<&str>;

    /// Returns the assessments.
    fn assessments(&self) -> impl Iterator<Item = AssessmentFields<'_>>;

    /// Checks whether the trace is linked to a run other than by its metadata.
    fn is_linked_to_run(&self, run: &str) -> bool;

    /// Checks whether the trace is linked to a prompt, which is given as `name/version`.
    fn is_linked_to_prompt(&self, prompt: &str) -> bool;
}

/// The fields of an assessment that filters use.
#[derive(Clone, Debug)]
pub struct AssessmentFields<'a> {
    /// The kind of the assessment.
    pub kind: AssessmentKind,
    /// The name.
    pub name: &'a str,
    /// The value, as formatted by Python's `json.dumps`.
    pub json: Cow<'a, str>,
    /// The value, if it is a finite number.
    pub number: Option<f64>,
    /// Whether the assessment has not been replaced by another one.
    pub is_valid: bool,
    /// Whether its metadata contains a session (`mlflow.trace.session`). If so, the assessment
    /// applies to the whole session.
    pub is_of_session: bool,
}

/// The fields of a span that filters use.
pub trait SpanFields {
    /// Returns the name.
    fn name(&self) -> Option<&str>;

    /// Returns the type.
    fn kind(&self) -> Option<&str>;

    /// Returns the status code: `OK`, `ERROR` or `UNSET`.
    fn status(&self) -> &str;

    /// Returns the start time, in nanoseconds.
    fn start(&self) -> i64;

    /// Returns the complete span in the format of MLflow's store: `json.dumps` of the span, with
    /// only the escapes that JSON requires.
    fn content(&self) -> Cow<'_, str>;
}

/// Sessions by condition: for each condition on assessments, the sessions that have an assessment
/// that meets the condition and applies to the whole session.
#[derive(Clone, Debug, Default)]
pub struct MatchingSessions(Vec<HashSet<String>>);

impl MatchingSessions {
    /// Adds the sessions that a trace's assessments contribute. Call it for each trace of the
    /// searched experiments, regardless of whether the trace itself passes.
    pub fn add(&mut self, filter: &TraceFilter, trace: &impl TraceFields) {
        let Some(session) = trace.metadata(keys::SESSION) else { return };
        if !trace.assessments().any(|assessment| assessment.is_of_session) {
            return;
        }
        self.0.resize_with(filter.assessments().count(), HashSet::new);
        for (predicate, sessions) in filter.assessments().zip(&mut self.0) {
            if trace.assessments().any(|assessment| assessment.is_of_session && predicate.is_met_by(&assessment)) {
                sessions.insert(session.to_owned());
            }
        }
    }

    fn cover(&self, place: usize, trace: &impl TraceFields) -> bool {
        let session = || trace.metadata(keys::SESSION);
        self.0.get(place).is_some_and(|sessions| session().is_some_and(|session| sessions.contains(session)))
    }
}

impl TraceFilter {
    fn assessments(&self) -> impl Iterator<Item = &AssessmentPredicate> {
        self.predicates.iter().filter_map(|predicate| match predicate {
            TracePredicate::Assessment(predicate) => Some(predicate),
            _ => None,
        })
    }

    /// Checks whether the filter has conditions on assessments. If so, assessments of other traces
    /// in the same session are taken into account ([`MatchingSessions`]).
    #[must_use]
    pub fn asks_for_sessions(&self) -> bool {
        self.assessments().next().is_some()
    }

    /// Checks whether the filter has no conditions.
    #[must_use]
    pub fn lets_all_pass(&self) -> bool {
        self.predicates.is_empty() && self.spans.is_empty()
    }

    /// Checks whether the filter has conditions on spans.
    #[must_use]
    pub fn asks_for_spans(&self) -> bool {
        !self.spans.is_empty()
    }

    /// Checks whether the trace passes, ignoring the conditions on spans.
    #[must_use]
    pub fn matches(&self, trace: &impl TraceFields, sessions: &MatchingSessions) -> bool {
        let mut assessments = 0..;
        self.predicates.iter().all(|predicate| match predicate {
            TracePredicate::Assessment(predicate) => {
                let place = assessments.next().unwrap_or_default();
                let is_met = trace.assessments().any(|assessment| predicate.is_met_by(&assessment));
                (is_met || sessions.cover(place, trace)) != (predicate.test == AssessmentTest::Absent)
            }
            _ => predicate.is_met_by(trace),
        })
    }

    /// Checks whether one of the trace's spans passes, or there are no conditions on spans.
    pub fn matches_spans<S: SpanFields>(&self, spans: impl IntoIterator<Item = S>) -> bool {
        self.spans.is_empty() || spans.into_iter().any(|span| self.matches_span(&span))
    }

    fn matches_span(&self, span: &impl SpanFields) -> bool {
        // The span's JSON, and the content with its escapes resolved, are computed at most once,
        // and only if all earlier tests have passed.
        let json = LazyCell::new(|| span.content());
        let content = LazyCell::new(|| unescaped(&json));
        self.spans_from.is_none_or(|from| begins_late_enough(span.start(), from))
            && self.spans.iter().all(|SpanPredicate { field, test, json: of_json }| match field {
                SpanField::Name => span.name().is_some_and(|name| test.passes(name)),
                SpanField::Kind => span.kind().is_some_and(|kind| test.passes(kind)),
                SpanField::Status => test.passes(span.status()),
                SpanField::Content => test.passes(&content) || of_json.as_ref().is_some_and(|test| test.passes(&json)),
            })
    }
}

#[allow(clippy::cast_precision_loss, reason = "Python's arithmetic, too")]
fn begins_late_enough(start: i64, from: FilterNumber) -> bool {
    match from {
        FilterNumber::Integer(from) => {
            i128::from(start) >= (i128::from(from) - i128::from(SPAN_START_TOLERANCE_MS)) * 1_000_000
        }
        FilterNumber::Float(from) => {
            FilterNumber::Float((from - SPAN_START_TOLERANCE_MS as f64) * 1e6).compare_stored(start).is_ge()
        }
    }
}

impl TracePredicate {
    fn is_met_by(&self, trace: &impl TraceFields) -> bool {
        match self {
            Self::Text { attribute, test } => trace.text(*attribute).is_some_and(|text| test.passes(text)),
            Self::Number { attribute, test } => attribute.of(trace).is_some_and(|number| test.passes(number)),
            Self::Tag { key, test } => test.passes(trace.tag(key)),
            Self::Metadata { key, test } => test.passes(trace.metadata(key)),
            Self::Run(run) => trace.metadata(keys::RUN) == Some(run) || trace.is_linked_to_run(run),
            Self::Prompt(prompt) => trace.is_linked_to_prompt(prompt),
            Self::Issue(issue) => trace
                .assessments()
                .any(|assessment| assessment.kind == AssessmentKind::Issue && assessment.name == issue),
            // Evaluated by [`TraceFilter::matches`], because assessments of other traces are taken
            // into account.
            Self::Assessment(_) => true,
        }
    }
}

impl TraceNumber {
    pub(super) fn of(self, trace: &impl TraceFields) -> Option<i64> {
        match self {
            Self::RequestTime => Some(trace.request_time()),
            Self::Duration => trace.duration(),
            Self::EndTime => Some(trace.request_time().saturating_add(trace.duration().unwrap_or_default())),
        }
    }
}

impl AssessmentPredicate {
    fn is_met_by(&self, assessment: &AssessmentFields) -> bool {
        assessment.is_valid
            && assessment.kind == self.kind
            && assessment.name == self.name
            && self.test.passes(&assessment.json, assessment.number)
    }
}
