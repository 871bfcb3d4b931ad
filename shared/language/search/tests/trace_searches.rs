//! Compares searches of traces with the results of stock MLflow's own store, which were recorded by
//! `tests/compare/record_trace_searches.py`.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::borrow::Cow;
use std::collections::BTreeMap;

use mlflow_api::ExperimentId;
use search::trace::{
    AssessmentFields, AssessmentKind, MatchingSessions, SpanFields, TraceFields, TraceText, parse_trace_search,
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Recorded {
    traces: Vec<Trace>,
    searches: Vec<(Vec<u64>, String, Vec<String>, Answer)>,
}

/// The recorded result of a search in MLflow.
#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    /// The indexes of the traces that were found.
    Found(Vec<usize>),
    /// An error message.
    Refused(String),
    /// An exception that MLflow did not catch.
    Failed(()),
}

#[derive(Deserialize)]
struct Trace {
    id: String,
    experiment: u64,
    time: i64,
    duration: Option<i64>,
    state: String,
    client: Option<String>,
    tags: BTreeMap<String, String>,
    metadata: BTreeMap<String, String>,
    /// The assessments of the trace. Each has its kind, its name, its JSON value, whether it is
    /// valid, and whether it applies to the session.
    assessments: Vec<(String, String, String, bool, bool)>,
    runs: Vec<String>,
    prompts: Vec<String>,
    spans: Vec<Span>,
}

/// A span, as its name, type, status, start time and content.
#[derive(Deserialize)]
struct Span(Option<String>, Option<String>, String, i64, String);

impl TraceFields for Trace {
    fn experiment(&self) -> ExperimentId {
        ExperimentId::from_number(self.experiment).unwrap()
    }

    fn text(&self, attribute: TraceText) -> Option<&str> {
        match attribute {
            TraceText::Id => Some(&self.id),
            TraceText::State => Some(&self.state),
            TraceText::ClientRequestId => self.client.as_deref(),
        }
    }

    fn request_time(&self) -> i64 {
        self.time
    }

    fn duration(&self) -> Option<i64> {
        self.duration
    }

    fn tag(&self, key: &str) -> Option<&str> {
        self.tags.get(key).map(String::as_str)
    }

    fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).map(String::as_str)
    }

    fn assessments(&self) -> impl Iterator<Item = AssessmentFields<'_>> {
        self.assessments.iter().map(|(kind, name, json, is_valid, is_of_session)| AssessmentFields {
            kind: match kind.as_str() {
                "feedback" => AssessmentKind::Feedback,
                "expectation" => AssessmentKind::Expectation,
                _ => AssessmentKind::Issue,
            },
            name,
            json: Cow::Borrowed(json),
            number: serde_json::from_str::<Value>(json).unwrap().as_f64(),
            is_valid: *is_valid,
            is_of_session: *is_of_session,
        })
    }

    fn is_linked_to_run(&self, run: &str) -> bool {
        self.runs.iter().any(|linked| linked == run)
    }

    fn is_linked_to_prompt(&self, prompt: &str) -> bool {
        self.prompts.iter().any(|linked| linked == prompt)
    }
}

impl SpanFields for &Span {
    fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }

    fn kind(&self) -> Option<&str> {
        self.1.as_deref()
    }

    fn status(&self) -> &str {
        &self.2
    }

    fn start(&self) -> i64 {
        self.3
    }

    fn content(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.4)
    }
}

/// Returns the indexes of the traces that a search finds, in the order of the search, or the error
/// message.
fn search(traces: &[Trace], experiments: &[u64], filter: &str, order_by: &[String]) -> Result<Vec<usize>, String> {
    let search = parse_trace_search(filter, order_by).map_err(|error| error.message)?;
    let scope: Vec<_> = (0..traces.len()).filter(|place| experiments.contains(&traces[*place].experiment)).collect();
    let mut sessions = MatchingSessions::default();
    for place in &scope {
        sessions.add(&search.filter, &traces[*place]);
    }
    let times = search.filter.request_times();
    let passes = |place: &usize| {
        let trace = &traces[*place];
        let passes = search.filter.matches(trace, &sessions) && search.filter.matches_spans(&trace.spans);
        assert!(!passes || times.contains(trace.time), "{filter} finds a trace outside of its time range");
        passes
    };
    let mut found: Vec<_> = scope.into_iter().filter(passes).collect();
    found.sort_by_cached_key(|place| search.order.key(&traces[*place]));
    Ok(found)
}

#[test]
fn searches_find_what_mlflow_finds() {
    // If it is set, `TRACE_SEARCHES` contains the path of a different recording.
    let path = std::env::var("TRACE_SEARCHES");
    let path = path.unwrap_or_else(|_| format!("{}/tests/trace_searches.json", env!("CARGO_MANIFEST_DIR")));
    let recorded: Recorded = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(recorded.searches.len() >= 400);
    let mut differences = Vec::new();
    for (experiments, filter, order_by, expected) in &recorded.searches {
        let found = search(&recorded.traces, experiments, filter, order_by);
        let expected = match expected {
            Answer::Found(places) => Ok(places.clone()),
            Answer::Refused(message) => Err(message.clone()),
            Answer::Failed(()) => continue,
        };
        // Python's regular expressions support features that this server rejects because they may
        // take more than linear time.
        if found.as_ref().is_err_and(|message| message.ends_with("has a look-around, which is not supported.")) {
            continue;
        }
        if found != expected {
            differences.push(format!("{filter:?} by {order_by:?} in {experiments:?}\n  {found:?}\n  not {expected:?}"));
        }
    }
    assert!(differences.is_empty(), "{} differences\n{}", differences.len(), differences.join("\n"));
}
