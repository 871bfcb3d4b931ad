//! The functions that handle artifacts, over a private table and directory.

use std::fs;
use std::ops::Deref;
use std::path::PathBuf;

use artifact_store::ArtifactStore;
use axum::body::Body;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use test_site::{TestClient, TestEnvironment, TestResponse};
use tower::ServiceExt;

/// Path of the endpoints that pass artifacts through the server.
pub(crate) const PROXY: &str = "/api/2.0/mlflow-artifacts/artifacts";

pub(crate) struct Server {
    api: TestClient,
    parent: tempfile::TempDir,
}

impl Deref for Server {
    type Target = TestClient;

    fn deref(&self) -> &TestClient {
        &self.api
    }
}

impl Server {
    /// Starts a server whose experiments have artifact locations at `mlflow-artifacts:/`.
    pub(crate) async fn new() -> Self {
        Self::with("mlflow-artifacts:/", None).await
    }

    /// Starts a server with this artifact root, which accepts uploads of up to `longest` bytes. If
    /// `root` is the word `directory`, the artifact root is the local directory itself.
    pub(crate) async fn with(root: &str, longest: Option<u64>) -> Self {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("artifacts");
        fs::create_dir(parent.path().join("outside")).unwrap();
        fs::write(parent.path().join("outside/secret"), "secret").unwrap();
        let root = if root == "directory" { directory.to_str().unwrap() } else { root };
        let artifacts = ArtifactStore::in_directory(&directory);
        let table = TestEnvironment::new().await.table;
        let tracking = tracking::store::Store::new(table.clone(), root).with_artifacts(artifacts.clone());
        tracking.experiment_create_default(&mlflow_api::Workspace::default()).await.unwrap();
        let registry = registry::store::Store::new(table.clone(), root).with_artifacts(artifacts.clone());
        let artifacts = artifacts::store::Store::new(table, artifacts).with_max_upload_bytes(longest);
        let others =
            [tracking::router(&tracking, test_site::everybody()), registry::router(&registry, test_site::everybody())];
        Self {
            api: TestClient(service::join_routers(artifacts::router(&artifacts, test_site::everybody()), others)),
            parent,
        }
    }

    /// Returns the local path of an artifact.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.parent.path().join("artifacts").join(path)
    }

    /// Returns the paths of all files and directories below the artifact directory and next to it,
    /// except the staging directory.
    pub(crate) fn tree(&self) -> Vec<String> {
        fn walk(directory: &std::path::Path, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let is_staging = path.ends_with(".artifact.uploading.here");
                if path.is_dir() && !path.is_symlink() {
                    walk(&path, found);
                }
                if !is_staging {
                    found.push(path);
                }
            }
        }
        let mut found = Vec::new();
        walk(self.parent.path(), &mut found);
        let relative =
            found.iter().map(|path| path.strip_prefix(self.parent.path()).unwrap().to_str().unwrap().to_owned());
        let mut relative: Vec<_> = relative.collect();
        relative.sort();
        relative
    }

    /// Creates a run. Returns its id and artifact location.
    pub(crate) async fn run(&self) -> (String, String) {
        let run = self.post("runs/create", json!({ "experiment_id": "0" })).await.ok();
        let info = &run["run"]["info"];
        (info["run_id"].as_str().unwrap().to_owned(), info["artifact_uri"].as_str().unwrap().to_owned())
    }

    /// Creates a logged model. Returns its id and artifact location.
    pub(crate) async fn logged_model(&self) -> (String, String) {
        let model = self.post("logged-models", json!({ "experiment_id": "0", "name": "m" })).await.ok();
        let info = &model["model"]["info"];
        (info["model_id"].as_str().unwrap().to_owned(), info["artifact_uri"].as_str().unwrap().to_owned())
    }

    pub(crate) async fn put(&self, path: &str, body: impl Into<Body>) -> TestResponse {
        self.send(Request::put(format!("{PROXY}/{path}")).body(body.into()).unwrap()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> TestResponse {
        self.send(Request::delete(format!("{PROXY}/{path}")).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn download(&self, path: &str) -> TestResponse {
        self.send(Request::get(format!("{PROXY}/{path}")).body(Body::empty()).unwrap()).await
    }

    /// Lists the files and directories at a path.
    pub(crate) async fn listed(&self, path: &str) -> Value {
        let answer = self.get_at(PROXY, &[("path", path)]).await.ok();
        assert!(answer.as_object().unwrap().keys().all(|key| key == "files"), "{answer}");
        answer["files"].clone()
    }

    /// Sends a GET with these headers. Returns status, headers and body of the response.
    pub(crate) async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> (u16, HeaderMap, String) {
        let request = headers.iter().fold(Request::get(path), |request, (name, value)| request.header(*name, *value));
        let response = self.api.0.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        (parts.status.as_u16(), parts.headers, String::from_utf8(body).unwrap())
    }
}
