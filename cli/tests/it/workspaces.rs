//! A server without workspaces refuses every request that names one.

use axum::Router;
use axum::body::{Body, to_bytes};
use domain::{EndpointInfo, Environment, UiFiles};
use domains::DOMAINS;
use embedded_engine::Engine;
use http::Request;
use serde_json::Value;
use table::Table;
use test_site::everybody;
use tower::ServiceExt;

use crate::test_server::{ROOT, TABLE};

/// Returns the method and path of each row, with a text in place of each parameter.
fn calls() -> Vec<(&'static str, String)> {
    let filled = |path: String| -> String {
        let part = |part: &str| match part.split_once('{') {
            Some((before, _)) => format!("{before}x"),
            None => part.to_owned(),
        };
        path.split('/').map(part).collect::<Vec<_>>().join("/")
    };
    let endpoints = DOMAINS.iter().flat_map(|domain| (domain.endpoints)());
    let of_row = |endpoint: EndpointInfo| endpoint.paths.into_iter().map(move |path| (endpoint.method, filled(path)));
    endpoints.flat_map(of_row).collect()
}

async fn answer(app: &Router, method: &str, path: &str, workspace: &str) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("X-MLFLOW-WORKSPACE", workspace);
    let answer = app.clone().oneshot(request.body(Body::from("{}")).unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_path_refuses_a_request_that_names_a_workspace() {
    let engine = Engine::memory().unwrap();
    let table = Table::new(engine.client(), TABLE);
    table.create_if_missing().await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let files = artifact_store::ArtifactStore::in_directory(directory.path());
    let around = Environment::new(everybody(), table.clone()).with_artifacts(ROOT, files);
    let ui = UiFiles { directory: Some(directory.path().to_owned()), bucket: None };
    let app = domain::mount(&DOMAINS, &[], &Environment { ui: Some(ui), ..around }).await.unwrap();
    let mut all = calls();
    let others = ["/", "/static-files/x.js", "/api/2.0/mlflow/no/such/path"];
    all.extend(others.map(|path| ("GET", path.to_owned())));
    assert!(all.len() > 200, "{}", all.len());
    for (method, path) in &all {
        let (status, body) = answer(&app, method, path, "team-a").await;
        if path.ends_with("/mlflow/server-info") {
            assert_eq!(status, 200, "{path}");
            continue;
        }
        assert_eq!((status, body["error_code"].as_str()), (501, Some("FEATURE_DISABLED")), "{method} {path}");
        let message = "Workspace APIs are not available: workspaces are not enabled on this server";
        assert_eq!((&body["message"], &body["error_class"]), (&message.into(), &"FEATURE_DISABLED".into()));
        assert_eq!(body["sqlstate"], "KAM00");
    }
    assert_eq!(engine.items(TABLE).await.unwrap(), Vec::<Value>::new());
    assert_eq!(answer(&app, "GET", "/health", " ").await.0, 200);
}
