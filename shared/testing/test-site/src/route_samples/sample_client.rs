//! A client that sends the samples.

use std::collections::BTreeSet;

use axum::Router;
use axum::body::{Body, to_bytes};
use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tower::ServiceExt;

/// Artifact root of functions in tests.
pub const ROOT: &str = "s3://bucket/artifacts";
/// Prefixes of versions 2.0 and 3.0 of the API.
pub(crate) const V2: &str = "/api/2.0/mlflow";
pub(crate) const V3: &str = "/api/3.0/mlflow";
/// Prefix of version 2.0 of the API, as the user interface uses it.
pub(crate) const AJAX_V2: &str = "/ajax-api/2.0/mlflow";

/// A client that sends requests one after another, and records which routes they used.
pub struct SampleClient {
    /// Router that answers the requests.
    pub router: Router,
    /// Method and canonical path of the routes that were requested, as in the lists of routes.
    pub endpoints: BTreeSet<String>,
    /// Requests that read. They can be sent again, because they change nothing.
    pub reads: Vec<ReadRequest>,
}

/// A request that reads.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// HTTP method.
    pub method: &'static str,
    /// Path with query.
    pub path: String,
    /// Request body.
    pub body: Value,
}

impl ReadRequest {
    /// Sends the request. Returns status and body of the response.
    pub async fn answer(&self, router: &Router) -> (u16, Value) {
        ask(router, self.method, &self.path, &self.body).await
    }
}

impl SampleClient {
    /// Returns a client that has not sent any request.
    pub fn new(router: Router) -> Self {
        Self { router, endpoints: BTreeSet::new(), reads: Vec::new() }
    }

    /// Sends a request that must succeed to a route such as
    /// `DELETE /api/3.0/mlflow/datasets/{dataset_id}`, with these ids in its path.
    pub async fn send(&mut self, endpoint: &str, ids: &[&str], body: Value) -> Value {
        self.send_with(endpoint, ids, "", body, 200).await
    }

    /// Sends a request with a query, which must be answered with this status.
    pub async fn send_with(&mut self, endpoint: &str, ids: &[&str], query: &str, body: Value, status: u16) -> Value {
        self.endpoints.insert(endpoint.to_owned());
        let (method, template) = endpoint.split_once(' ').unwrap();
        let path = format!("{}{query}", filled(template, ids));
        let (found, answer) = ask(&self.router, method, &path, &body).await;
        assert_eq!(found, status, "{method} {path}: {answer}");
        answer
    }

    /// Sends a request whose outcome is irrelevant, except that it must not be a server error.
    pub async fn answered(&mut self, endpoint: &str, ids: &[&str], body: Value) {
        self.endpoints.insert(endpoint.to_owned());
        let (method, template) = endpoint.split_once(' ').unwrap();
        let (status, answer) = ask(&self.router, method, &filled(template, ids), &body).await;
        assert!(status < 500 && status != 404 || status == 501, "{endpoint}: {status} {answer}");
    }

    /// Sends a request that must succeed to a `POST` route below `/api/2.0/mlflow/` whose path has
    /// no ids.
    pub async fn post(&mut self, path: &str, body: Value) -> Value {
        self.send(&format!("POST {V2}/{path}"), &[], body).await
    }

    /// Sends read requests, which must succeed, and records them. Each consists of a route and a
    /// body. The route contains the values of its parameters: `{x=y}` is the parameter `{x}` with
    /// the value `y`. A query may follow the path.
    pub async fn read(&mut self, requests: Vec<(String, Value)>) {
        for (request, body) in requests {
            let (method, filled) = request.split_once(' ').unwrap();
            let (route, path) = parted(filled);
            self.endpoints.insert(format!("{method} {route}"));
            let method = if method == "GET" { "GET" } else { "POST" };
            let read = ReadRequest { method, path, body };
            let (status, answer) = read.answer(&self.router).await;
            assert_eq!(status, 200, "{request}: {answer}");
            self.reads.push(read);
        }
    }
}

/// Returns the path of a route, with these ids in place of its parameters.
fn filled(template: &str, ids: &[&str]) -> String {
    let mut ids = ids.iter();
    // A part of a path is a parameter, or an at sign and a parameter (`@{organization}`).
    let part = |part: &str| match part.split_once('{') {
        Some((before @ ("" | "@"), _)) => format!("{before}{}", ids.next().unwrap()),
        _ => part.to_owned(),
    };
    template.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Splits a path with parameters of the form `{x=y}` into the route, which contains `{x}`, and the
/// actual path, which contains `y`.
fn parted(filled: &str) -> (String, String) {
    let (path, query) =
        filled.split_once('?').map_or((filled, String::new()), |(path, query)| (path, format!("?{query}")));
    let parameter = |part: &str| {
        let before = if part.starts_with('@') { "@" } else { "" };
        let (name, value) = part.strip_prefix(before)?.strip_prefix('{')?.strip_suffix('}')?.split_once('=')?;
        Some((format!("{before}{{{name}}}"), format!("{before}{value}")))
    };
    let parts = path.split('/').map(|part| parameter(part).unwrap_or_else(|| (part.to_owned(), part.to_owned())));
    let (route, path): (Vec<_>, Vec<_>) = parts.unzip();
    (route.join("/"), path.join("/") + &query)
}

/// Sends a request. Returns status and body of the response.
pub(crate) async fn ask(router: &Router, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
    // Exports of spans name their experiment in a header.
    let request = if path == "/v1/traces" { request.header("x-mlflow-experiment-id", "0") } else { request };
    let request = request.body(Body::from(body.to_string())).unwrap();
    let answer = router.clone().oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or_else(|_| json!(null)))
}

/// Returns the text at a JSON pointer in a response.
pub(crate) fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no {pointer} in {value}")).to_owned()
}
