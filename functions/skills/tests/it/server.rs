//! A server of the skill registry for tests, over a table and artifacts that the test chooses.

use std::io::Write as _;
use std::ops::Deref;
use std::time::Duration;

use artifact_store::ArtifactStore;
use entities::workspaces::Workspaces;
use flate2::Compression;
use flate2::write::GzEncoder;
use mlflow_api::skills::ContentLimits;
use retention::{LogReport, Retention};
use serde_json::{Value, json};
use table::Table;
use test_site::{PrefixedTestClient, TestClient, TestEnvironment, TestResponse};

/// Digest in registrations of versions in a git repository. The server does not read the
/// repository, so any digest is accepted.
pub(crate) const DIGEST: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// A server process.
#[derive(Clone)]
pub(crate) struct Server(PrefixedTestClient);

impl Deref for Server {
    type Target = PrefixedTestClient;

    fn deref(&self) -> &PrefixedTestClient {
        &self.0
    }
}

/// Returns an environment with an empty table, and a server over it.
pub(crate) async fn site() -> (TestEnvironment, Server) {
    let site = TestEnvironment::new().await;
    let server = Server::on(&site.table);
    (site, server)
}

impl Server {
    pub(crate) fn on(table: &Table) -> Self {
        Self::with(table, ArtifactStore::default(), ContentLimits::MLFLOW)
    }

    pub(crate) fn with(table: &Table, artifacts: ArtifactStore, limits: ContentLimits) -> Self {
        let store = skills::store::Store::new(table.clone(), artifacts, limits);
        Self(PrefixedTestClient::new(skills::router(&store, test_site::everybody()), "/api/3.0/mlflow/skills"))
    }

    /// Registers a version of a skill.
    pub(crate) async fn register(&self, skill: &str, status: &str) -> Value {
        self.send("POST", &format!("/{skill}/versions"), registration(status)).await.ok()
    }

    /// Changes the status of a version.
    pub(crate) async fn set_status(&self, skill: &str, version: u32, status: &str) -> TestResponse {
        self.send("PATCH", &format!("/{skill}/versions/{version}"), json!({ "status": status })).await
    }

    /// Returns the number and the status of a skill's latest version.
    pub(crate) async fn latest(&self, name: &str) -> (Value, Value) {
        let skill = self.read(&format!("/{name}"), &[]).await.ok();
        (skill["latest_version"].clone(), skill["status"].clone())
    }

    /// Uploads an archive as a version of a skill. Returns the status and the body of the response.
    pub(crate) async fn upload(&self, skill: &str, metadata: &Value, archive: &[u8]) -> (u16, Value) {
        let mut body = format!(
            "--b\r\nContent-Disposition: form-data; name=\"metadata\"\r\n\r\n{metadata}\r\n--b\r\n\
             Content-Disposition: form-data; name=\"content\"; filename=\"content.tar.gz\"\r\n\r\n"
        )
        .into_bytes();
        body.extend_from_slice(archive);
        body.extend_from_slice(b"\r\n--b--\r\n");
        let request = http::Request::post(format!("/api/3.0/mlflow/skills/{skill}/versions"))
            .header("content-type", "multipart/form-data; boundary=b")
            .body(axum::body::Body::from(body))
            .unwrap();
        let response = tower::ServiceExt::oneshot(TestClient::clone(self).0, request).await.unwrap();
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }
}

/// Runs the housekeeper.
pub(crate) async fn housekeep(table: &Table, artifacts: ArtifactStore) {
    let (retention, workspaces) = (Retention::new(table.clone(), artifacts), Workspaces::new(table.clone()));
    assert!(Box::pin(retention.remove_for(Duration::from_mins(1), &workspaces, &LogReport)).await.unwrap());
}

/// Returns the body that registers a version in a git repository.
pub(crate) fn registration(status: &str) -> Value {
    json!({ "source": "https://example.com/skills.git", "ref": "v1", "subpath": "a", "digest": DIGEST, "status": status })
}

/// Returns a compressed tar archive with these files.
pub(crate) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, content) in files {
        let mut header = vec![0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[156] = b'0';
        header[257..263].copy_from_slice(b"ustar\0");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        tar.extend(header);
        tar.extend_from_slice(content);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1_024, 0);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&tar).unwrap();
    encoder.finish().unwrap()
}
