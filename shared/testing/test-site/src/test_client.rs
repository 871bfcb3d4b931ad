//! Requests to a router, without a socket.

use std::fmt::Write;
use std::ops::Deref;

use axum::Router;
use axum::body::{Body, HttpBody};
use http::Request;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::sync::Semaphore;
use tower::ServiceExt;

/// Maximum total size in bytes of the request bodies that are processed concurrently. A body that
/// exceeds this size is processed alone.
const MAX_BODY_BYTES_IN_FLIGHT: usize = 16 << 20;
/// Minimum size, in bytes, of the bodies that count towards the total in flight.
const MIN_COUNTED_BODY_BYTES: u64 = 64 << 10;

/// Permits for the bytes of request bodies, shared by all tests of the process. The server has a
/// separate limit, and rejects requests that wait for more than five seconds. Waiting here without
/// a timeout keeps a slow test from making others fail.
static FREE_BODY_BYTES: Semaphore = Semaphore::const_new(MAX_BODY_BYTES_IN_FLIGHT);

/// A client that sends requests directly to a router.
#[derive(Clone, Debug)]
pub struct TestClient(pub Router);

/// A client of the paths below a prefix.
#[derive(Clone, Debug)]
pub struct PrefixedTestClient {
    client: TestClient,
    prefix: &'static str,
}

impl Deref for PrefixedTestClient {
    type Target = TestClient;

    fn deref(&self) -> &TestClient {
        &self.client
    }
}

impl PrefixedTestClient {
    /// Creates a client of the paths of a router below a prefix, such as `/api/3.0/mlflow/skills`.
    pub fn new(router: Router, prefix: &'static str) -> Self {
        Self { client: TestClient(router), prefix }
    }

    /// Sends a body to a path below the prefix.
    pub async fn send(&self, method: &str, path: &str, body: Value) -> TestResponse {
        self.client.call_at(method, &format!("{}{path}", self.prefix), body.to_string()).await
    }

    /// Sends a `GET` request to a path below the prefix.
    pub async fn read(&self, path: &str, arguments: &[(&str, &str)]) -> TestResponse {
        self.client.get_at(&format!("{}{path}", self.prefix), arguments).await
    }
}

/// A response.
#[derive(Clone, Debug, PartialEq)]
pub struct TestResponse {
    /// HTTP status.
    pub status: u16,
    /// Body: as JSON, or as a string if it is not JSON.
    pub body: Value,
}

impl TestClient {
    /// Sends a `POST` request to a path below `/api/2.0/mlflow/`.
    pub async fn post(&self, path: &str, body: Value) -> TestResponse {
        self.call("POST", path, body).await
    }

    /// Sends a body to a path below `/api/2.0/mlflow/`.
    pub async fn call(&self, method: &str, path: &str, body: Value) -> TestResponse {
        self.call_text(method, path, body.to_string()).await
    }

    /// Sends a body, which need not be JSON, to a path below `/api/2.0/mlflow/`.
    pub async fn call_text(&self, method: &str, path: &str, body: String) -> TestResponse {
        self.call_at(method, &format!("/api/2.0/mlflow/{path}"), body).await
    }

    /// Sends a body to a path.
    pub async fn call_at(&self, method: &str, path: &str, body: String) -> TestResponse {
        let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
        // Exports of spans name their experiment in a header. Tests may give the experiment as a
        // query of the path, from which it is copied into the header. The server ignores the query.
        let request = match path.strip_prefix("/v1/traces") {
            Some(rest) => request.header("x-mlflow-experiment-id", rest.strip_prefix("?experiment=").unwrap_or("0")),
            None => request,
        };
        self.send(request.body(Body::from(body)).unwrap()).await
    }

    /// Sends a `GET` request to a path below `/api/2.0/mlflow/`.
    pub async fn get(&self, path: &str, arguments: &[(&str, &str)]) -> TestResponse {
        self.get_at(&format!("/api/2.0/mlflow/{path}"), arguments).await
    }

    /// Sends a `GET` request to a path.
    pub async fn get_at(&self, path: &str, arguments: &[(&str, &str)]) -> TestResponse {
        let arguments: Vec<_> =
            arguments.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
        let uri = format!("{path}?{}", arguments.join("&"));
        self.send(Request::get(uri).body(Body::empty()).unwrap()).await
    }

    /// Sends any request.
    pub async fn send(&self, request: Request<Body>) -> TestResponse {
        let bytes =
            request.body().size_hint().exact().filter(|bytes| *bytes >= MIN_COUNTED_BODY_BYTES).unwrap_or_default();
        let room = u32::try_from(bytes.min(MAX_BODY_BYTES_IN_FLIGHT as u64)).unwrap();
        let _room = FREE_BODY_BYTES.acquire_many(room).await.unwrap();
        let response = self.0.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let text = || Value::from(String::from_utf8_lossy(&body).into_owned());
        TestResponse { status, body: serde_json::from_slice(&body).unwrap_or_else(|_| text()) }
    }
}

impl TestResponse {
    /// Checks that the request succeeded, and returns the body.
    #[track_caller]
    pub fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{}", self.body);
        self.body
    }

    /// Checks that the request was refused with this status and code, and returns the message.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> String {
        let found = (self.status, self.body["error_code"].as_str().unwrap_or_default());
        assert_eq!(found, (status, code), "{}", self.body);
        self.body["message"].as_str().unwrap().to_owned()
    }

    /// Checks that the request was refused because an entity is missing.
    #[track_caller]
    pub fn missing(self) {
        self.refused(404, "RESOURCE_DOES_NOT_EXIST");
    }

    /// Checks that a write was refused because the entity is deleted.
    #[track_caller]
    pub fn refused_as_deleted(self) {
        let message = self.refused(400, "INVALID_PARAMETER_VALUE");
        assert!(message.ends_with("must be in the 'active' state. Current state is deleted."), "{message}");
    }

    /// Returns whether MLflow's clients retry the request automatically.
    pub fn is_repeated(&self) -> bool {
        matches!(self.status, 408 | 429 | 500 | 502 | 503 | 504)
    }
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        write!(encoded, "%{byte:02X}").unwrap();
        encoded
    })
}
