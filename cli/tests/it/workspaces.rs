//! There is one workspace: whoever names any is refused, whatever he asks for.

use axum::Router;
use axum::body::{Body, to_bytes};
use embedded_engine::Engine;
use http::Request;
use serde_json::Value;
use service::{Route, Store};
use table::Table;
use tower::ServiceExt;

use crate::site::{TABLE, functions};

/// Method and path of each row, with something in the place of what paths name.
fn calls<S: Store>(routes: Vec<Route<S>>) -> Vec<(&'static str, String)> {
    let filled = |path: String| -> Vec<String> {
        path.split('/').map(|part| if part.starts_with('{') { "x".to_owned() } else { part.to_owned() }).collect()
    };
    let of_row = |route: Route<S>| {
        let paths = route.full_paths().into_iter();
        paths.map(move |path| (route.method, filled(path).join("/"))).collect::<Vec<_>>()
    };
    routes.into_iter().flat_map(of_row).collect()
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
    let files = artifact_store::Artifacts::in_directory(directory.path());
    let artifacts = artifacts::router(&artifacts::store::Store::new(table.clone(), files));
    let app = functions(&table).merge(artifacts.reset_fallback()).merge(ui::router(directory.path(), None));
    let mut all = calls(tracking::routes());
    all.extend(calls(evaluation::routes()));
    all.extend(calls(registry::routes()));
    all.extend(calls(traces::routes()));
    all.extend(calls(artifacts::routes()));
    all.extend(calls(graphql::routes()));
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
