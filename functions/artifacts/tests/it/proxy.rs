//! Tests `mlflow-artifacts/…` with the requests of stock clients.

use std::fs;

use axum::body::{Body, Bytes};
use http::Request;
use serde_json::{Value, json};

use crate::server::{PROXY, Server};

#[tokio::test]
async fn files_are_put_listed_read_and_deleted() {
    let server = Server::new().await;
    assert_eq!(server.listed("").await, Value::Null);
    for (path, content) in [("0/r/artifacts/a.txt", "one"), ("0/r/artifacts/sub/%C3%A9%20b", "two"), ("0/r/x", "")] {
        assert_eq!(server.put(path, content).await.ok(), "", "{path}");
    }
    assert_eq!(fs::read_to_string(server.at("0/r/artifacts/sub/é b")).unwrap(), "two");
    let files = json!([{ "path": "a.txt", "is_dir": false, "file_size": 3 }, { "path": "sub", "is_dir": true }]);
    for path in ["0/r/artifacts", "0/r/artifacts/", "0//r/./artifacts", "0%2Fr/artifacts"] {
        assert_eq!(server.listed(path).await, files, "{path}");
    }
    for path in ["0/r/artifacts/a.txt", "0/r/none", "none"] {
        assert_eq!(server.listed(path).await, Value::Null, "{path}");
    }
    assert_eq!(server.download("0/r/artifacts/a.txt").await.ok(), "one");
    assert_eq!(server.put("0/r/artifacts/a.txt", "other").await.status, 200);
    assert_eq!(server.download("0/r/artifacts/a.txt").await.ok(), "other");
    assert_eq!(
        server.download("0/r/none").await.refused(404, "RESOURCE_DOES_NOT_EXIST"),
        "No such artifact: '0/r/none'"
    );
    server.download("0/r/artifacts").await.refused(400, "INVALID_PARAMETER_VALUE");
    assert_eq!(server.delete("0/r/artifacts/a.txt").await.ok(), json!({}));
    assert_eq!(server.delete("0/r/artifacts/none").await.ok(), json!({}));
    assert_eq!(server.delete("0/r/artifacts/").await.ok(), json!({}));
    assert_eq!(server.listed("0/r").await, json!([{ "path": "x", "is_dir": false, "file_size": 0 }]));
    // The paths that the user interface requests are served by the same endpoints.
    let ajax = PROXY.replace("/api/", "/ajax-api/");
    assert_eq!(server.get_at(&format!("{ajax}/0/r/x"), &[]).await.ok(), "");
}

#[tokio::test]
async fn a_file_needs_a_name_and_a_place() {
    let server = Server::new().await;
    server.put("0/file", "x").await.ok();
    for path in ["0/", "./", "0/file/below", "0", &format!("0/{}", "n".repeat(256)), "0/.artifact.uploading.x"] {
        server.put(path, "x").await.refused(400, "INVALID_PARAMETER_VALUE");
    }
    server.delete(".").await.refused(400, "INVALID_PARAMETER_VALUE");
    assert_eq!(server.listed("0").await, json!([{ "path": "file", "is_dir": false, "file_size": 1 }]));
}

/// Clients send a file called `a b` as `a%20b`, and MLflow decodes all layers of encoding. A name
/// that would be decoded to another name is therefore rejected.
#[tokio::test]
async fn a_name_that_would_be_read_as_another_is_not_written() {
    let server = Server::new().await;
    let (run, _) = server.run().await;
    let at = format!("0/{run}/artifacts");
    server.put(&format!("{at}/a%20b.txt"), "mine").await.ok();
    server.put(&format!("{at}/100%25.txt"), "percent").await.ok();
    let mut messages = vec![
        server.put(&format!("{at}/a%2520b.txt"), "other").await.refused(400, "INVALID_PARAMETER_VALUE"),
        server.put(&format!("{at}%252Fa%20b.txt"), "other").await.refused(400, "INVALID_PARAMETER_VALUE"),
    ];
    let upload = format!("/ajax-api/2.0/mlflow/upload-artifact?run_uuid={run}&path=a%2520b.txt");
    messages.push(server.call_at("POST", &upload, "other".to_owned()).await.refused(400, "INVALID_PARAMETER_VALUE"));
    let create = format!("{}/mpu/create/{at}", PROXY.strip_suffix("/artifacts").unwrap());
    let parts = json!({ "path": "/home/me/a%20b.txt", "num_parts": 1 }).to_string();
    messages.push(server.call_at("POST", &create, parts).await.refused(400, "INVALID_PARAMETER_VALUE"));
    let signed = json!({ "run_id": run, "path": "a%20b.txt" }).to_string();
    let sign = "/api/2.0/mlflow/artifacts/presigned-upload-url";
    messages.push(server.call_at("POST", sign, signed).await.refused(400, "INVALID_PARAMETER_VALUE"));
    for message in messages {
        assert!(message.contains("would become '") && message.contains("a b.txt'. Give the file a name"), "{message}");
    }
    assert_eq!(server.download(&format!("{at}/a%20b.txt")).await.ok(), "mine");
    assert_eq!(server.download(&format!("{at}/a%2520b.txt")).await.ok(), "mine");
    assert_eq!(server.download(&format!("{at}/100%25.txt")).await.ok(), "percent");
}

#[tokio::test]
async fn a_part_of_a_file_may_be_asked_for() {
    let server = Server::new().await;
    server.put("0/page.html", "0123456789").await.ok();
    let path = format!("{PROXY}/0/page.html");
    let (status, headers, body) = server.get_with(&path, &[("accept-encoding", "gzip")]).await;
    assert_eq!((status, body.as_str()), (200, "0123456789"));
    for (name, expected) in [
        ("content-type", "text/html"),
        ("content-length", "10"),
        ("content-disposition", "attachment; filename=page.html"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "sandbox; default-src 'none'"),
        ("accept-ranges", "bytes"),
        ("cache-control", "no-cache"),
    ] {
        assert_eq!(headers[name], expected, "{name}");
    }
    let tag = headers["etag"].to_str().unwrap().to_owned();
    let (status, headers, body) = server.get_with(&path, &[("range", "bytes=4-"), ("if-range", &tag)]).await;
    assert_eq!((status, body.as_str()), (206, "456789"));
    assert_eq!((&headers["content-range"], &headers["content-length"]), (&"bytes 4-9/10".parse().unwrap(), &6.into()));
    let (status, headers, body) = server.get_with(&path, &[("range", "bytes=10-")]).await;
    assert_eq!((status, body.as_str(), headers["content-range"].to_str().unwrap()), (416, "", "bytes */10"));
    assert_eq!(server.get_with(&path, &[("if-none-match", &tag)]).await.0, 304);
    // The file was replaced by one of equal length. The server must not return a part of the new
    // file as a continuation of the old one.
    server.put("0/page.html", "abcdefghij").await.ok();
    let (status, _, body) = server.get_with(&path, &[("range", "bytes=4-"), ("if-range", &tag)]).await;
    assert_eq!((status, body.as_str()), (200, "abcdefghij"));
}

#[tokio::test]
async fn a_file_of_any_size_is_taken_unless_a_setting_says_otherwise() {
    let megabytes = |count| {
        let chunk = Bytes::from(vec![7; 1 << 20]);
        let chunks = std::iter::repeat_n(chunk, count).map(Ok::<_, std::convert::Infallible>);
        Body::from_stream(futures::stream::iter(chunks))
    };
    let server = Server::new().await;
    server.put("0/big", megabytes(40)).await.ok();
    assert_eq!(fs::metadata(server.at("0/big")).unwrap().len(), 40 << 20);
    let server = Server::with("mlflow-artifacts:/", Some(2 << 20)).await;
    server.put("0/most", megabytes(2)).await.ok();
    for body in [megabytes(3), Body::from(vec![7; (2 << 20) + 1])] {
        let message = server.put("0/more", body).await.refused(400, "INVALID_PARAMETER_VALUE");
        assert_eq!(message, "Artifact size is too large. Max size is 2097152 bytes.");
    }
    assert_eq!(server.tree(), ["artifacts", "artifacts/0", "artifacts/0/most", "outside", "outside/secret"]);
}

/// If a body is declared as text, API Gateway replaces bytes in it that are not UTF-8. Such a file
/// must be rejected.
#[tokio::test]
async fn a_file_that_was_changed_on_its_way_is_refused() {
    let server = Server::new().await;
    let put = async |announced: &str| {
        let request = Request::put(format!("{PROXY}/0/text.csv")).header("content-length", announced);
        server.send(request.body(Body::from("caf\u{fffd}")).unwrap()).await
    };
    let message = put("4").await.refused(400, "BAD_REQUEST");
    assert!(message.starts_with("Expected a body of 4 bytes, but received 6."), "{message}");
    assert_eq!(server.tree(), ["outside", "outside/secret"]);
    put("6").await.ok();
}

#[tokio::test]
async fn what_a_directory_cannot_do_is_answered_as_stock_mlflow_does() {
    let server = Server::new().await;
    let base = PROXY.strip_suffix("/artifacts").unwrap();
    let whole =
        json!({ "path": "/home/me/f", "num_parts": 2, "upload_id": "u", "parts": [{ "part_number": 1, "etag": "e" }] });
    for step in ["create", "complete", "abort"] {
        let path = format!("{base}/mpu/{step}/0/r/artifacts");
        let message = server.call_at("POST", &path, whole.to_string()).await.refused(501, "NOT_IMPLEMENTED");
        assert_eq!(message, "Multipart upload is not supported for the current artifact repository");
        server.call_at("POST", &path, "{}".to_owned()).await.refused(400, "INVALID_PARAMETER_VALUE");
    }
    let message = server.get_at(&format!("{base}/presigned/0/r/x"), &[]).await.refused(501, "NOT_IMPLEMENTED");
    assert_eq!(message, "Multipart download is not supported for the current artifact repository");
}

#[tokio::test]
async fn a_server_that_keeps_no_artifacts_says_so() {
    let table = test_site::TestEnvironment::new().await.table;
    let store = artifacts::store::Store::new(table, artifact_store::ArtifactStore::below("gs://bucket/root"));
    let api = test_site::TestClient(artifacts::router(&store, test_site::everybody()));
    for answer in [
        api.get_at(PROXY, &[("path", "0")]).await,
        api.get_at(&format!("{PROXY}/0/x"), &[]).await,
        api.call_at("PUT", &format!("{PROXY}/0/x"), "x".to_owned()).await,
        api.call_at("DELETE", &format!("{PROXY}/0/x"), String::new()).await,
    ] {
        answer.refused(501, "NOT_IMPLEMENTED");
    }
}
