//! Traces in the model: requests of clients, the resulting state, and the responses.

use std::collections::{BTreeMap, BTreeSet};

use mlflow_api::proto_json::{duration_text, parse_duration, parse_time, time_text};
use serde_json::{Value, json};
use test_site::TestClient;

use super::expiry;
use super::operation::Kind::*;
use super::operation::{Ids, Op, word};
use super::state::{State, Texts};

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Trace {
    pub(super) experiment: u8,
    /// Start time in ms.
    pub(super) time: i64,
    pub(super) duration: Option<i64>,
    pub(super) state: String,
    /// Numbers of its spans.
    pub(super) spans: BTreeSet<u8>,
    /// Whether an export was completed, so that responses contain the spans.
    pub(super) is_exported: bool,
    pub(super) tags: Texts,
    /// Value of each feedback, by its id.
    pub(super) feedback: Texts,
    /// Runs that it is linked to.
    pub(super) runs: BTreeSet<u8>,
}

/// A step of an operation, as a change of the state.
type Part = Box<dyn Fn(&mut State)>;

/// Tag of an experiment with the retention of its traces.
pub(super) const RETENTION: &str = "mlflow.trace.retention";

/// A midnight (UTC), in ms since 1970. The traces start around it.
pub(super) const MIDNIGHT: i64 = 1_699_920_000_000;
pub(super) const DAY: i64 = 86_400_000;

/// Returns the start of a span in ms. The root span of the first trace starts just before midnight,
/// so that the trace moves to another day if the root arrives after its other spans.
fn start(trace: u8, span: u8) -> i64 {
    let root = if trace == 0 { MIDNIGHT - 5 } else { MIDNIGHT };
    root + i64::from(span - 1) * 10
}

fn end(trace: u8, span: u8) -> i64 {
    start(trace, span) + 100
}

/// Returns the start of a trace, as given by its client.
fn said_start(value: u8) -> i64 {
    [MIDNIGHT, MIDNIGHT - 5, MIDNIGHT + DAY, MIDNIGHT - 2 * DAY][usize::from(value % 4)]
}

/// Returns the duration of a trace, as given by its client.
fn said_duration(value: u8) -> Option<i64> {
    (value != 0).then_some(50)
}

fn said_state(value: u8) -> &'static str {
    if value < 2 { "OK" } else { "IN_PROGRESS" }
}

/// Returns the time up to which traces are deleted.
fn latest(value: u8) -> i64 {
    [MIDNIGHT - 1, MIDNIGHT, MIDNIGHT + DAY, MIDNIGHT - DAY][usize::from(value % 4)]
}

/// Returns the spans of each trace in an export. Span 1 is the root.
fn exported(op: Op) -> Vec<(u8, Vec<u8>)> {
    match op.value {
        0 => vec![(op.of, vec![1])],
        1 => vec![(op.of, vec![2])],
        2 => vec![(op.of, vec![3, 2])],
        _ => vec![(op.of, vec![1, 3]), ((op.of + 1) % 3, vec![2])],
    }
}

/// Returns the traces to be deleted by name.
fn named(op: Op) -> BTreeSet<u8> {
    BTreeSet::from([op.of, op.value % 3])
}

fn id(trace: u8) -> String {
    format!("tr-{:032x}", trace + 1)
}

/// Returns the number of the trace with an id.
fn number(info: &Value) -> u8 {
    u8::from_str_radix(&info["trace_id"].as_str().unwrap()[3..], 16).unwrap() - 1
}

fn export(op: Op) -> Value {
    let nanos = |ms: i64| (ms * 1_000_000).to_string();
    let span = |trace: u8, span: u8| {
        let mut sent = json!({
            "traceId": id(trace)[3..], "spanId": format!("{span:016x}"), "name": format!("step {span}"),
            "startTimeUnixNano": nanos(start(trace, span)), "endTimeUnixNano": nanos(end(trace, span)),
        });
        if span > 1 {
            sent["parentSpanId"] = format!("{:016x}", 1).into();
        }
        sent
    };
    let spans = exported(op).into_iter().flat_map(|(trace, spans)| spans.into_iter().map(move |one| (trace, one)));
    let spans: Vec<_> = spans.map(|(trace, one)| span(trace, one)).collect();
    json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": spans }] }] })
}

fn feedback(op: Op) -> (String, Value) {
    (format!("a{}", op.key), json!({ "value": word(op.value) }))
}

/// Returns the request of an operation on traces, see [`Op::request`].
pub(super) fn request(op: Op, ids: &Ids) -> Option<(&'static str, String, Value)> {
    let all = "/api/3.0/mlflow/traces";
    let known = |kind: char, slot: u8| ids.get(&format!("{kind}{slot}")).cloned();
    let (one, key) = (format!("{all}/{}", id(op.of)), format!("k{}", op.key));
    let (assessment, value) = feedback(op);
    let delete = || format!("{all}/delete-traces");
    Some(match op.kind {
        TraceExport => ("POST", format!("/v1/traces?experiment={}", known('e', op.key)?), export(op)),
        TraceStart => {
            let place = json!({ "experiment_id": known('e', op.key)? });
            let mut info = json!({
                "trace_id": id(op.of), "trace_location": { "type": "MLFLOW_EXPERIMENT", "mlflow_experiment": place },
                "request_time": time_text(said_start(op.value)), "state": said_state(op.value),
            });
            if let Some(duration) = said_duration(op.value) {
                info["execution_duration"] = duration_text(duration).into();
            }
            ("POST", all.to_owned(), json!({ "trace": { "trace_info": info } }))
        }
        TraceTag => ("PATCH", format!("{one}/tags"), json!({ "key": key, "value": word(op.value) })),
        TraceUntag => ("DELETE", format!("{one}/tags"), json!({ "key": key })),
        TraceAssess => {
            let said = json!({ "assessment_id": assessment, "assessment_name": assessment, "feedback": value });
            ("POST", format!("{one}/assessments"), json!({ "assessment": said }))
        }
        TraceReassess => {
            let said = json!({ "assessment": { "feedback": value }, "update_mask": "feedback" });
            ("PATCH", format!("{one}/assessments/{assessment}"), said)
        }
        TraceUnassess => ("DELETE", format!("{one}/assessments/{assessment}"), json!({})),
        TraceLink => {
            let link = json!({ "run_id": known('r', op.key)?, "trace_ids": [id(op.of)] });
            ("POST", "/api/2.0/mlflow/traces/link-to-run".to_owned(), link)
        }
        TraceDelete => {
            let named: Vec<_> = named(op).into_iter().map(id).collect();
            ("POST", delete(), json!({ "experiment_id": known('e', op.key)?, "request_ids": named }))
        }
        TraceDeleteUntil => {
            let until = json!({ "experiment_id": known('e', op.of)?, "max_timestamp_millis": latest(op.value) });
            ("POST", delete(), until)
        }
        TraceKeep => {
            let tag = json!({ "experiment_id": known('e', op.of)?, "key": RETENTION, "value": expiry::text(op.value) });
            ("POST", "/api/2.0/mlflow/experiments/set-experiment-tag".to_owned(), tag)
        }
        TraceUnkeep => {
            let tag = json!({ "experiment_id": known('e', op.of)?, "key": RETENTION });
            ("POST", "/api/2.0/mlflow/experiments/delete-experiment-tag".to_owned(), tag)
        }
        _ => return None,
    })
}

impl State {
    /// Applies an operation on traces. Returns `None` if it is refused.
    pub(super) fn apply_to_traces(&mut self, op: Op) -> Option<()> {
        match op.kind {
            TraceExport if !self.is_active(op.key) => None,
            TraceExport => {
                let taken: Vec<_> = exported(op).iter().map(|(trace, spans)| self.export(op, *trace, spans)).collect();
                taken.contains(&true).then_some(())
            }
            TraceStart => self.start(op),
            // A link to a trace that has not arrived is stored until the trace arrives.
            TraceLink if !self.traces.contains_key(&op.of) => {
                self.awaited.entry(op.of).or_default().insert(op.key);
                Some(())
            }
            // Deleting a missing assessment succeeds, and so does linking a hidden trace, which has
            // no effect.
            TraceUnassess | TraceLink if !self.shows(op.of) => Some(()),
            TraceDelete => {
                self.experiments.get(&op.key)?;
                for trace in named(op) {
                    self.delete_trace(op.key, trace);
                }
                Some(())
            }
            TraceDeleteUntil => {
                self.experiments.get(&op.of)?;
                (0..3).for_each(|trace| self.delete_until(op, trace));
                Some(())
            }
            TraceKeep => self.keep_traces(op, Some(op.value)),
            TraceUnkeep => self.keep_traces(op, None),
            _ => self.change_trace(op),
        }
    }

    fn change_trace(&mut self, op: Op) -> Option<()> {
        let trace = Some(op.of).filter(|trace| self.shows(*trace)).and_then(|trace| self.traces.get_mut(&trace))?;
        let (key, value, assessment) = (format!("k{}", op.key), word(op.value), feedback(op).0);
        let known = trace.feedback.get(&assessment);
        match op.kind {
            TraceTag => drop(trace.tags.insert(key, value)),
            TraceUntag => drop(trace.tags.remove(&key)?),
            // An assessment whose id exists is refused, unless it has the same value. In that case,
            // it has no effect.
            TraceAssess if known.is_some_and(|known| *known != value) => return None,
            TraceReassess if known.is_none() => return None,
            TraceAssess | TraceReassess => drop(trace.feedback.insert(assessment, value)),
            TraceUnassess => drop(trace.feedback.remove(&assessment)),
            _ => drop(trace.runs.insert(op.key)),
        }
        Some(())
    }

    /// Returns the spans that arrived in an experiment for a trace that does not exist or belongs
    /// to another experiment. They are invisible until the trace exists there.
    fn stray(&mut self, trace: u8, experiment: u8) -> &mut BTreeSet<u8> {
        self.strays.entry((trace, experiment)).or_default()
    }

    /// Stores the spans of an export, without its other changes to the trace.
    fn keep_spans(&mut self, op: Op, trace: u8, spans: &[u8]) {
        match self.traces.get_mut(&trace).filter(|known| known.experiment == op.key) {
            Some(known) => known.spans.extend(spans),
            None => self.stray(trace, op.key).extend(spans),
        }
    }

    /// Returns the trace, which is created if it does not exist. Returns `None` if it belongs to
    /// another experiment.
    fn trace_in(&mut self, trace: u8, experiment: u8, new: Trace) -> Option<&mut Trace> {
        if !self.traces.contains_key(&trace) {
            let spans = self.strays.remove(&(trace, experiment)).unwrap_or_default();
            let runs = self.awaited.remove(&trace).unwrap_or_default();
            self.traces.insert(trace, Trace { experiment, spans, runs, ..new });
        }
        self.traces.get_mut(&trace).filter(|known| known.experiment == experiment)
    }

    /// Applies the part of an export that concerns one trace. Returns whether it is accepted.
    fn export(&mut self, op: Op, trace: u8, spans: &[u8]) -> bool {
        self.keep_spans(op, trace, spans);
        let starts = spans.iter().map(|span| start(trace, *span)).min().unwrap();
        let ends = spans.iter().map(|span| end(trace, *span)).max().unwrap();
        let new = Trace { time: starts, state: "IN_PROGRESS".to_owned(), ..Trace::default() };
        let Some(known) = self.trace_in(trace, op.key, new) else { return false };
        let known_end = known.duration.map_or(ends, |duration| known.time + duration);
        known.time = known.time.min(starts);
        known.duration = Some(known_end.max(ends) - known.time);
        if spans.contains(&1) && known.state == "IN_PROGRESS" {
            "OK".clone_into(&mut known.state);
        }
        known.is_exported = true;
        true
    }

    fn start(&mut self, op: Op) -> Option<()> {
        let experiment = self.is_active(op.key).then_some(op.key)?;
        let known = self.trace_in(op.of, experiment, Trace::default())?;
        (known.time, known.duration) = (said_start(op.value), said_duration(op.value));
        said_state(op.value).clone_into(&mut known.state);
        Some(())
    }

    fn delete_trace(&mut self, experiment: u8, trace: u8) {
        if self.traces.get(&trace).is_some_and(|known| known.experiment == experiment && self.is_kept(known)) {
            // Spans are deleted with their trace. Spans of the trace that arrived in another
            // experiment are kept.
            self.traces.remove(&trace);
        }
    }

    fn delete_until(&mut self, op: Op, trace: u8) {
        if self.traces.get(&trace).is_some_and(|known| known.time <= latest(op.value)) {
            self.delete_trace(op.of, trace);
        }
    }

    /// Returns the state after a refused operation. Only a refused export changes the state,
    /// because it leaves orphaned spans.
    pub(super) fn refused(mut self, op: Op) -> Self {
        if op.kind == TraceExport && self.is_active(op.key) {
            for (trace, spans) in exported(op) {
                self.keep_spans(op, trace, &spans);
            }
        }
        self
    }

    /// Returns the possible states after the indexer has removed any of the orphaned spans.
    pub(super) fn cleared_up(self) -> Vec<Self> {
        let strays: Vec<_> = self.strays.keys().copied().collect();
        let mut all = vec![self];
        for stray in strays {
            let without = all.clone().into_iter().map(|mut state| {
                state.strays.remove(&stray);
                state
            });
            all.extend(without);
        }
        all
    }

    /// Returns the steps of an operation on traces. Each may take effect without the others.
    pub(super) fn parts_of_traces(op: Op) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        match op.kind {
            TraceExport => {
                for (trace, spans) in exported(op) {
                    let those = spans.clone();
                    parts.push(Box::new(move |state| {
                        if state.is_active(op.key) {
                            state.keep_spans(op, trace, &those);
                        }
                    }));
                    parts.push(Box::new(move |state| {
                        if state.is_active(op.key) {
                            state.export(op, trace, &spans);
                        }
                    }));
                }
            }
            TraceDelete => {
                for trace in named(op) {
                    parts.push(Box::new(move |state| state.delete_trace(op.key, trace)));
                }
            }
            TraceDeleteUntil => {
                for trace in 0..3 {
                    parts.push(Box::new(move |state| state.delete_until(op, trace)));
                }
            }
            _ => {}
        }
        parts
    }
}

/// Returns the traces of a view, without links. Tags set by the server are left out: they only
/// determine whether the spans are returned.
pub(super) fn at(
    view: &Value,
    experiments: &BTreeMap<String, u8>,
    texts: impl Fn(&Value) -> Texts,
) -> BTreeMap<u8, Trace> {
    let infos = view["infos"].as_array().into_iter().flatten();
    let trace = |info: &Value| {
        let spans = view["spans"][info["trace_id"].as_str().unwrap()].as_array();
        let name = |span: &Value| span["name"].as_str().unwrap()[5..].parse::<u8>().unwrap();
        let names: Vec<_> = spans.into_iter().flatten().map(name).collect();
        let feedback = info["assessments"].as_array().into_iter().flatten().map(|assessment| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (text(&assessment["assessment_id"]), text(&assessment["feedback"]["value"]))
        });
        let experiment = &info["trace_location"]["mlflow_experiment"]["experiment_id"];
        let found = Trace {
            experiment: experiments[experiment.as_str().unwrap()],
            time: parse_time(info["request_time"].as_str().unwrap()).unwrap(),
            duration: info["execution_duration"].as_str().map(|text| parse_duration(text).unwrap()),
            state: info["state"].as_str().unwrap().to_owned(),
            spans: names.iter().copied().collect(),
            is_exported: spans.is_some(),
            tags: texts(&info["tags"]),
            feedback: feedback.collect(),
            runs: BTreeSet::new(),
        };
        assert_eq!(found.spans.len(), names.len(), "duplicate spans");
        (number(info), found)
    };
    infos.map(trace).collect()
}

/// Filters and orders of [`search`].
const SEARCHES: [(&str, &str); 7] = [
    ("tag.k0 = 'v1'", ""),
    ("feedback.a0 = 'v1'", ""),
    ("span.name = 'step 2'", ""),
    ("attributes.status = 'OK' AND timestamp >= 1699920000000", ""),
    ("", "timestamp ASC"),
    ("tag.k1 != 'v0'", "execution_time DESC"),
    ("feedback.a1 IS NULL", "tag.k0"),
];

/// Number of [`SEARCHES`].
pub(super) const KINDS_OF_SEARCHES: u8 = 7;

/// Returns the numbers of the traces that a search finds, reading page by page.
pub(super) async fn search(api: &TestClient, ids: &Ids, which: u8) -> Result<Vec<u8>, String> {
    let (filter, order) = SEARCHES[usize::from(which)];
    let experiments: Vec<_> = ids.iter().filter(|(name, _)| name.starts_with('e')).map(|(_, id)| id).collect();
    found(api, &experiments, filter, order).await
}

/// Returns the traces of these experiments that are linked to a run.
pub(super) async fn linked(api: &TestClient, experiments: &BTreeMap<String, u8>, run: &str) -> Result<Vec<u8>, String> {
    let experiments: Vec<_> = experiments.keys().collect();
    found(api, &experiments, &format!("attributes.run_id = '{run}'"), "").await
}

async fn found(api: &TestClient, experiments: &[&String], filter: &str, order: &str) -> Result<Vec<u8>, String> {
    let places: Vec<_> = experiments.iter().map(|id| json!({ "mlflow_experiment": { "experiment_id": id } })).collect();
    let order: Vec<_> = Some(order).filter(|order| !order.is_empty()).into_iter().collect();
    let mut asked = json!({ "locations": places, "filter": filter, "order_by": order, "max_results": 1 });
    let mut found = Vec::new();
    loop {
        let answer = api.call_at("POST", "/api/3.0/mlflow/traces/search", asked.to_string()).await;
        if answer.status != 200 {
            return Err(format!("{asked}: {answer:?}"));
        }
        found.extend(answer.body["traces"].as_array().into_iter().flatten().map(number));
        match answer.body["next_page_token"].as_str() {
            Some(token) => asked["page_token"] = token.into(),
            None => return Ok(found),
        }
    }
}

/// Returns the result that [`search`] should have in a state.
pub(super) fn should_find(state: &State, which: u8) -> Vec<u8> {
    let is = |texts: &Texts, key: &str, value: u8| texts.get(key) == Some(&word(value));
    let passes = |trace: &Trace| match which {
        0 => is(&trace.tags, "k0", 1),
        1 => is(&trace.feedback, "a0", 1),
        2 => trace.spans.contains(&2),
        3 => trace.state == "OK" && trace.time >= MIDNIGHT,
        5 => trace.tags.contains_key("k1") && !is(&trace.tags, "k1", 0),
        6 => !trace.feedback.contains_key("a1"),
        _ => true,
    };
    let mut found: Vec<_> = state.traces.iter().filter(|(_, trace)| state.is_kept(trace) && passes(trace)).collect();
    // Newest first, with ties broken by ascending id. A requested order takes precedence, and
    // traces without its value come last.
    found.sort_by_key(|(number, trace)| (-trace.time, **number));
    match which {
        4 => found.sort_by_key(|(number, trace)| (trace.time, **number)),
        5 => found.sort_by_key(|(_, trace)| (trace.duration.is_none(), trace.duration.map(|duration| -duration))),
        6 => found.sort_by_key(|(_, trace)| (!trace.tags.contains_key("k0"), trace.tags.get("k0"))),
        _ => {}
    }
    found.into_iter().map(|(number, _)| *number).collect()
}
