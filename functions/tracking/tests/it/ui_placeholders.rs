//! The UI's requests for features that this server does not have.

use http::{Request, StatusCode};
use serde_json::Value;

use crate::server::Site;

#[tokio::test]
async fn what_is_absent_is_empty_for_the_ui_and_missing_for_clients() {
    let site = Site::new().await;
    for row in tracking::ui_placeholders::routes() {
        let path = row.full_paths().remove(0);
        let is_gateway = path.contains("/gateway/");
        let of_clients = if is_gateway { StatusCode::NOT_IMPLEMENTED } else { StatusCode::NOT_FOUND };
        for (path, expected) in [(path.clone(), StatusCode::OK), (path.replace("/ajax-api/", "/api/"), of_clients)] {
            let request = Request::builder().method(row.method).uri(&path).body(axum::body::Body::empty()).unwrap();
            let answer = site.server.send(request).await;
            assert_eq!(answer.status, expected.as_u16(), "{path}");
            assert_eq!(matches!(answer.body, Value::Object(_)), expected != StatusCode::NOT_FOUND, "{path}");
        }
    }
}

#[tokio::test]
async fn features_that_are_switched_off_say_so() {
    let site = Site::new().await;
    for (method, path, status, field, message) in [
        ("POST", "/api/3.0/mlflow/gateway/endpoints/create", 501, "message", "The AI Gateway feature is disabled."),
        (
            "POST",
            "/gateway/gemini/v1beta/models/m:generateContent",
            501,
            "detail",
            "The AI Gateway feature is disabled.",
        ),
        ("POST", "/gateway/proxy/name/v1/some/path", 501, "detail", "The AI Gateway feature is disabled."),
        ("POST", "/gateway/name/mlflow/invocations", 501, "detail", "The AI Gateway feature is disabled."),
        ("POST", "/ajax-api/3.0/jobs/", 500, "detail", "Mlflow server job execution feature is not enabled"),
        ("GET", "/ajax-api/3.0/mlflow/jobs/a%20b", 404, "message", "Job with ID a b not found"),
        ("POST", "/ajax-api/3.0/mlflow/assistant/message", 403, "detail", "Assistant API is only accessible"),
    ] {
        let request = Request::builder().method(method).uri(path).body(axum::body::Body::from("not JSON")).unwrap();
        let answer = site.server.send(request).await;
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.body[field].as_str().unwrap().starts_with(message), "{path}: {}", answer.body);
    }
}
