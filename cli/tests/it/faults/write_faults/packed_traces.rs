//! Writes to packed traces, with a fault at each of their requests. Clients repeat a failed write
//! either immediately or after a packing pass. Searches read blocks and reads by id read documents,
//! and the two have to agree at any time.

use mlflow_api::Workspace;
use serde_json::{Value, json};
use test_site::{ROOT, TestEnvironment, all_troubles};

use super::execution_comparison::difference;
use super::faulty_write::{self, Call, Course, Outcome, Written};
use super::view_cache::Rows;
use crate::faults::packing::{counts, pass, timed};
use crate::faults::trace_invariants;

/// Rows that schedule the next check of a partition. Their number depends on how often the
/// partition was checked.
const PASSING: [&str; 2] = ["Postponed", "PackingLock"];

fn trace(number: u32) -> String {
    format!("tr-{number:032x}")
}

#[expect(clippy::needless_pass_by_value, reason = "the body is constructed by the caller for this call")]
fn call(method: &str, path: &str, body: Value) -> Call {
    Call { method: method.to_owned(), path: path.to_owned(), body: body.to_string() }
}

async fn done(site: &TestEnvironment, method: &str, path: &str, body: Value) -> Value {
    call(method, path, body).send(&faulty_write::api(&site.table)).await.ok()
}

fn info(number: u32, time: &str) -> Value {
    json!({ "trace": { "trace_info": {
        "trace_id": trace(number),
        "trace_location": { "type": "MLFLOW_EXPERIMENT", "mlflow_experiment": { "experiment_id": "0" } },
        "request_time": time, "execution_duration": "0.005s", "state": "OK", "tags": { "kind": "x" },
    } } })
}

/// Returns the spans with a different start second.
fn at(spans: &Value, second: &str) -> Value {
    serde_json::from_str(&spans.to_string().replace("1700000000", second)).unwrap()
}

/// Creates four packed traces, one of them by an old client that has not ended it, and returns the
/// writes to try on them.
async fn ground() -> (TestEnvironment, Vec<Call>) {
    let site = TestEnvironment::new().await;
    let store = tracking::store::Store::new(site.table.clone(), ROOT);
    store.experiment_create_default(&Workspace::default()).await.unwrap();
    let (all, v2) = ("/api/3.0/mlflow/traces", "/api/2.0/mlflow");
    for (number, second) in [(1, "1700000000"), (2, "1700000000"), (3, "1699999990")] {
        done(&site, "POST", "/v1/traces", at(&test_site::route_samples::export(&trace(number)[3..], 1), second)).await;
    }
    done(&site, "POST", all, info(1, "2023-11-14T22:13:20.000Z")).await;
    let (first, tags) = (format!("{all}/{}", trace(1)), format!("{all}/{}/tags", trace(1)));
    let feedback = |name: &str| json!({ "assessment": { "assessment_name": name, "feedback": { "value": true }, "create_time": "2026-01-01T00:00:00Z" } });
    let created = done(&site, "POST", &format!("{first}/assessments"), feedback("good")).await;
    let assessment = format!("{first}/assessments/{}", created["assessment"]["assessment_id"].as_str().unwrap());
    let run = done(&site, "POST", &format!("{v2}/runs/create"), json!({ "experiment_id": "0", "start_time": 1 })).await;
    let begun = json!({ "experiment_id": "0", "timestamp_ms": 5, "request_metadata": [], "tags": [] });
    let begun = done(&site, "POST", &format!("{v2}/traces"), begun).await;
    let old = begun["trace_info"]["request_id"].as_str().unwrap();
    pass(&site).await;
    let packed = counts(&site).await;
    assert_eq!((packed.traces, packed.marks, packed.blocks), (4, 0, 3), "all are packed");

    let link = json!({ "run_id": run["run"]["info"]["run_id"], "trace_ids": [trace(1), trace(3)] });
    let prompts = json!({ "trace_id": trace(1), "prompt_versions": [{ "name": "p", "version": "1" }] });
    let change = json!({ "assessment": { "rationale": "why" }, "update_mask": "rationale" });
    let ended = json!({ "timestamp_ms": 9, "status": "OK", "request_metadata": [], "tags": [] });
    let named = json!({ "experiment_id": "0", "request_ids": [trace(1), trace(3)] });
    let until = json!({ "experiment_id": "0", "max_timestamp_millis": 1_699_999_999_999_i64 });
    let spans = test_site::route_samples::export(&trace(1)[3..], 7);
    let calls = vec![
        call("PATCH", &tags, json!({ "key": "k", "value": "v" })),
        call("DELETE", &tags, json!({ "key": "kind" })),
        call("POST", &format!("{first}/assessments"), feedback("better")),
        call("PATCH", &assessment, change),
        call("DELETE", &assessment, json!({})),
        call("POST", &format!("{v2}/traces/link-to-run"), link),
        call("POST", &format!("{v2}/traces/link-prompts"), prompts),
        call("POST", "/v1/traces", at(&spans, "1699913600")),
        call("POST", "/v1/traces", spans),
        call("POST", all, info(1, "2023-11-16T22:13:20.000Z")),
        call("PATCH", &format!("{v2}/traces/{old}"), ended),
        call("POST", &format!("{all}/delete-traces"), named),
        call("POST", &format!("{all}/delete-traces"), until),
    ];
    (site, calls)
}

/// A write to packed traces, and the state after everything is packed again.
struct Packed {
    written: Written,
    rows: Rows,
}

impl Packed {
    async fn new(site: &TestEnvironment, call: Call) -> Self {
        let written = Written::new(site, call, |_, _| true).await.unwrap();
        let copy = written.site.copy();
        written.call.send(&faulty_write::api(&copy.table)).await.ok();
        pass(&copy).await;
        let rows = lasting(written.found(&copy).await.unwrap().state.rows);
        assert!(!rows.contains_key("TraceMark"), "{rows:?}");
        Self { written, rows }
    }

    /// Checks the invariants for the write with this fault.
    async fn goes(&self, course: Course) -> Result<(), String> {
        let site = self.written.site.copy();
        let outcome = self.written.attempt(&site, course).await?;
        if !self.written.is_first(&outcome) {
            return Ok(());
        }
        let is_export = self.written.call.path == "/v1/traces";
        let check = async |site: &TestEnvironment| {
            if is_export && outcome.is_open() {
                trace_invariants::check_cut_off(site, |_| true).await
            } else {
                trace_invariants::check(site, |_| true).await
            }
        };
        check(&site).await?;
        // The client may repeat the write so late that a packing pass has taken place before.
        let other = if outcome.is_open() { Some(site.copy()) } else { None };
        self.ends(&site, &outcome).await?;
        let Some(other) = other else { return Ok(()) };
        let after = |wrong| format!("packed before it is repeated: {wrong}");
        pass(&other).await;
        check(&other).await.map_err(after)?;
        let found = self.written.found(&other).await.map_err(after)?;
        // The spans of an interrupted export are returned once the client repeats it, or the trace is packed.
        let seen = |view: &Value| if is_export { without_spans(view) } else { view.clone() };
        if seen(&found.view) != seen(&outcome.found.view) {
            return Err(after(difference(&outcome.found.view, &found.view)));
        }
        self.ends(&other, &outcome).await.map_err(after)
    }

    /// Repeats the write, and packs everything again.
    async fn ends(&self, site: &TestEnvironment, outcome: &Outcome) -> Result<(), String> {
        if self.written.repeat(site, outcome).await?.is_some() {
            trace_invariants::check(site, |_| true).await?;
        }
        pass(site).await;
        trace_invariants::check(site, |_| true).await.map_err(|wrong| format!("packed again: {wrong}"))?;
        let found = self.written.found(site).await?;
        if found.view != self.written.after.view {
            return Err(format!("packed again{}", difference(&self.written.after.view, &found.view)));
        }
        let rows = lasting(found.state.rows);
        if rows == self.rows { Ok(()) } else { Err(format!("{rows:?}, not {:?}", self.rows)) }
    }
}

/// Returns a view of traces without their spans, and without the searches for the names of these spans.
fn without_spans(view: &Value) -> Value {
    let mut view = view.clone();
    for part in ["spans", "by_spans"] {
        assert!(view.as_object_mut().unwrap().remove(part).is_some(), "{part}");
    }
    view
}

fn lasting(mut rows: Rows) -> Rows {
    rows.retain(|name, _| !PASSING.contains(name));
    rows
}

#[test]
fn every_write_to_packed_traces_survives_a_fault_at_each_of_its_requests() {
    let is_all = all_troubles();
    timed(async {
        let (site, calls) = ground().await;
        let (mut courses, mut wrong) = (0, Vec::new());
        let least = if is_all { 12 } else { 1 } * calls.len();
        for (number, call) in calls.into_iter().enumerate() {
            let packed = Packed::new(&site, call).await;
            let tried = packed.written.courses(number);
            for course in tried {
                // The sample leaves out faults that differ from others only in the number of
                // failing requests.
                let course = match course {
                    Course::Troubled(trouble, nth, 2) if !is_all => Course::Troubled(trouble, nth, 1),
                    course => course,
                };
                courses += 1;
                let Call { method, path, .. } = &packed.written.call;
                wrong.extend(
                    Box::pin(packed.goes(course)).await.err().map(|why| format!("{method} {path} {course:?}: {why}")),
                );
            }
        }
        assert!(courses >= least, "{courses} courses");
        assert!(wrong.is_empty(), "{}\n{} wrong", wrong.join("\n"), wrong.len());
    });
}
