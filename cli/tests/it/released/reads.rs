//! Requests that read, and their responses.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};
use test_site::TestClient;
use test_site::route_samples::ReadRequest;

/// Header with the name of a workspace.
pub(super) const WORKSPACE: &str = "x-mlflow-workspace";

/// A request to a workspace.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: Value,
    pub(super) workspace: String,
}

impl Asked {
    pub(super) fn new(method: &str, path: impl Into<String>, body: Value) -> Self {
        Self { method: method.to_owned(), path: path.into(), body, workspace: "default".to_owned() }
    }

    pub(super) fn of(workspace: &str, method: &str, path: impl Into<String>, body: Value) -> Self {
        Self { workspace: workspace.to_owned(), ..Self::new(method, path, body) }
    }

    /// Sends the request, which has to succeed, and returns the body of the response byte for byte.
    pub(super) async fn send(&self, api: &TestClient) -> String {
        let request = Request::builder().method(self.method.as_str()).uri(&self.path);
        let request = match self.workspace.as_str() {
            "default" => request,
            named => request.header(WORKSPACE, named),
        };
        let request = request.header("content-type", "application/json");
        let request = if self.path == "/v1/traces" { request.header("x-mlflow-experiment-id", "0") } else { request };
        let answer = api.send(request.body(Body::from(self.body.to_string())).unwrap()).await;
        assert!(answer.status < 300, "{} {}: {} {}", self.method, self.path, answer.status, answer.body);
        answer.body.to_string()
    }

    /// Sends the request, which has to succeed, and returns the parsed body of the response.
    pub(super) async fn done(&self, api: &TestClient) -> Value {
        serde_json::from_str(&self.send(api).await).unwrap()
    }
}

impl From<ReadRequest> for Asked {
    fn from(read: ReadRequest) -> Self {
        Self::new(read.method, read.path, read.body)
    }
}

/// Sends the requests, and returns them with their responses. Requests whose responses are not
/// reproducible are left out.
pub(super) async fn answered(api: &TestClient, asked: Vec<Asked>) -> Vec<(Asked, String)> {
    let mut answers = Vec::new();
    for asked in asked {
        // The page contains a random token against forgery.
        if asked.path == "/signup" {
            continue;
        }
        let answer = asked.send(api).await;
        answers.push((asked, answer));
    }
    answers
}

/// Converts a request and its response into a line of the recording.
pub(super) fn line((asked, answer): &(Asked, String)) -> Value {
    let Asked { method, path, body, workspace } = asked;
    json!({ "method": method, "path": path, "body": body, "workspace": workspace, "answer": answer })
}

/// Returns the request and response of a line.
pub(super) fn of_line(line: &Value) -> (Asked, String) {
    let text = |field: &str| line[field].as_str().unwrap().to_owned();
    let (method, path, workspace) = (text("method"), text("path"), text("workspace"));
    (Asked { method, path, body: line["body"].clone(), workspace }, text("answer"))
}
