//! Requests to the functions, without a socket.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use access::Authorizer;
use artifact_store::Artifacts;
use axum::Router;
use axum::body::{Body, to_bytes};
use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::Value;
use service::Frame;
use table::Table;
use tower::ServiceExt;

pub(crate) const ROOT: &str = "s3://bucket/artifacts";
pub(crate) const TABLE: &str = "mlflow";

/// The routers of the functions over a table, as in `serve`, but for artifacts, which have a place besides it.
pub(crate) fn functions(table: &Table) -> Router {
    let tracking = tracking::store::Store::new(table.clone(), ROOT);
    let registry = registry::store::Store::new(table.clone(), ROOT);
    let evaluation = evaluation::store::Store::new(table.clone());
    let frames = (Frame::new(tracking.clone()), Frame::new(registry.clone()));
    let graphql = graphql::Store::new(table.clone(), &frames.0, &frames.1).unwrap();
    let traces = traces::store::Store::new(table.clone(), Artifacts::below(ROOT));
    let others = [
        evaluation::router(&evaluation),
        registry::router(&registry),
        traces::router(&traces),
        graphql::router(&graphql),
    ];
    service::joined(tracking::router(&tracking), others)
}

/// The routers of the functions over a table, with artifacts in a directory, as in `serve`, for callers whom this authorizer admits.
pub(crate) fn guarded(table: &Table, directory: &Path, authorizer: &Arc<dyn Authorizer>) -> Router {
    fn frame<S: service::Store>(store: S, authorizer: &Arc<dyn Authorizer>) -> Frame<S> {
        Frame::guarded(store, Arc::clone(authorizer))
    }
    let files = Artifacts::in_directory(directory);
    let tracking = tracking::store::Store::new(table.clone(), ROOT).with_artifacts(files.clone());
    let tracking = frame(tracking, authorizer);
    let registry = registry::store::Store::new(table.clone(), ROOT).with_artifacts(files.clone());
    let registry = frame(registry, authorizer);
    let evaluation = frame(evaluation::store::Store::new(table.clone()), authorizer);
    let traces = frame(traces::store::Store::new(table.clone(), files.clone()), authorizer);
    let artifacts = frame(artifacts::store::Store::new(table.clone(), files), authorizer);
    let graphql = graphql::Store::new(table.clone(), &tracking, &registry).unwrap().with_artifacts(&artifacts);
    let others = [
        service::router(evaluation::routes(), &evaluation),
        service::router(registry::routes(), &registry),
        service::router(traces::routes(), &traces),
        service::router(artifacts::routes(), &artifacts),
        service::router(graphql::routes(), &frame(graphql, authorizer)),
    ];
    service::joined(service::router(tracking::routes(), &tracking), others)
}

/// Sends requests one after another, and remembers to which endpoints.
pub(crate) struct Walk {
    pub(crate) router: Router,
    /// Method and path, as the route tables have them.
    pub(crate) endpoints: BTreeSet<String>,
}

impl Walk {
    pub(crate) fn new(router: Router) -> Self {
        Self { router, endpoints: BTreeSet::new() }
    }

    /// Sends a request that succeeds to an endpoint such as `DELETE /api/3.0/mlflow/datasets/{dataset_id}`, these ids in its path.
    pub(crate) async fn send(&mut self, endpoint: &str, ids: &[&str], body: Value) -> Value {
        self.endpoints.insert(endpoint.to_owned());
        let (method, template) = endpoint.split_once(' ').unwrap();
        let mut ids = ids.iter();
        let mut path = String::new();
        for part in template.split('/').skip(1) {
            let part = if part.starts_with('{') { ids.next().unwrap() } else { part };
            write!(path, "/{part}").unwrap();
        }
        let (status, answer) = send(&self.router, method, &path, &body).await;
        assert_eq!(status, 200, "{method} {path}: {answer}");
        answer
    }

    /// The same, with an endpoint of the tracking API below `/api/2.0/mlflow/`.
    pub(crate) async fn post(&mut self, path: &str, body: Value) -> Value {
        self.send(&format!("POST /api/2.0/mlflow/{path}"), &[], body).await
    }
}

/// Status and body of the answer to a request.
pub(crate) async fn send(router: &Router, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
    // Spans name their experiment in a header.
    let request = if path == "/v1/traces" { request.header("x-mlflow-experiment-id", "0") } else { request };
    let request = request.body(Body::from(body.to_string())).unwrap();
    let answer = router.clone().oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}
