//! Listing and downloading the artifacts of logged models.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::logged_models::{call, create};
use crate::server::{Server, Site};

/// Starts a server whose artifacts are in a local directory, and creates an experiment.
async fn local(root: &str) -> (Site, Server, String) {
    let site = Site::new().await;
    let store = tracking::store::Store::with_lease(site.table.clone(), root, Duration::ZERO);
    let server = Server::with(&store);
    let experiment = server.experiment("local").await;
    (site, server, experiment)
}

#[tokio::test]
async fn artifacts_below_the_root_are_listed_and_sent() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    let outside = directory.path().join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("secret"), "secret").unwrap();
    let (_site, server, experiment) = local(root.to_str().unwrap()).await;
    let created = call(&server, "POST", "", json!({ "experiment_id": experiment })).await.ok();
    let info = &created["model"]["info"];
    let (model, location) =
        (info["model_id"].as_str().unwrap(), std::path::Path::new(info["artifact_uri"].as_str().unwrap()));
    let list = |path: &'static str| {
        let (server, model) = (&server, model);
        async move {
            server
                .get(&format!("logged-models/{model}/artifacts/directories"), &[("artifact_directory_path", path)])
                .await
        }
    };
    let file = |path: &'static str| {
        let (server, model) = (&server, model);
        async move {
            server
                .get_at(
                    &format!("/ajax-api/2.0/mlflow/logged-models/{model}/artifacts/files"),
                    &[("artifact_file_path", path)],
                )
                .await
        }
    };
    // The directory is still empty.
    assert_eq!(list("").await.ok(), json!({ "root_uri": info["artifact_uri"] }));
    file("a").await.refused(404, "RESOURCE_DOES_NOT_EXIST");

    std::fs::create_dir_all(location.join("sub/deep")).unwrap();
    std::fs::write(location.join("MLmodel"), "flavors:\n").unwrap();
    std::fs::write(location.join("sub/é b.txt"), "é".repeat(300_000)).unwrap();
    std::fs::write(location.join(".artifact.uploading.x"), "").unwrap();
    std::os::unix::fs::symlink(&outside, location.join("link")).unwrap();
    std::os::unix::fs::symlink(outside.join("secret"), location.join("sub/secret")).unwrap();
    std::os::unix::fs::symlink(location.join("MLmodel"), location.join("inner")).unwrap();
    let files = |answer: &Value| answer["files"].clone();
    assert_eq!(
        files(&list("").await.ok()),
        json!([
            { "path": "MLmodel", "is_dir": false, "file_size": 9 },
            { "path": "sub", "is_dir": true },
        ])
    );
    let of_sub = json!([
        { "path": "sub/deep", "is_dir": true },
        { "path": "sub/é b.txt", "is_dir": false, "file_size": 600_000 },
    ]);
    assert_eq!(files(&list("sub").await.ok()), of_sub);
    assert_eq!(files(&list("./sub//").await.ok()), of_sub);
    for path in ["MLmodel", "sub/deep", "none", "MLmodel/x"] {
        assert_eq!(files(&list(path).await.ok()), Value::Null, "{path}");
    }
    assert_eq!(file("MLmodel").await.ok(), "flavors:\n");
    assert_eq!(file("sub%2F%C3%A9 b.txt").await.ok(), "é".repeat(300_000));
    file("sub").await.refused(400, "INVALID_PARAMETER_VALUE");
    file("MLmodel/x").await.refused(404, "RESOURCE_DOES_NOT_EXIST");
    // Links are not followed, whether or not they lead out of the directory.
    for path in ["link", "link/secret", "sub/secret", "inner"] {
        assert_eq!(files(&list(path).await.ok()), Value::Null, "{path}");
        file(path).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
    }
    for path in ["../../x", "%2e%2e/x", "/etc/passwd", "..%252f..%252fx", "a\\b"] {
        for answer in [list(path).await, file(path).await] {
            assert_eq!(answer.refused(400, "INVALID_PARAMETER_VALUE"), "Invalid path", "{path}");
        }
    }
    call(&server, "DELETE", &format!("/{model}"), json!({})).await.ok();
    file("MLmodel").await.refused(404, "RESOURCE_DOES_NOT_EXIST");
}

#[tokio::test]
async fn a_file_is_sent_as_an_attachment() {
    let directory = tempfile::tempdir().unwrap();
    let (_site, server, experiment) = local(directory.path().to_str().unwrap()).await;
    let created = call(&server, "POST", "", json!({ "experiment_id": experiment })).await.ok();
    let info = &created["model"]["info"];
    let location = std::path::Path::new(info["artifact_uri"].as_str().unwrap());
    std::fs::create_dir_all(location).unwrap();
    std::fs::write(location.join("é.html"), "<script>").unwrap();
    let model = info["model_id"].as_str().unwrap();
    let path = format!("/ajax-api/2.0/mlflow/logged-models/{model}/artifacts/files?artifact_file_path=%C3%A9.html");
    let response = server.router().oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/html");
    assert_eq!(header("content-disposition"), "attachment; filename=e.html; filename*=UTF-8''%C3%A9.html");
    assert_eq!((header("content-length"), header("x-content-type-options")), ("8".to_owned(), "nosniff".to_owned()));
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "<script>");
}

#[tokio::test]
async fn artifacts_elsewhere_are_not_pretended_to_be_none() {
    let directory = tempfile::tempdir().unwrap();
    let (_site, server, _) = local(directory.path().join("root").to_str().unwrap()).await;
    let locations = ["s3://bucket/x".to_owned(), directory.path().join("other").to_str().unwrap().to_owned()];
    let mut names = BTreeSet::new();
    for location in locations {
        let new = json!({ "name": location, "artifact_location": location });
        let experiment = server.post("experiments/create", new).await.ok();
        let model = create(&server, json!({ "experiment_id": experiment["experiment_id"] })).await;
        let answer = server.get(&format!("logged-models/{model}/artifacts/directories"), &[]).await;
        names.insert(answer.refused(501, "NOT_IMPLEMENTED"));
    }
    assert_eq!(names.len(), 2);
}
