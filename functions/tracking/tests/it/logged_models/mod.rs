//! Logged models.

mod metrics;
mod rejected_requests;
mod searches;
mod writes;

use std::collections::BTreeMap;

use axum::body::Body;
use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::calls::ModelPoint;
use crate::server::{Server, TestResponse};

pub(crate) async fn call(server: &Server, method: &str, path: &str, body: Value) -> TestResponse {
    let request = Request::builder().method(method).uri(format!("/api/2.0/mlflow/logged-models{path}"));
    let request = request.header(CONTENT_TYPE, "application/json").body(Body::from(body.to_string()));
    server.send(request.unwrap()).await
}

pub(crate) async fn create(server: &Server, new: Value) -> String {
    let model = call(server, "POST", "", new).await.ok();
    model["model"]["info"]["model_id"].as_str().unwrap().to_owned()
}

async fn read(server: &Server, model: &str) -> Value {
    let found = server.get(&format!("logged-models/{model}"), &[("allow_deleted", "true")]).await.ok();
    found["model"].clone()
}

async fn set_tags(server: &Server, model: &str, tags: Value) -> TestResponse {
    call(server, "PATCH", &format!("/{model}/tags"), json!({ "tags": tags })).await
}

async fn log_params(server: &Server, model: &str, params: Value) -> TestResponse {
    call(server, "POST", &format!("/{model}/params"), json!({ "model_id": model, "params": params })).await
}

/// Returns the names of the models on each page of a search.
async fn pages(server: &Server, mut search: Value) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    loop {
        let page = call(server, "POST", "/search", search.clone()).await.ok();
        let models = page["models"].as_array().map(Vec::as_slice).unwrap_or_default();
        pages.push(models.iter().map(|model| model["info"]["name"].as_str().unwrap().to_owned()).collect());
        match page["next_page_token"].as_str() {
            Some(token) => search["page_token"] = token.into(),
            None => return pages,
        }
    }
}

async fn names(server: &Server, search: Value) -> Vec<String> {
    pages(server, search).await.concat()
}

fn point(model: &str, key: &str, (timestamp, step, value): (i64, i64, f64)) -> ModelPoint {
    ModelPoint {
        model: model.to_owned(),
        key: key.to_owned(),
        value,
        timestamp,
        step,
        run_id: "0123456789abcdef0123456789abcdef".to_owned(),
        ..ModelPoint::default()
    }
}

/// Returns the steps of each metric of a model, as a client reads them. Duplicates are not removed,
/// so that tests notice them.
async fn steps(server: &Server, model: &str) -> BTreeMap<String, Vec<i64>> {
    let mut steps: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for metric in read(server, model).await["data"]["metrics"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let of_metric = steps.entry(metric["key"].as_str().unwrap().to_owned()).or_default();
        of_metric.push(metric["step"].as_i64().unwrap());
    }
    steps
}
