//! Before a trace changes or gets spans, there must be a mark at its position in the time order,
//! and the mark must not be deleted in the meantime.
//!
//! A packer deletes marks that are older than two minutes, after it has packed their traces in
//! their current state. Each test simulates such a packer.

use std::time::Duration;

use key_schema::{Key, rows};
use runtime::clock::{SimulatedClock, now_ms};
use serde_json::{Value, json};
use test_site::key_of;

use crate::server::{ALL, Server, Site, export, id, info, span};

/// Start of the trace in these tests, in ms.
const BEGAN: i64 = 1_700_000_000_000;

/// Runs a test with a simulated clock that jumps to the next timer.
pub(crate) fn timed(test: impl Future<Output = ()>) {
    let simulation = SimulatedClock::begin();
    let test = Box::pin(test);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::select! { () = test => {}, () = simulation.drive() => {} }
    });
}

/// A kind of request that changes a trace.
#[derive(Clone, Copy, Debug)]
enum Op {
    Tag,
    Untag,
    Judge,
    Rejudge,
    LinkRun,
    LinkPrompt,
    StartAgain,
    StartElsewhere,
    MoreSpans,
    SpansThatChangeNothing,
    EarlierSpans,
    SpansOfARun,
    Delete,
    DeleteByTime,
}

const ALL_OPS: [Op; 13] = [
    Op::Tag,
    Op::Untag,
    Op::Judge,
    Op::Rejudge,
    Op::LinkRun,
    Op::LinkPrompt,
    Op::StartAgain,
    Op::StartElsewhere,
    Op::MoreSpans,
    Op::SpansThatChangeNothing,
    Op::EarlierSpans,
    Op::SpansOfARun,
    Op::Delete,
];

impl Op {
    /// Returns whether the request writes spans. Spans are written before the trace's experiment is
    /// checked.
    fn is_export(self) -> bool {
        matches!(self, Self::MoreSpans | Self::SpansThatChangeNothing | Self::EarlierSpans | Self::SpansOfARun)
    }

    /// Sends the request and returns the status of the response.
    async fn act(self, server: &Server, named: &Named) -> u16 {
        let Named { run, assessment: known } = named;
        let (tags, of_trace) = (format!("traces/{}/tags", id(1)), format!("{ALL}/{}", id(1)));
        let assessment = json!({ "assessment_name": "good", "feedback": { "value": 1 }, "assessment_id": "a-00000000000000000000000000000001" });
        let call = async |method: &str, path: &str, body: Value| server.call_at(method, path, body.to_string()).await;
        let answer = match self {
            Self::Tag => server.call("PATCH", &tags, json!({ "key": "other", "value": "v" })).await,
            Self::Untag => server.call("DELETE", &tags, json!({ "key": "k" })).await,
            Self::Judge => call("POST", &format!("{of_trace}/assessments"), json!({ "assessment": assessment })).await,
            Self::Rejudge => {
                let change = json!({ "assessment": { "rationale": "r" }, "update_mask": "rationale" });
                call("PATCH", &format!("{of_trace}/assessments/{known}"), change).await
            }
            Self::LinkRun => server.post("traces/link-to-run", json!({ "run_id": run, "trace_ids": [id(1)] })).await,
            Self::LinkPrompt => {
                let prompt = json!({ "trace_id": id(1), "prompt_versions": [{ "name": "p", "version": "1" }] });
                server.post("traces/link-prompts", prompt).await
            }
            Self::StartAgain | Self::StartElsewhere => {
                let mut started = info(1, "0");
                started["tags"] = json!({ "again": "1" });
                if matches!(self, Self::StartElsewhere) {
                    started["request_time"] = "2023-11-15T22:13:20.000Z".into();
                }
                server.start(&started).await
            }
            Self::MoreSpans => server.export(&[span(1, 2, Some(1), 0, 2_000)]).await,
            Self::SpansThatChangeNothing => server.export(&[span(1, 2, Some(1), 1, 2)]).await,
            Self::EarlierSpans => server.export(&[span(2, 2, Some(1), 0, 2)]).await,
            Self::SpansOfARun => {
                let request = http::Request::post("/v1/traces").header("content-type", "application/json");
                let request = request.header("x-mlflow-experiment-id", "0").header("x-mlflow-run-id", run);
                let spans = export(&[span(1, 3, None, 1, 2)]);
                server.send(request.body(axum::body::Body::from(spans)).unwrap()).await
            }
            Self::Delete => {
                let asked = json!({ "experiment_id": "0", "request_ids": [id(1)] });
                server.post("traces/delete-traces", asked).await
            }
            Self::DeleteByTime => {
                let until = json!({ "experiment_id": "0", "max_timestamp_millis": BEGAN });
                server.post("traces/delete-traces", until).await
            }
        };
        answer.status
    }
}

/// Ids of a site's entities other than traces.
struct Named {
    run: String,
    /// Id of the first trace's assessment.
    assessment: String,
}

/// Creates a site with two traces, each with a tag, an assessment and a span, and with a run. The
/// second trace starts a second later than its spans indicate.
async fn site() -> (Site, Named) {
    let site = Site::new().await;
    let server = &site.server;
    let mut started = info(1, "0");
    started["tags"] = json!({ "k": "v" });
    server.start(&started).await.ok();
    server.export(&[span(1, 1, None, 0, 1_000), span(2, 1, None, 1_000, 2_000)]).await.ok();
    let feedback = json!({ "assessment": { "assessment_name": "n", "feedback": { "value": 1 } } });
    let judged = server.call_at("POST", &format!("{ALL}/{}/assessments", id(1)), feedback.to_string()).await.ok();
    let run = server.post("runs/create", json!({ "experiment_id": "0" })).await.ok();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let named =
        Named { run: text(&run["run"]["info"]["run_id"]), assessment: text(&judged["assessment"]["assessment_id"]) };
    (site, named)
}

/// Checks whether an item is a mark without spans.
fn is_plain_mark(key: &Key) -> bool {
    rows::TraceMark::parse(key).is_some()
}

/// Lets two minutes pass, and deletes all marks, as if the traces had been packed. Marks with spans
/// remain, because the documents refer to them.
async fn pack(site: &Site) {
    runtime::clock::sleep(Duration::from_mins(2)).await;
    let marks: Vec<_> = site.items().await.iter().map(key_of).filter(is_plain_mark).collect();
    assert!(!marks.is_empty());
    site.table.write_many(Vec::new(), &marks).await.unwrap();
}

/// Returns an item without the time of its mark and without its edit counter.
fn said(item: &Value) -> Value {
    let mut item = item.clone();
    for attribute in ["marked", "edits"] {
        item.as_object_mut().unwrap().remove(attribute);
    }
    item
}

/// Fails unless each document that has changed has a recent mark at its position in the time order,
/// and at its previous position. If `with_spans` is set, traces whose spans have changed must have
/// such marks as well.
fn check(before: &[Value], after: &[Value], with_spans: bool, what: &str) {
    let find = |items: &[Value], key: &Key| items.iter().find(|item| key_of(item) == *key).cloned();
    let number = |item: &Value, name: &str| item[name]["N"].as_str().unwrap().parse::<i64>().unwrap();
    let spans = |items: &[Value], pk: &str| {
        let trace = pk.trim_start_matches("TRACE");
        items.iter().map(key_of).filter(|key| key.pk.ends_with(trace) && key.sk.starts_with("T#SPANS")).count()
    };
    for item in before.iter().filter(|item| key_of(item).sk == "T#HEAD") {
        let key = key_of(item);
        let now = find(after, &key);
        let has_spans = with_spans && spans(before, &key.pk) != spans(after, &key.pk);
        if !has_spans && now.as_ref().map(said) == Some(said(item)) {
            continue;
        }
        for place in [Some(item), now.as_ref()].into_iter().flatten() {
            let ends = format!("#{}", key.pk.trim_start_matches("TRACE#"));
            let time = number(place, "start_time");
            let at_place = |mark: &&Value| {
                let key = key_of(mark);
                let row = rows::TraceMark::parse(&key);
                key.sk.ends_with(&ends) && row.is_some_and(|row| row.time.0 == time)
            };
            let marks: Vec<_> = after.iter().filter(at_place).collect();
            assert_eq!(marks.len(), 1, "{what}: marks at {time}");
            let mark = marks[0];
            assert!(number(mark, "marked") > now_ms() - 60_000, "{what}: an old mark");
            let is_now = now.as_ref().is_some_and(|now| number(now, "start_time") == time);
            if let Some(now) = now.as_ref().filter(|_| is_now) {
                assert!(number(now, "marked") <= number(mark, "marked"), "{what}: a mark that was never written");
            }
        }
    }
}

#[test]
fn every_change_of_a_packed_trace_is_marked() {
    timed(async {
        for op in ALL_OPS {
            // The request is sent to a process that has cached the traces, and to one that has not.
            for is_known in [true, false] {
                let (site, named) = site().await;
                pack(&site).await;
                let before = site.items().await;
                let server = if is_known { site.server.clone() } else { site.other().await };
                assert_eq!(op.act(&server, &named).await, 200, "{op:?}");
                let after = site.items().await;
                assert_ne!(before, after, "{op:?}");
                check(&before, &after, true, &format!("{op:?}, known: {is_known}"));
            }
        }
    });
}

#[test]
fn what_is_cut_off_is_marked_before_it_changed() {
    timed(async {
        for op in ALL_OPS {
            let (site, named) = site().await;
            pack(&site).await;
            let before = site.items().await;
            let mut cut = 1;
            loop {
                let copy = site.copy().await;
                copy.faults.cut_off_at(cut);
                let status = op.act(&copy.server, &named).await;
                copy.faults.work_again();
                check(&before, &copy.items().await, false, &format!("{op:?} cut off at {cut}"));
                if status == 200 {
                    break;
                }
                // Repeating the request completes it.
                let again = op.act(&copy.server, &named).await;
                assert!(again == 200 || matches!(op, Op::Untag), "{op:?} {again}");
                check(&before, &copy.items().await, op.is_export(), &format!("{op:?} once more after {cut}"));
                cut += 1;
            }
            assert!(cut > 2, "{op:?}");
        }
    });
}

#[test]
fn a_mark_of_this_minute_is_enough() {
    timed(async {
        let (site, named) = site().await;
        runtime::clock::sleep(Duration::from_secs(50)).await;
        for op in [Op::Tag, Op::LinkRun, Op::MoreSpans, Op::Judge, Op::Delete] {
            site.faults.reset_calls();
            op.act(&site.server, &named).await;
            let marks = site.items().await.into_iter().filter(|item| key_of(item).sk.starts_with("M#"));
            let put_later =
                |mark: &Value| mark["marked"]["N"].as_str().unwrap().parse::<i64>().unwrap() > now_ms() - 50_000;
            assert_eq!(marks.filter(put_later).count(), 0, "{op:?}");
        }
    });
}

#[test]
fn a_deleted_trace_leaves_its_mark() {
    timed(async {
        let (site, named) = site().await;
        pack(&site).await;
        assert_eq!(Op::Delete.act(&site.server, &named).await, 200);
        assert_eq!(Op::DeleteByTime.act(&site.server, &named).await, 200);
        let left = site.items().await;
        assert_eq!(left.iter().map(key_of).filter(is_plain_mark).count(), 1);
    });
}
