//! One request and more to every endpoint that writes.

use serde_json::{Value, json};

use crate::site::{ROOT, Walk};

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no {pointer} in {value}"))
}

async fn experiment(walk: &mut Walk, name: &str) -> String {
    let tags = json!([{ "key": "team", "value": "a" }]);
    let created = walk.post("experiments/create", json!({ "name": name, "tags": tags })).await;
    text(&created, "/experiment_id").to_owned()
}

async fn run(walk: &mut Walk, experiment: &str) -> String {
    let new = json!({ "experiment_id": experiment, "run_name": "one", "start_time": 1, "tags": [{ "key": "kind", "value": "test" }] });
    text(&walk.post("runs/create", new).await, "/run/info/run_id").to_owned()
}

pub(crate) async fn of_tracking(walk: &mut Walk) {
    let first = experiment(walk, "first").await;
    let tag = json!({ "experiment_id": first, "key": "note", "value": "x".repeat(3_000) });
    walk.post("experiments/set-experiment-tag", tag).await;
    walk.post("experiments/delete-experiment-tag", json!({ "experiment_id": first, "key": "team" })).await;
    walk.post("experiments/update", json!({ "experiment_id": first, "new_name": "renamed" })).await;
    let run = run(walk, &first).await;
    of_a_run(walk, &run).await;
    of_a_logged_model(walk, &first, &run).await;
    walk.post("runs/delete", json!({ "run_id": run })).await;
    walk.post("runs/restore", json!({ "run_id": run })).await;
    walk.post("experiments/delete", json!({ "experiment_id": first })).await;
    walk.post("experiments/restore", json!({ "experiment_id": first })).await;
}

async fn of_a_run(walk: &mut Walk, run: &str) {
    walk.post("runs/update", json!({ "run_id": run, "status": "FINISHED", "end_time": 2, "run_name": "two" })).await;
    // The tenth point of a metric seals those before it.
    for step in 0..12 {
        let point = json!({ "run_id": run, "key": "loss", "value": 0.5, "timestamp": step, "step": step });
        walk.post("runs/log-metric", point).await;
    }
    walk.post("runs/log-parameter", json!({ "run_id": run, "key": "rate", "value": "0.1" })).await;
    walk.post("runs/set-tag", json!({ "run_id": run, "key": "drop", "value": "x" })).await;
    walk.post("runs/delete-tag", json!({ "run_id": run, "key": "drop" })).await;
    let batch = |step: i64| {
        let metrics: Value = (0..90)
            .map(|number| json!({ "key": format!("m{number}"), "value": number, "timestamp": step, "step": step }))
            .collect();
        let params: Value = (0..90)
            .map(|number| json!({ "key": format!("p{number}"), "value": "v".repeat(if number < 5 { 6_000 } else { 9 }) }))
            .collect();
        let tags: Value = (0..20).map(|number| json!({ "key": format!("t{number}"), "value": "v" })).collect();
        json!({ "run_id": run, "metrics": metrics, "params": params, "tags": tags })
    };
    for step in 0..2 {
        walk.post("runs/log-batch", batch(step)).await;
    }
    let points: Value =
        (0..500).map(|step| json!({ "key": "many", "value": step, "timestamp": step, "step": step })).collect();
    walk.post("runs/log-batch", json!({ "run_id": run, "metrics": points })).await;
    let model = json!({ "artifact_path": "p", "flavors": { "x": {} }, "run_id": run, "utc_time_created": "now" });
    walk.post("runs/log-model", json!({ "run_id": run, "model_json": model.to_string() })).await;
    let dataset =
        json!({ "name": "set", "digest": "d", "source_type": "local", "source": "s", "schema": "x".repeat(200_000) });
    let datasets = json!([{ "dataset": dataset, "tags": [{ "key": "mlflow.data.context", "value": "train" }] }]);
    walk.post("runs/log-inputs", json!({ "run_id": run, "datasets": datasets })).await;
    walk.post("runs/outputs", json!({ "run_id": run, "models": [{ "model_id": "m-1", "step": 3 }] })).await;
}

async fn of_a_logged_model(walk: &mut Walk, experiment: &str, run: &str) {
    let new = json!({
        "experiment_id": experiment, "name": "model", "source_run_id": run,
        "params": [{ "key": "a", "value": "1" }], "tags": [{ "key": "drop", "value": "x" }],
    });
    let created = walk.post("logged-models", new).await;
    let model = text(&created, "/model/info/model_id");
    let one = "/api/2.0/mlflow/logged-models/{model_id}";
    let ids = [model];
    let params = json!({ "model_id": model, "params": [{ "key": "long", "value": "x".repeat(5_000) }] });
    walk.send(&format!("POST {one}/params"), &ids, params).await;
    walk.send(&format!("PATCH {one}/tags"), &ids, json!({ "tags": [{ "key": "k", "value": "v" }] })).await;
    walk.send(&format!("DELETE {one}/tags/{{tag_key}}"), &[model, "drop"], json!({})).await;
    for step in 0..3 {
        let point =
            json!({ "run_id": run, "key": "auc", "value": 0.5, "timestamp": step, "step": step, "model_id": model });
        walk.post("runs/log-metric", point).await;
    }
    let ready = json!({ "model_id": model, "status": "LOGGED_MODEL_READY" });
    walk.send(&format!("PATCH {one}"), &ids, ready).await;
    walk.send(&format!("DELETE {one}"), &ids, json!({})).await;
}

pub(crate) async fn of_evaluation(walk: &mut Walk) {
    let all = "/api/3.0/mlflow/datasets";
    let one = format!("{all}/{{dataset_id}}");
    let new = json!({ "name": "questions", "experiment_ids": ["0"], "tags": json!({ "drop": "x" }).to_string() });
    let created = walk.send(&format!("POST {all}/create"), &[], new).await;
    let dataset = text(&created, "/dataset/dataset_id");
    let ids = [dataset];
    walk.send(&format!("PATCH {one}/tags"), &ids, json!({ "tags": json!({ "k": "v" }).to_string() })).await;
    walk.send(&format!("DELETE {one}/tags/{{key}}"), &[dataset, "drop"], json!({})).await;
    let records: Value =
        (0..120).map(|number| json!({ "inputs": { "n": number }, "outputs": "x".repeat(9) })).collect();
    let mut record = None;
    for _ in 0..2 {
        let merge = json!({ "records": records.to_string() });
        walk.send(&format!("POST {one}/records"), &ids, merge).await;
        let read = crate::site::send(&walk.router, "GET", &format!("{all}/{dataset}/records"), &json!({})).await.1;
        let read: Value = serde_json::from_str(text(&read, "/records")).unwrap();
        record = Some(text(&read, "/0/dataset_record_id").to_owned());
    }
    let deleted = json!({ "dataset_record_ids": [record] });
    walk.send(&format!("DELETE {one}/records"), &ids, deleted).await;
    let other = experiment(walk, "other").await;
    walk.send(&format!("POST {one}/add-experiments"), &ids, json!({ "experiment_ids": [other] })).await;
    walk.send(&format!("POST {one}/remove-experiments"), &ids, json!({ "experiment_ids": ["0"] })).await;
    walk.send(&format!("DELETE {one}"), &ids, json!({})).await;

    let all = "/api/3.0/mlflow/scorers";
    let named = json!({ "experiment_id": other, "name": "s" });
    for _ in 0..2 {
        let mut scorer = named.clone();
        scorer["serialized_scorer"] = json!({ "instructions_judge_pydantic_data": {}, "x": "y" }).to_string().into();
        walk.send(&format!("POST {all}/register"), &[], scorer).await;
    }
    let config = json!({ "experiment_id": other, "name": "s", "sample_rate": 0, "filter_string": "x" });
    walk.send(&format!("PUT {all}/online-config"), &[], config).await;
    walk.send(&format!("DELETE {all}/delete"), &[], named).await;
}

/// An export of a trace with two spans, the root and one below it, the first of which has this id.
pub(crate) fn export(trace: &str, first: u64) -> Value {
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

pub(crate) async fn of_traces(walk: &mut Walk) {
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
    let first = text(&created, "/assessment/assessment_id").to_owned();
    let mut other = feedback(false);
    other["overrides"] = first.into();
    let created = walk.send(&format!("POST {assessments}"), &ids, json!({ "assessment": other })).await;
    let second = [trace.as_str(), text(&created, "/assessment/assessment_id")];
    let change = json!({ "assessment": { "rationale": "why" }, "update_mask": "rationale" });
    walk.send(&format!("PATCH {assessments}/{{assessment_id}}"), &second, change).await;
    walk.send(&format!("DELETE {assessments}/{{assessment_id}}"), &second, json!({})).await;
    let run = run(walk, "0").await;
    // Of the second, which has not come, the link waits.
    let awaited = format!("tr-{:032x}", 77);
    walk.post("traces/link-to-run", json!({ "run_id": run, "trace_ids": [trace, awaited] })).await;
    let prompts = json!([{ "name": "p", "version": "1" }]);
    walk.post("traces/link-prompts", json!({ "trace_id": trace, "prompt_versions": prompts })).await;

    let entries = json!([{ "key": "k", "value": "v" }]);
    let new = json!({ "experiment_id": "0", "timestamp_ms": 5, "request_metadata": entries, "tags": entries });
    let started = walk.post("traces", new).await;
    let old = [text(&started, "/trace_info/request_id")];
    let ended = json!({ "timestamp_ms": 9, "status": "OK", "request_metadata": entries, "tags": entries });
    walk.send("PATCH /api/2.0/mlflow/traces/{request_id}", &old, ended).await;
    let named = json!({ "experiment_id": "0", "request_ids": [format!("tr-{}", digits(2))] });
    walk.post("traces/delete-traces", named).await;
    let until = json!({ "experiment_id": "0", "max_timestamp_millis": 1_700_000_000_000_i64 });
    walk.send(&format!("POST {all}/delete-traces"), &[], until).await;
}

pub(crate) async fn of_the_registry(walk: &mut Walk) {
    let models = "/api/2.0/mlflow/registered-models";
    let versions = "/api/2.0/mlflow/model-versions";
    walk.post("registered-models/create", json!({ "name": "old", "tags": [{ "key": "drop", "value": "x" }] })).await;
    walk.send(&format!("PATCH {models}/update"), &[], json!({ "name": "old", "description": "d" })).await;
    walk.post("registered-models/set-tag", json!({ "name": "old", "key": "k", "value": "x".repeat(4_000) })).await;
    walk.send(&format!("DELETE {models}/delete-tag"), &[], json!({ "name": "old", "key": "drop" })).await;
    for _ in 0..2 {
        let tags = json!([{ "key": "drop", "value": "x" }, { "key": "long", "value": "x".repeat(4_000) }]);
        let new = json!({ "name": "old", "source": format!("{ROOT}/model"), "tags": tags });
        walk.post("model-versions/create", new).await;
    }
    walk.post("registered-models/alias", json!({ "name": "old", "alias": "champion", "version": "1" })).await;
    walk.post("registered-models/rename", json!({ "name": "old", "new_name": "new" })).await;
    let first = json!({ "name": "new", "version": "1" });
    let with = |fields: Value| {
        let mut body = first.clone();
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    walk.send(&format!("PATCH {versions}/update"), &[], with(json!({ "description": "d" }))).await;
    let stage = with(json!({ "stage": "Production", "archive_existing_versions": true }));
    walk.post("model-versions/transition-stage", stage).await;
    walk.post("model-versions/set-tag", with(json!({ "key": "k", "value": "v" }))).await;
    walk.send(&format!("DELETE {versions}/delete-tag"), &[], with(json!({ "key": "drop" }))).await;
    walk.send(&format!("DELETE {models}/alias"), &[], json!({ "name": "new", "alias": "champion" })).await;
    walk.send(&format!("DELETE {versions}/delete"), &[], first.clone()).await;
    walk.send(&format!("DELETE {models}/delete"), &[], json!({ "name": "new" })).await;
}
