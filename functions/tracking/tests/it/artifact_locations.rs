//! Artifact locations that clients choose.

use std::sync::Arc;

use access::{Action, Resource, Visibility};
use artifact_store::ArtifactStore;
use serde_json::json;
use test_site::{TestAuthorizer, TestClient, TestEnvironment};

/// Checks that a relative location is resolved before it is checked, because it may refer to the
/// server's artifact storage, which the caller may not change.
#[tokio::test]
async fn a_relative_location_is_resolved_before_it_is_checked() {
    let site = TestEnvironment::new().await;
    let store = tracking::store::Store::new(site.table.clone(), "mlflow-artifacts:/");
    let store = store.with_artifacts(ArtifactStore::below("/srv/data/artifacts")).in_directory("/srv");
    let create_only = |ask: &access::AccessCheck| ask.action == Action::Create && ask.kind == Resource::Experiment;
    let judge = TestAuthorizer::of_asks(Visibility::Everything, create_only).looking();
    let api = TestClient(tracking::router(&store, Arc::new(judge)));
    for (location, status) in [
        ("data/artifacts/1", 403),
        ("./data//artifacts", 403),
        ("file:data/%61rtifacts/1", 403),
        ("file:./data/artifacts/1?x=y", 403),
        ("data/artifacts-2/1", 200),
        ("data", 200),
        // The server treats `..` as a plain name, so this location is not below its artifact
        // storage.
        ("data/artifacts/../x", 200),
    ] {
        let new = json!({ "name": location, "artifact_location": location });
        assert_eq!(api.post("experiments/create", new).await.status, status, "{location}");
    }
}
