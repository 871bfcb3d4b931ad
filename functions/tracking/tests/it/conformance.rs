//! Calls all endpoints, over each kind of connection to an engine.

use std::time::{SystemTime, UNIX_EPOCH};

use embedded_engine::limits::{EngineLimits, Throughput};
use embedded_engine::{Engine, client_for_endpoint};
use serde_json::{Value, json};
use table::Table;
use test_site::TABLE;

use crate::server::{ROOT, Server, Site, by_key, points, run_ids};

#[tokio::test]
async fn in_process() {
    walk(&Site::new().await.server).await;
}

#[tokio::test]
async fn over_a_loopback_port() {
    let engine = Engine::memory().unwrap();
    let port = engine.serve(([127, 0, 0, 1], 0)).await.unwrap();
    walk(&fresh(Table::new(port.client(), TABLE)).await).await;
    port.shutdown().await.unwrap();
}

/// Runs over an engine with DynamoDB's limits, which engines usually do not enforce.
#[tokio::test]
async fn within_the_limits_of_dynamodb() {
    let limits = EngineLimits::new(&Engine::memory().unwrap());
    limits.set_throughput(|_| Some(Throughput::PARTITION_MAX));
    limits.set_collection_limit(|_| Some(10 << 30));
    walk(&fresh(Table::new(limits.client(), TABLE)).await).await;
    let usage = limits.usage();
    assert!(usage.values().any(|usage| usage.write_units > 10.0), "{usage:?}");
    assert!(usage.values().all(|usage| usage.throttled_reads + usage.throttled_writes == 0), "{usage:?}");
}

/// Runs over DynamoDB itself, or another engine. The table is deleted afterwards, regardless of the
/// outcome.
#[tokio::test]
#[ignore = "needs an AWS account: make test-dynamodb"]
async fn over_dynamodb() {
    let client = match std::env::var("TEST_DYNAMODB_ENDPOINT") {
        Ok(endpoint) if std::env::var_os("AWS_ACCESS_KEY_ID").is_none() => client_for_endpoint(&endpoint),
        endpoint => table::client(endpoint.ok()).await.unwrap(),
    };
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let name = format!("mlflow-test-{}-{}", std::process::id(), since.as_nanos());
    let table = Table::new(client.clone(), &name);
    let outcome = tokio::spawn(async move { walk(&fresh(table).await).await }).await;
    client.delete_table().table_name(name).send().await.unwrap();
    outcome.unwrap();
}

async fn fresh(table: Table) -> Server {
    table.create_if_missing().await.unwrap();
    Server::on(&table, std::time::Duration::from_millis(20)).await
}

async fn walk(server: &Server) {
    let experiment = experiments(server).await;
    let run = runs(server, &experiment).await;
    params_and_tags(server, &run).await;
    metrics(server, &run).await;
    searches(server, &experiment, &run).await;
    outputs_and_models(server, &run).await;
    run_lifecycle(server, &experiment, &run).await;
    experiment_lifecycle(server, &experiment, &run).await;
    others(server).await;
}

async fn experiment_of(server: &Server, id: &str) -> Value {
    server.get("experiments/get", &[("experiment_id", id)]).await.ok()["experiment"].clone()
}

async fn experiments(server: &Server) -> String {
    let default = experiment_of(server, "0").await;
    assert_eq!((&default["name"], &default["lifecycle_stage"]), (&json!("Default"), &json!("active")));
    let tags = json!([{ "key": "team", "value": "a" }, { "key": "drop", "value": "b" }]);
    let created = server.post("experiments/create", json!({ "name": "first", "tags": tags })).await.ok();
    let id = created["experiment_id"].as_str().unwrap();
    let found = experiment_of(server, id).await;
    assert_eq!(found["artifact_location"], format!("{ROOT}/{id}"));
    assert_eq!(by_key(&found["tags"]).len(), 2);

    let tag = json!({ "experiment_id": id, "key": "team", "value": "c" });
    server.post("experiments/set-experiment-tag", tag).await.ok();
    let tag = json!({ "experiment_id": id, "key": "drop" });
    server.post("experiments/delete-experiment-tag", tag.clone()).await.ok();
    server.post("experiments/delete-experiment-tag", tag).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
    server.post("experiments/update", json!({ "experiment_id": id, "new_name": "renamed" })).await.ok();
    let found = server.get("experiments/get-by-name", &[("experiment_name", "renamed")]).await.ok();
    assert_eq!(found["experiment"]["experiment_id"], id);
    assert_eq!(found["experiment"]["tags"], json!([{ "key": "team", "value": "c" }]));
    let old = server.get("experiments/get-by-name", &[("experiment_name", "first")]).await;
    old.refused(404, "RESOURCE_DOES_NOT_EXIST");

    for number in 0..4 {
        server.experiment(&format!("other {number}")).await;
    }
    let search = json!({ "max_results": 2, "filter": "name LIKE 'other%'", "order_by": ["name ASC"] });
    let page = server.post("experiments/search", search.clone()).await.ok();
    assert_eq!(names(&page), ["other 0", "other 1"]);
    let mut next = search;
    next["page_token"] = page["next_page_token"].clone();
    assert_eq!(names(&server.post("experiments/search", next).await.ok()), ["other 2", "other 3"]);
    let all = server.get("experiments/search", &[("max_results", "100")]).await.ok();
    assert_eq!(names(&all).len(), 6);
    id.to_owned()
}

fn names(page: &Value) -> Vec<String> {
    let experiments = page["experiments"].as_array().map(Vec::as_slice).unwrap_or_default();
    experiments.iter().map(|experiment| experiment["name"].as_str().unwrap().to_owned()).collect()
}

async fn runs(server: &Server, experiment: &str) -> String {
    let new = json!({
        "experiment_id": experiment, "user_id": "ada", "run_name": "one", "start_time": 1_000,
        "tags": [{ "key": "kind", "value": "test" }],
    });
    let run = server.post("runs/create", new).await.ok()["run"].clone();
    let id = run["info"]["run_id"].as_str().unwrap();
    assert_eq!(run["info"]["status"], "RUNNING");
    assert_eq!(run["info"]["artifact_uri"], format!("{ROOT}/{experiment}/{id}/artifacts"));
    let update = json!({ "run_id": id, "status": "FINISHED", "end_time": 2_000, "run_name": "two" });
    let info = server.post("runs/update", update).await.ok()["run_info"].clone();
    assert_eq!((&info["status"], &info["end_time"]), (&json!("FINISHED"), &json!(2_000)));
    let found = server.run_of(id).await;
    assert_eq!(found["info"], info);
    assert_eq!(by_key(&found["data"]["tags"])["mlflow.runName"], "two");
    server.get("runs/get", &[("run_id", "nobody")]).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
    id.to_owned()
}

async fn params_and_tags(server: &Server, run: &str) {
    server.log_param(run, "rate", "0.1").await.ok();
    server.log_param(run, "rate", "0.1").await.ok();
    server.log_param(run, "rate", "0.2").await.refused(400, "INVALID_PARAMETER_VALUE");
    server.set_tag(run, "drop", "x").await.ok();
    let tag = json!({ "run_id": run, "key": "drop" });
    server.post("runs/delete-tag", tag.clone()).await.ok();
    server.post("runs/delete-tag", tag).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
    let batch = json!({
        "run_id": run,
        "metrics": [{ "key": "loss", "value": 0.5, "timestamp": 10, "step": 1 }],
        "params": [{ "key": "depth", "value": "3" }],
        "tags": [{ "key": "kind", "value": "batch" }],
    });
    server.post("runs/log-batch", batch).await.ok();
    let params = server.data(run, "params").await;
    assert_eq!((&params["rate"], &params["depth"], params.len()), (&json!("0.1"), &json!("3"), 2));
    let tags = server.data(run, "tags").await;
    assert_eq!((&tags["kind"], tags.len()), (&json!("batch"), 2));
}

async fn metrics(server: &Server, run: &str) {
    for step in 2..14 {
        server.log_metric(run, "loss", (10 * step, step, 1.0)).await.ok();
    }
    let bulk: Vec<_> = (14..40).map(|step| ("loss", (10 * step, step, 2.0))).collect();
    server.log_points(run, &bulk).await.ok();
    server.log_metric(run, "loss", (400, 40, f64::NAN)).await.ok();
    let history = server.history(run, "loss").await;
    assert_eq!(history.iter().map(|point| point.1).collect::<Vec<_>>(), (1..=40).collect::<Vec<_>>());
    assert!(history[39].2.is_nan());
    assert_eq!(server.data(run, "metrics").await["loss"]["step"], 40);
    assert_eq!(server.history(run, "nothing").await, []);

    let page = [("run_id", run), ("metric_key", "loss"), ("max_results", "25")];
    let first = server.get("metrics/get-history", &page).await.ok();
    let token = first["next_page_token"].as_str().unwrap();
    let second = server.get("metrics/get-history", &[&page[..], &[("page_token", token)]].concat()).await.ok();
    assert_eq!((points(&first).len(), points(&second).len()), (25, 15));
    assert_eq!(second["next_page_token"], Value::Null);

    let bulk = [("run_id", run), ("metric_key", "loss"), ("max_results", "7")];
    let bulk = server.get_at("/ajax-api/2.0/mlflow/metrics/get-history-bulk", &bulk).await.ok();
    assert_eq!((points(&bulk).len(), &bulk["metrics"][0]["run_id"]), (7, &json!(run)));
    let sample = [("run_ids", run), ("metric_key", "loss"), ("max_results", "4")];
    let sample = server.get("metrics/get-history-bulk-interval", &sample).await.ok();
    assert_eq!(points(&sample).iter().map(|point| point.1).collect::<Vec<_>>(), [1, 11, 21, 40]);
}

async fn searches(server: &Server, experiment: &str, run: &str) {
    let other = server.run_at(experiment, 500).await;
    let search = |filter: &str, order: &str| {
        let order_by = if order.is_empty() { json!([]) } else { json!([order]) };
        json!({ "experiment_ids": [experiment], "filter": filter, "order_by": order_by, "max_results": 10 })
    };
    for (filter, order, expected) in [
        ("", "", vec![run, &other]),
        ("", "start_time ASC", vec![&other, run]),
        ("params.rate = '0.1'", "", vec![run]),
        ("tags.kind LIKE 'b%' AND metrics.loss != 3", "", vec![run]),
        ("attributes.status = 'RUNNING'", "", vec![&other]),
        ("attributes.run_name = 'nothing'", "", vec![]),
    ] {
        assert_eq!(server.search(search(filter, order)).await, expected, "{filter} {order}");
    }
    let mut page = search("", "");
    page["max_results"] = 1.into();
    assert_eq!(server.search(page).await, [run, &other]);
}

async fn outputs_and_models(server: &Server, run: &str) {
    let models = json!({ "run_id": run, "models": [{ "model_id": "m-1", "step": 3 }, { "model_id": "m-2" }] });
    server.post("runs/outputs", models.clone()).await.ok();
    server.post("runs/outputs", models).await.ok();
    let expected = json!([{ "model_id": "m-1", "step": 3 }, { "model_id": "m-2", "step": 0 }]);
    assert_eq!(server.run_of(run).await["outputs"]["model_outputs"], expected);
    let model = json!({ "artifact_path": "p", "flavors": { "x": {} }, "run_id": run, "utc_time_created": "now" });
    let record = json!({ "run_id": run, "model_json": model.to_string() });
    server.post("runs/log-model", record.clone()).await.ok();
    server.post("runs/log-model", record).await.ok();
    let history = server.data(run, "tags").await["mlflow.log-model.history"].clone();
    let history: Value = serde_json::from_str(history.as_str().unwrap()).unwrap();
    assert_eq!(history.as_array().unwrap().len(), 1);
}

async fn run_lifecycle(server: &Server, experiment: &str, run: &str) {
    server.post("runs/delete", json!({ "run_id": run })).await.ok();
    server.log_metric(run, "loss", (1, 1, 1.0)).await.refused_as_deleted();
    server.log_param(run, "new", "1").await.refused_as_deleted();
    assert_eq!(server.run_of(run).await["info"]["lifecycle_stage"], "deleted");
    for (view, count) in [("ACTIVE_ONLY", 1), ("DELETED_ONLY", 1), ("ALL", 2)] {
        let search = json!({ "experiment_ids": [experiment], "run_view_type": view });
        assert_eq!(run_ids(&server.post("runs/search", search).await.ok()).len(), count, "{view}");
    }
    server.post("runs/restore", json!({ "run_id": run })).await.ok();
    server.log_metric(run, "loss", (1, 1, 1.0)).await.ok();
}

async fn experiment_lifecycle(server: &Server, experiment: &str, run: &str) {
    let id = json!({ "experiment_id": experiment });
    server.post("experiments/delete", id.clone()).await.ok();
    server.post("experiments/delete", id.clone()).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
    assert_eq!(experiment_of(server, experiment).await["lifecycle_stage"], "deleted");
    assert_eq!(server.run_of(run).await["info"]["lifecycle_stage"], "deleted");
    server.post("runs/create", id.clone()).await.refused_as_deleted();
    server.set_tag(run, "a", "b").await.refused_as_deleted();
    let rename = json!({ "experiment_id": experiment, "new_name": "again" });
    server.post("experiments/update", rename).await.refused(500, "INVALID_STATE");
    let deleted = server.post("experiments/search", json!({ "view_type": "DELETED_ONLY", "max_results": 9 })).await;
    assert_eq!(names(&deleted.ok()), ["renamed"]);
    server.post("experiments/restore", id).await.ok();
    assert_eq!(server.run_of(run).await["info"]["lifecycle_stage"], "active");
    server.set_tag(run, "a", "b").await.ok();
}

async fn others(server: &Server) {
    assert_eq!(server.get_at("/health", &[]).await.ok(), "OK");
    assert_eq!(server.get_at("/version", &[]).await.ok(), tracking::VERSION);
    let info = server.get_at("/api/3.0/mlflow/server-info", &[]).await.ok();
    assert_eq!(info["workspaces_enabled"], false);
    assert_eq!(server.get("nothing", &[]).await.status, 404);
}
