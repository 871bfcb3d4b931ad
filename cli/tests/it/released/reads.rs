//! Requests that read, and their answers.

use axum::body::Body;
use http::Request;
use samples::Read;
use serde_json::{Value, json};
use test_site::Api;

/// The header that names a workspace.
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

    /// The answer's body, byte for byte. The request succeeds.
    pub(super) async fn send(&self, api: &Api) -> String {
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

    /// The same, read.
    pub(super) async fn done(&self, api: &Api) -> Value {
        serde_json::from_str(&self.send(api).await).unwrap()
    }
}

impl From<Read> for Asked {
    fn from(read: Read) -> Self {
        Self::new(read.method, read.path, read.body)
    }
}

/// The requests with their answers, but for those whose answers differ each time.
pub(super) async fn answered(api: &Api, asked: Vec<Asked>) -> Vec<(Asked, String)> {
    let mut answers = Vec::new();
    for asked in asked {
        // The page has a token against forgery, which is drawn.
        if asked.path == "/signup" {
            continue;
        }
        let answer = asked.send(api).await;
        answers.push((asked, answer));
    }
    answers
}

/// A line of the recorded answers.
pub(super) fn line((asked, answer): &(Asked, String)) -> Value {
    let Asked { method, path, body, workspace } = asked;
    json!({ "method": method, "path": path, "body": body, "workspace": workspace, "answer": answer })
}

/// The request and the answer of a line.
pub(super) fn of_line(line: &Value) -> (Asked, String) {
    let text = |field: &str| line[field].as_str().unwrap().to_owned();
    let (method, path, workspace) = (text("method"), text("path"), text("workspace"));
    (Asked { method, path, body: line["body"].clone(), workspace }, text("answer"))
}
