//! Requests of the user interface for the artifacts of runs, logged models and model versions.

use std::fs;

use axum::body::{Body, Bytes};
use http::Request;
use serde_json::{Value, json};

use crate::server::Server;

async fn upload(server: &Server, arguments: &str, body: impl Into<Body>) -> test_site::TestResponse {
    let path = format!("/ajax-api/2.0/mlflow/upload-artifact?{arguments}");
    server.send(Request::post(path).body(body.into()).unwrap()).await
}

/// Covers artifacts that pass through the server, and a directory that clients write to directly.
#[tokio::test]
async fn artifacts_of_a_run_are_listed_sent_and_uploaded() {
    for root in ["mlflow-artifacts:/", "directory"] {
        let server = Server::with(root, None).await;
        let (run, uri) = server.run().await;
        let list = async |path: &str| server.get("artifacts/list", &[("run_uuid", &run), ("path", path)]).await.ok();
        assert_eq!(list("").await, json!({ "root_uri": uri }));
        assert_eq!(upload(&server, &format!("run_uuid={run}&path=sub/a.png"), "image").await.ok(), "");
        fs::write(server.at(&format!("0/{run}/artifacts/b")), "two").unwrap();
        let files = json!([{ "path": "b", "is_dir": false, "file_size": 3 }, { "path": "sub", "is_dir": true }]);
        assert_eq!(list("").await, json!({ "root_uri": uri, "files": files }));
        let answer = server.get("artifacts/list", &[("run_id", &run)]).await.ok();
        assert_eq!(answer["files"], files);
        assert_eq!(list("sub").await["files"], json!([{ "path": "sub/a.png", "is_dir": false, "file_size": 5 }]));
        // The user interface requests the list of files at a path even if the path is a file.
        assert_eq!(list("sub/a.png").await["files"], Value::Null);
        let get = async |path: &str| server.get_at("/get-artifact", &[("path", path), ("run_uuid", &run)]).await;
        assert_eq!(get("sub/a.png").await.ok(), "image");
        get("sub").await.refused(400, "INVALID_PARAMETER_VALUE");
        get("none").await.refused(404, "RESOURCE_DOES_NOT_EXIST");
        server.post("runs/delete", json!({ "run_id": run })).await.ok();
        assert_eq!(get("b").await.ok(), "two");
    }
}

#[tokio::test]
async fn requests_that_name_no_run_or_no_file_are_refused() {
    let server = Server::new().await;
    let (run, _) = server.run().await;
    let other = run.replace(|digit: char| digit.is_ascii_digit(), "1");
    for named in ["", "a b", "none", &other] {
        let status = if named.is_empty() { 400 } else { 404 };
        assert_eq!(server.get("artifacts/list", &[("run_id", named)]).await.status, status, "{named}");
        let answer = server.get_at("/get-artifact", &[("run_id", named), ("path", "x")]).await;
        answer.refused(404, "RESOURCE_DOES_NOT_EXIST");
        let arguments = format!("run_uuid={}&path=x", named.replace(' ', "+"));
        assert_eq!(upload(&server, &arguments, "x").await.status, status, "{named}");
    }
    server.get_at("/get-artifact", &[("run_id", &run)]).await.refused(400, "BAD_REQUEST");
    let with_run = |rest: &str| format!("run_uuid={run}{rest}");
    for (arguments, body, message) in [
        (String::new(), "x".into(), "Request must specify run_uuid."),
        (with_run(""), "x".into(), "Request must specify path."),
        (with_run("&path=x"), String::new(), "Request must specify data."),
        (with_run("&path=x"), "x".repeat((10 << 20) + 1), "Artifact size is too large. Max size is 10MB."),
    ] {
        assert_eq!(upload(&server, &arguments, body).await.refused(400, "INVALID_PARAMETER_VALUE"), message);
    }
    assert_eq!(server.tree(), ["outside", "outside/secret"]);
}

#[tokio::test]
async fn an_upload_of_the_page_is_no_longer_than_the_server_takes_or_mlflow_does() {
    for (longest, most, message) in [
        (2 << 20, 2 << 20, "Artifact size is too large. Max size is 2097152 bytes."),
        (12 << 20, 10 << 20, "Artifact size is too large. Max size is 10MB."),
    ] {
        let server = Server::with("mlflow-artifacts:/", Some(longest)).await;
        let (run, _) = server.run().await;
        let arguments = format!("run_uuid={run}&path=x");
        let told = upload(&server, &arguments, vec![7; most + 1]).await;
        assert_eq!(told.refused(400, "INVALID_PARAMETER_VALUE"), message);
        // The client uploads without declaring a length.
        let chunks = [vec![7; most], vec![7]].map(|chunk| Ok::<_, std::convert::Infallible>(Bytes::from(chunk)));
        let untold = upload(&server, &arguments, Body::from_stream(futures::stream::iter(chunks))).await;
        assert_eq!(untold.refused(400, "INVALID_PARAMETER_VALUE"), message);
        assert_eq!(server.tree(), ["artifacts", "outside", "outside/secret"]);
        assert_eq!(upload(&server, &arguments, vec![7; most]).await.ok(), "");
    }
}

#[tokio::test]
async fn artifacts_of_models_are_sent_from_the_directory_of_the_proxy() {
    let server = Server::new().await;
    let (model, uri) = server.logged_model().await;
    assert!(uri.starts_with("mlflow-artifacts:/0/models/"), "{uri}");
    let path = uri.strip_prefix("mlflow-artifacts:/").unwrap();
    server.put(&format!("{path}/MLmodel"), "flavors: {}\n").await.ok();
    let listed = server.get(&format!("logged-models/{model}/artifacts/directories"), &[]).await.ok();
    assert_eq!(listed["files"], json!([{ "path": "MLmodel", "is_dir": false, "file_size": 12 }]));
    let files = format!("/ajax-api/2.0/mlflow/logged-models/{model}/artifacts/files");
    assert_eq!(server.get_at(&files, &[("artifact_file_path", "MLmodel")]).await.ok(), "flavors: {}\n");
    server.post("registered-models/create", json!({ "name": "r" })).await.ok();
    let version = json!({ "name": "r", "source": format!("models:/{model}"), "model_id": model });
    server.post("model-versions/create", version).await.ok();
    let arguments = [("name", "r"), ("version", "1"), ("path", "MLmodel")];
    assert_eq!(server.get_at("/model-versions/get-artifact", &arguments).await.ok(), "flavors: {}\n");
}

#[tokio::test]
async fn presigned_urls_are_for_buckets() {
    let server = Server::new().await;
    let (run, _) = server.run().await;
    let (model, _) = server.logged_model().await;
    for owner in [json!({ "run_id": run, "path": "x" }), json!({ "model_id": model, "path": "x" })] {
        let message =
            server.post("artifacts/presigned-upload-url", owner).await.refused(400, "INVALID_PARAMETER_VALUE");
        assert!(message.starts_with("Presigned upload is not supported for proxied artifact storage"), "{message}");
    }
    let both = json!({ "run_id": run, "model_id": model, "path": "x" });
    let message = server.post("artifacts/presigned-upload-url", both).await.refused(400, "INVALID_PARAMETER_VALUE");
    assert_eq!(message, "Exactly one of run_id and model_id must be provided.");
    let download = async |expiration: i64| {
        let body = json!({ "run_id": run, "path": "x", "expiration": expiration });
        server.post("artifacts/presigned-download-url", body).await.refused(400, "INVALID_PARAMETER_VALUE")
    };
    assert!(download(300).await.starts_with("Presigned download is not supported for runs"));
    for expiration in [0, 604_801] {
        assert!(download(expiration).await.starts_with("expiration must be between 1 and 604800 seconds"));
    }
    let server = Server::with("directory", None).await;
    let (run, _) = server.run().await;
    let body = json!({ "run_id": run, "path": "x" });
    server.post("artifacts/presigned-upload-url", body.clone()).await.refused(501, "NOT_IMPLEMENTED");
    server.post("artifacts/presigned-download-url", body).await.refused(501, "NOT_IMPLEMENTED");
}

#[tokio::test]
async fn artifacts_elsewhere_are_not_pretended_to_be_none() {
    let server = Server::new().await;
    for location in ["s3://bucket/x", "/somewhere/else"] {
        let new = json!({ "name": location, "artifact_location": location });
        let experiment = server.post("experiments/create", new).await.ok();
        let run = server.post("runs/create", experiment).await.ok();
        let run = run["run"]["info"]["run_id"].as_str().unwrap();
        server.get("artifacts/list", &[("run_id", run)]).await.refused(501, "NOT_IMPLEMENTED");
        server.get_at("/get-artifact", &[("run_id", run), ("path", "x")]).await.refused(501, "NOT_IMPLEMENTED");
        upload(&server, &format!("run_uuid={run}&path=x"), "x").await.refused(501, "NOT_IMPLEMENTED");
    }
}
