//! Samples of traces.

use serde_json::{Value, json};

use crate::route_samples::sample_client::{SampleClient, V2, V3, text};
use crate::route_samples::tracking::run;

/// Returns an export of a trace with two spans: the root, and a child. `first` is the id of the
/// root.
#[must_use]
pub fn export(trace: &str, first: u64) -> Value {
    let span = |id: u64, parent: Option<u64>, time: u64| {
        let mut span = json!({
            "traceId": trace,
            "spanId": format!("{id:016x}"),
            "name": format!("step {id}"),
            "startTimeUnixNano": time.to_string(),
            "endTimeUnixNano": (time + 5_000_000).to_string(),
        });
        if let Some(parent) = parent {
            span["parentSpanId"] = format!("{parent:016x}").into();
        }
        span
    };
    let time = 1_700_000_000_000_000_000;
    let spans = json!([span(first, None, time), span(first + 1, Some(first), time + 1_000_000)]);
    json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": spans }] }] })
}

pub(crate) async fn writes(walk: &mut SampleClient) {
    let all = "/api/3.0/mlflow/traces";
    let one = format!("{all}/{{trace_id}}");
    let digits = |number: u32| format!("{number:032x}");
    for (number, first) in [(1, 1), (1, 7), (2, 1)] {
        walk.send("POST /v1/traces", &[], export(&digits(number), first)).await;
    }
    let info = |number: u32| {
        json!({
            "trace_id": format!("tr-{}", digits(number)),
            "trace_location": { "type": "MLFLOW_EXPERIMENT", "mlflow_experiment": { "experiment_id": "0" } },
            "request_time": "2023-11-14T22:13:20.000Z",
            "execution_duration": "0.005s",
            "state": "OK",
            "request_preview": "question",
            "trace_metadata": { "mlflow.trace.session": "s" },
            "tags": { "mlflow.traceName": "agent", "drop": "x" },
        })
    };
    for number in [1, 3, 4] {
        let body = json!({ "trace": { "trace_info": info(number) } });
        walk.send(&format!("POST {all}"), &[], body).await;
    }
    let trace = format!("tr-{}", digits(1));
    let ids = [trace.as_str()];
    for path in [one.clone(), "/api/2.0/mlflow/traces/{request_id}".to_owned()] {
        walk.send(&format!("PATCH {path}/tags"), &ids, json!({ "key": "drop", "value": "v" })).await;
        walk.send(&format!("DELETE {path}/tags"), &ids, json!({ "key": "drop" })).await;
    }
    let assessments = format!("{one}/assessments");
    let feedback = |value: bool| json!({ "assessment_name": "good", "feedback": { "value": value }, "create_time": "2026-01-01T00:00:00Z" });
    let created = walk.send(&format!("POST {assessments}"), &ids, json!({ "assessment": feedback(true) })).await;
    let first = text(&created, "/assessment/assessment_id");
    let mut other = feedback(false);
    other["overrides"] = first.into();
    let created = walk.send(&format!("POST {assessments}"), &ids, json!({ "assessment": other })).await;
    let assessment = text(&created, "/assessment/assessment_id");
    let second = [trace.as_str(), assessment.as_str()];
    let change = json!({ "assessment": { "rationale": "why" }, "update_mask": "rationale" });
    walk.send(&format!("PATCH {assessments}/{{assessment_id}}"), &second, change).await;
    walk.send(&format!("DELETE {assessments}/{{assessment_id}}"), &second, json!({})).await;
    let run = run(walk, "0").await;
    // The second trace has not arrived yet, so the link to it is stored in a stub.
    let awaited = format!("tr-{:032x}", 77);
    walk.post("traces/link-to-run", json!({ "run_id": run, "trace_ids": [trace, awaited] })).await;
    let prompts = json!([{ "name": "p", "version": "1" }]);
    walk.post("traces/link-prompts", json!({ "trace_id": trace, "prompt_versions": prompts })).await;

    let entries = json!([{ "key": "k", "value": "v" }]);
    let new = json!({ "experiment_id": "0", "timestamp_ms": 5, "request_metadata": entries, "tags": entries });
    let started = walk.post("traces", new).await;
    let old = text(&started, "/trace_info/request_id");
    let ended = json!({ "timestamp_ms": 9, "status": "OK", "request_metadata": entries, "tags": entries });
    walk.send("PATCH /api/2.0/mlflow/traces/{request_id}", &[&old], ended).await;
    let named = json!({ "experiment_id": "0", "request_ids": [format!("tr-{}", digits(2))] });
    walk.post("traces/delete-traces", named).await;
    let until = json!({ "experiment_id": "0", "max_timestamp_millis": 1_700_000_000_000_i64 });
    walk.send(&format!("POST {all}/delete-traces"), &[], until).await;
}

pub(crate) async fn reads(walk: &mut SampleClient) {
    let id = |number: u32| format!("tr-{number:032x}");
    let all = format!("{V3}/traces");
    let run = run(walk, "0").await;
    for number in 1..3 {
        walk.send("POST /v1/traces", &[], export(&format!("{number:032x}"), 1)).await;
        let info = json!({
            "trace_id": id(number),
            "trace_location": { "type": "MLFLOW_EXPERIMENT", "mlflow_experiment": { "experiment_id": "0" } },
            "request_time": "2023-11-14T22:13:20Z", "execution_duration": "0.005s", "state": "OK",
            "request_preview": "question", "response_preview": "answer", "client_request_id": "c",
            "trace_metadata": { "mlflow.trace.session": "s", "mlflow.trace.user": "u" }, "tags": { "short": "s" },
        });
        walk.send(&format!("POST {all}"), &[], json!({ "trace": { "trace_info": info } })).await;
        let session = json!({ "mlflow.trace.session": "s" });
        for (name, metadata) in [("good", json!({})), ("whole", session)] {
            let said = json!({ "assessment_id": name, "assessment_name": name, "feedback": { "value": true }, "metadata": metadata });
            walk.send(&format!("POST {all}/{{trace_id}}/assessments"), &[&id(number)], json!({ "assessment": said }))
                .await;
        }
        let link = json!({ "run_id": run, "trace_ids": [id(number)] });
        walk.post("traces/link-to-run", link).await;
        let prompts = json!({ "trace_id": id(number), "prompt_versions": [{ "name": "p", "version": "1" }] });
        walk.post("traces/link-prompts", prompts).await;
    }
    let one = format!("{all}/{{trace_id={}}}", id(1));
    let get = |path: String| (format!("GET {path}"), json!({}));
    let ask = |path: &str, body: Value| (format!("POST {all}/{path}"), body);
    let place = json!([{ "type": "MLFLOW_EXPERIMENT", "mlflow_experiment": { "experiment_id": "0" } }]);
    let search = |filter: &str| ask("search", json!({ "locations": place, "filter": filter }));
    let figure = |view: &str, metric: &str, aggregation: &str| {
        let aggregations = json!([{ "aggregation_type": aggregation }]);
        let asked =
            json!({ "experiment_ids": ["0"], "view_type": view, "metric_name": metric, "aggregations": aggregations });
        ask("metrics", asked)
    };
    let first = id(1);
    let filters = ["status = 'OK'", "feedback.good = 'true'"];
    let correlation = json!({ "experiment_ids": ["0"], "filter_string1": filters[0], "filter_string2": filters[1] });
    let old_search = json!({ "experiment_ids": ["0"], "order_by": ["name"] });
    let reads = vec![
        get(one.clone()),
        get(format!("{V2}/traces/{{request_id={first}}}/info")),
        get(format!("{all}/get?trace_id={first}")),
        get(format!("{all}/batchGet?trace_ids={first}&trace_ids={}", id(2))),
        ask("batchGetInfos", json!({ "trace_ids": [first, id(2)] })),
        get(format!("{one}/assessments/{{assessment_id=good}}")),
        get(format!("/ajax-api/2.0/mlflow/get-trace-artifact?request_id={first}")),
        get(format!("/ajax-api/3.0/mlflow/get-trace-artifact?request_id={first}")),
        search(""),
        search("tag.short = 's' AND attributes.run_id != 'x' AND prompt = 'p/1'"),
        search(&format!("attributes.run_id = '{run}'")),
        search("span.name = 'step 2'"),
        search("feedback.whole = 'true'"),
        search("feedback.n IS NULL AND span.name = 'x'"),
        search("client_request_id = 'c'"),
        (format!("GET {V2}/traces"), old_search),
        figure("TRACES", "trace_count", "COUNT"),
        figure("TRACES", "latency", "AVG"),
        figure("SPANS", "span_count", "COUNT"),
        figure("ASSESSMENTS", "assessment_count", "COUNT"),
        ask("calculate-filter-correlation", correlation),
    ];
    walk.read(reads).await;
}
