//! The UI's requests for features that this server does not have.

use http::{Request, StatusCode};
use serde_json::Value;

use crate::server::Site;

#[tokio::test]
async fn what_is_absent_is_empty_for_the_ui_and_missing_for_clients() {
    let site = Site::new().await;
    for row in tracking::ui_placeholders::routes() {
        let path = row.full_paths().remove(0);
        for (path, expected) in
            [(path.clone(), StatusCode::OK), (path.replace("/ajax-api/", "/api/"), StatusCode::NOT_FOUND)]
        {
            let request = Request::builder().method(row.method).uri(&path).body(axum::body::Body::empty()).unwrap();
            let answer = site.server.send(request).await;
            assert_eq!(answer.status, expected.as_u16(), "{path}");
            assert_eq!(matches!(answer.body, Value::Object(_)), expected == StatusCode::OK, "{path}");
        }
    }
}
