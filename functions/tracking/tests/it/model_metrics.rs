//! Metrics that are logged to a run and to logged models in one call.

use serde_json::{Value, json};

use crate::server::{Server, Site};

async fn model(server: &Server, experiment: &str) -> String {
    let answer = server.post("logged-models", json!({ "experiment_id": experiment, "name": "m" })).await.ok();
    answer["model"]["info"]["model_id"].as_str().unwrap().to_owned()
}

async fn points(server: &Server, model: &str) -> Vec<(String, i64, f64)> {
    let answer = server.get(&format!("logged-models/{model}"), &[]).await.ok();
    let metrics = answer["model"]["data"]["metrics"].as_array().cloned().unwrap_or_default();
    let point = |metric: &Value| {
        let key = metric["key"].as_str().unwrap().to_owned();
        (key, metric["step"].as_i64().unwrap(), metric["value"].as_f64().unwrap())
    };
    let mut points: Vec<_> = metrics.iter().map(point).collect();
    points.sort_by(|a, b| a.partial_cmp(b).unwrap());
    points
}

fn metric(key: &str, step: i64, model: &str) -> Value {
    json!({ "key": key, "value": 0.5, "timestamp": 1_000 + step, "step": step, "model_id": model })
}

#[tokio::test]
async fn a_batch_with_many_points_of_several_models() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("measured").await;
    let run = server.run(&experiment).await;
    let models = [model(server, &experiment).await, model(server, &experiment).await];
    let metrics: Vec<_> =
        (0..40).map(|step| metric("loss", step, &models[usize::try_from(step % 2).unwrap()])).collect();
    let body = json!({ "run_id": run, "metrics": metrics });
    server.post("runs/log-batch", body.clone()).await.ok();
    server.post("runs/log-batch", body).await.ok();
    for (number, model) in (0..).zip(&models) {
        let expected: Vec<_> = (0..20).map(|step| ("loss".to_owned(), 2 * step + number, 0.5)).collect();
        assert_eq!(points(server, model).await, expected);
    }
    assert_eq!(server.history(&run, "loss").await.len(), 40);
}

#[tokio::test]
async fn what_is_refused_leaves_nothing() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("refused").await;
    let (run, deleted) = (server.run(&experiment).await, server.run(&experiment).await);
    server.post("runs/delete", json!({ "run_id": deleted })).await.ok();
    let model = model(server, &experiment).await;
    let unknown = model.replace("m-", "m-0");
    let before = site.dump().await;
    for id in [unknown.as_str(), "m-1", "not / an # id"] {
        let batch = json!({
            "run_id": run,
            "params": [{ "key": "p", "value": "v" }],
            "metrics": [metric("loss", 1, &model), metric("loss", 2, id)],
        });
        server.post("runs/log-batch", batch).await.refused(400, "BAD_REQUEST");
        let mut single = metric("loss", 3, id);
        single["run_id"] = run.clone().into();
        server.post("runs/log-metric", single).await.refused(400, "BAD_REQUEST");
    }
    let mut long = metric("loss", 1, &model);
    long["dataset_name"] = "d".repeat(501).into();
    long["dataset_digest"] = "e".into();
    let batch = json!({ "run_id": run, "metrics": [metric("loss", 1, &model), long] });
    server.post("runs/log-batch", batch).await.refused(400, "INVALID_PARAMETER_VALUE");
    let batch = json!({ "run_id": deleted, "metrics": [metric("loss", 1, &model)] });
    server.post("runs/log-batch", batch).await.refused_as_deleted();
    assert_eq!(site.dump().await, before);
}

#[tokio::test]
async fn points_survive_lost_answers() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("lost").await;
    let run = server.run(&experiment).await;
    let model = model(server, &experiment).await;
    site.faults.lose_answer_every(3);
    for step in 0..60 {
        let mut single = metric("loss", step, &model);
        single["run_id"] = run.clone().into();
        server.post("runs/log-metric", single).await.ok();
    }
    site.faults.lose_answer_every(0);
    assert_eq!(points(server, &model).await.len(), 60);
    assert_eq!(server.history(&run, "loss").await.len(), 60);
}
