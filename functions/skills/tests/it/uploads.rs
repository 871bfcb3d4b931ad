//! Tests of uploads: stored files, their deletion, and limits.

use artifact_store::ArtifactStore;
use mlflow_api::skills::ContentLimits;
use serde_json::json;
use test_site::TestEnvironment;

use crate::server::{Server, archive};

#[tokio::test]
async fn content_is_stored_below_its_skill_and_deleted_with_it() {
    let site = TestEnvironment::new().await;
    let root = tempfile::tempdir().unwrap();
    let server = Server::with(&site.table, ArtifactStore::in_directory(root.path()), ContentLimits::MLFLOW);
    let files: [(&str, &[u8]); 2] = [("SKILL.md", b"---\nname: a\n---\n"), ("docs/a.txt", b"x")];
    let metadata = json!({ "name": "a", "organization": "acme", "status": "active" });
    let (status, version) = server.upload("@acme/a", &metadata, &archive(&files)).await;
    assert_eq!((status, version["version"].clone(), version["source_type"].clone()), (200, json!(1), json!("mlflow")));
    let path = version["source"].as_str().unwrap().strip_prefix("mlflow-artifacts:/skills/@acme/a/").unwrap();
    let directory = root.path().join("skills/@acme/a");
    for (name, content) in files {
        assert_eq!(std::fs::read(directory.join(path).join(name)).unwrap(), content);
    }
    let wrong = json!({ "digest": "0".repeat(64) });
    let (status, error) = server.upload("@acme/a", &wrong, &archive(&files)).await;
    assert_eq!(status, 400, "{error}");
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
    // The content of this version is in a git repository, so the deletion of the skill must not
    // delete any files for it.
    server.register("@acme/a", "active").await;
    std::fs::write(root.path().join("other"), "x").unwrap();
    server.send("DELETE", "/@acme/a", json!({})).await.ok();
    assert!(!directory.join(path).exists());
    assert!(root.path().join("other").exists() && site.items().await.is_empty());
}

#[tokio::test]
async fn an_upload_is_refused_beyond_the_limits_and_without_artifacts() {
    let site = TestEnvironment::new().await;
    let root = tempfile::tempdir().unwrap();
    let in_lambda = Server::with(&site.table, ArtifactStore::in_directory(root.path()), ContentLimits::LAMBDA);
    let large = vec![0; (4 << 20) + 1];
    let (status, error) = in_lambda.upload("a", &json!({}), &archive(&[("a", &large)])).await;
    assert_eq!((status, error["message"].as_str().unwrap().contains("4194304")), (413, true));
    let (status, error) = in_lambda.upload("a", &json!({ "source": "https://h/a.git" }), &archive(&[("a", b"")])).await;
    assert_eq!(status, 400, "{error}");
    let without = Server::on(&site.table);
    let (status, _) = without.upload("a", &json!({}), &archive(&[("a", b"")])).await;
    assert_eq!((status, site.items().await.is_empty()), (501, true));
}
