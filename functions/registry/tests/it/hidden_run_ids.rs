//! Ids of runs are hidden from callers who may not read runs.

use std::sync::Arc;

use access::{Resource, Visibility};
use serde_json::{Value, json};
use test_site::{TestAuthorizer, TestClient, TestEnvironment};

/// Run ids are hidden from callers who may not see runs, including those in the sources of
/// versions.
#[tokio::test]
async fn a_source_that_names_a_run_is_hidden_with_the_run() {
    let site = TestEnvironment::new().await;
    let store = registry::store::Store::new(site.table.clone(), "s3://bucket/root");
    let all = TestClient(registry::router(&store, test_site::everybody()));
    let without_runs = TestAuthorizer::of_asks(Visibility::Everything, |ask| ask.kind != Resource::Run);
    let without_runs = TestClient(registry::router(&store, Arc::new(without_runs)));
    all.post("registered-models/create", json!({ "name": "m" })).await.ok();
    let run = "0123456789abcdef".repeat(2);
    for (number, source, is_hidden) in [
        ("1", format!("s3://elsewhere/1/{run}/artifacts/model"), true),
        ("2", format!("s3://elsewhere/{run}"), true),
        ("3", "s3://elsewhere/a/model".to_owned(), false),
    ] {
        all.post("model-versions/create", json!({ "name": "m", "source": source })).await.ok();
        let version = [("name", "m"), ("version", number)];
        let shown = async |api: &TestClient| {
            let of = |answer: Value, pointer: &str| {
                answer.pointer(pointer).map_or(Value::Null, |version| version["source"].clone())
            };
            let filter = format!("name = 'm' AND version_number = {number}");
            [
                of(api.get("model-versions/get", &version).await.ok(), "/model_version"),
                of(api.get("model-versions/search", &[("filter", &filter)]).await.ok(), "/model_versions/0"),
                of(api.get("registered-models/get", &version[..1]).await.ok(), "/registered_model/latest_versions/0"),
            ]
        };
        assert_eq!(shown(&all).await, [source.as_str(); 3]);
        let expected = if is_hidden { Value::Null } else { source.as_str().into() };
        assert_eq!(shown(&without_runs).await, [(); 3].map(|()| expected.clone()));
        // Filters must not allow a caller to guess the source.
        let filter = format!("source_path = '{source}'");
        assert_eq!(all.get("model-versions/search", &[("filter", &filter)]).await.status, 200);
        assert_eq!(without_runs.get("model-versions/search", &[("filter", &filter)]).await.status, 403);
    }
}
