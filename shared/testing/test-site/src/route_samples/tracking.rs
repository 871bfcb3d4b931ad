//! Samples of tracking.

use serde_json::{Value, json};

use crate::route_samples::sample_client::{AJAX_V2, SampleClient, V2, ask, text};

pub(crate) async fn writes(walk: &mut SampleClient) {
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

async fn of_a_run(walk: &mut SampleClient, run: &str) {
    walk.post("runs/update", json!({ "run_id": run, "status": "FINISHED", "end_time": 2, "run_name": "two" })).await;
    // Logs more points of a metric than the ten that are enough for a segment.
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

async fn of_a_logged_model(walk: &mut SampleClient, experiment: &str, run: &str) {
    let new = json!({
        "experiment_id": experiment, "name": "model", "source_run_id": run,
        "params": [{ "key": "a", "value": "1" }], "tags": [{ "key": "drop", "value": "x" }],
    });
    let created = walk.post("logged-models", new).await;
    let model = text(&created, "/model/info/model_id");
    let one = "/api/2.0/mlflow/logged-models/{model_id}";
    let model = model.as_str();
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

/// Creates an experiment with all kinds of content, and sends the requests that read it.
pub(crate) async fn reads(walk: &mut SampleClient) {
    let long = "x".repeat(3_000);
    let tags = json!([{ "key": "short", "value": "s" }, { "key": "long", "value": long }]);
    let new = json!({ "name": "e", "tags": tags });
    let experiment = text(&walk.post("experiments/create", new).await, "/experiment_id");
    let mut runs = Vec::new();
    for start in 1..3 {
        let new = json!({ "experiment_id": experiment, "start_time": start, "tags": tags, "run_name": "n" });
        let run = text(&walk.post("runs/create", new).await, "/run/info/run_id");
        let points: Vec<_> =
            (0..60).map(|step| json!({ "key": "loss", "value": step, "timestamp": step, "step": step })).collect();
        let batch = json!({ "run_id": run, "metrics": points, "params": tags });
        walk.post("runs/log-batch", batch).await;
        let dataset = json!({ "name": "d", "digest": "1", "source_type": "local", "source": "s", "schema": "{}" });
        let datasets = json!([{ "dataset": dataset, "tags": [{ "key": "mlflow.data.context", "value": "train" }] }]);
        let inputs = json!({ "run_id": run, "datasets": datasets, "models": [{ "model_id": "m-in" }] });
        walk.post("runs/log-inputs", inputs).await;
        let outputs = json!({ "run_id": run, "models": [{ "model_id": "m-out", "step": 1 }] });
        walk.post("runs/outputs", outputs).await;
        let update = json!({ "run_id": run, "status": "FINISHED", "end_time": 9 });
        walk.post("runs/update", update).await;
        runs.push(run);
    }
    let new =
        json!({ "experiment_id": experiment, "name": "m", "source_run_id": runs[0], "params": tags, "tags": tags });
    let model = text(&walk.post("logged-models", new).await, "/model/info/model_id");
    let points: Vec<_> = (0..900)
        .map(|step| json!({ "key": "auc", "value": step, "timestamp": step, "step": step, "model_id": model }))
        .collect();
    walk.post("runs/log-batch", json!({ "run_id": runs[0], "metrics": points })).await;
    let run = &runs[0];
    let with = |fields: Value| {
        let mut body = json!({ "experiment_ids": [experiment] });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    let get = |path: String| (format!("GET {path}"), json!({}));
    let post = |path: &str, body: Value| (format!("POST {V2}/{path}"), body);
    let search = |fields: Value| post("runs/search", with(fields));
    let models = |fields: Value| post("logged-models/search", with(fields));
    let reads = vec![
        get(format!("{V2}/experiments/get?experiment_id={experiment}")),
        get(format!("{V2}/experiments/get-by-name?experiment_name=e")),
        get(format!("{V2}/experiments/search?max_results=100")),
        post("experiments/search", json!({ "max_results": 100 })),
        post("experiments/search", json!({ "max_results": 100, "filter": "tags.short = 's'" })),
        (format!("POST {AJAX_V2}/experiments/search-datasets"), with(json!({}))),
        get(format!("{V2}/runs/get?run_id={run}")),
        search(json!({})),
        search(json!({ "filter": "params.short = 's' AND metrics.loss > 1" })),
        search(json!({ "filter": "attributes.status = 'FINISHED'" })),
        search(json!({ "filter": "datasets.name = 'd'" })),
        search(json!({ "order_by": ["metrics.loss DESC"] })),
        search(json!({ "order_by": ["attributes.end_time DESC"] })),
        get(format!("{V2}/metrics/get-history?run_id={run}&metric_key=loss")),
        get(format!("{V2}/metrics/get-history?run_id={run}&metric_key=loss&max_results=20")),
        get(format!("{V2}/metrics/get-history-bulk-interval?run_ids={run}&metric_key=loss&max_results=7")),
        get(format!("{AJAX_V2}/metrics/get-history-bulk?run_id={run}&metric_key=loss")),
        get(format!("{V2}/logged-models/{{model_id={model}}}")),
        models(json!({})),
        models(json!({ "filter": "name = 'm'" })),
        models(json!({ "filter": "metrics.auc > 1" })),
    ];
    walk.read(reads).await;
    files_of_a_model(walk).await;
    for path in ["/health", "/version", "/api/3.0/mlflow/server-info", "/ajax-api/3.0/mlflow/ui-telemetry"] {
        walk.send(&format!("GET {path}"), &[], json!({})).await;
    }
    walk.send("POST /ajax-api/3.0/mlflow/ui-telemetry", &[], json!({})).await;
}

/// Reads the files of a logged model.
async fn files_of_a_model(walk: &mut SampleClient) {
    let model = with_a_file(walk, "files of a model").await;
    let files = format!("{V2}/logged-models/{{model_id}}/artifacts/directories");
    walk.send(&format!("GET {files}"), &[&model], json!({})).await;
    let file = format!("GET {AJAX_V2}/logged-models/{{model_id}}/artifacts/files");
    walk.send_with(&file, &[&model], "?artifact_file_path=x", json!({}), 200).await;
}

/// Creates a logged model with a file `x` that the server keeps. Returns its id.
pub(crate) async fn with_a_file(walk: &mut SampleClient, name: &str) -> String {
    let new = json!({ "name": name, "artifact_location": format!("mlflow-artifacts:/{}", name.replace(' ', "-")) });
    let experiment = text(&walk.post("experiments/create", new).await, "/experiment_id");
    let created = walk.post("logged-models", json!({ "experiment_id": experiment, "name": "m" })).await;
    let place = text(&created, "/model/info/artifact_uri").replace("mlflow-artifacts:/", "");
    let put = format!("PUT /api/2.0/mlflow-artifacts/artifacts/{}/x", place.trim_start_matches('/'));
    let (method, path) = put.split_once(' ').unwrap();
    assert_eq!(ask(&walk.router, method, path, &json!("file")).await.0, 200, "{put}");
    text(&created, "/model/info/model_id")
}

/// Creates an experiment with a tag. Returns its id.
pub(crate) async fn experiment(walk: &mut SampleClient, name: &str) -> String {
    let tags = json!([{ "key": "team", "value": "a" }]);
    let created = walk.post("experiments/create", json!({ "name": name, "tags": tags })).await;
    text(&created, "/experiment_id")
}

/// Creates a run with a tag. Returns its id.
pub(crate) async fn run(walk: &mut SampleClient, experiment: &str) -> String {
    let tags = json!([{ "key": "kind", "value": "test" }]);
    let new = json!({ "experiment_id": experiment, "run_name": "one", "start_time": 1, "tags": tags });
    text(&walk.post("runs/create", new).await, "/run/info/run_id")
}
