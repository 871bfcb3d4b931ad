//! The engine over HTTP, for clients that have its access key.

use std::io;
use std::net::SocketAddr;
use std::time::SystemTime;

use aws_sdk_dynamodb::Client;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use local_guard::AllowedNames;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::access_key::AccessKey;
use crate::aws_json::{self, EngineResponse};
use crate::connector::InProcessEngine;
use crate::operations::{self, MAX_REQUEST_BYTES};
use crate::{EngineError, client_with_key};

/// A server for an engine on a loopback port. Dropping this value stops the server, without waiting
/// for requests in flight.
///
/// The server only executes requests that are signed with its [access key](Self::access_key). It
/// rejects all requests from a page in a browser.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    access_key: AccessKey,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), String>>,
}

impl Server {
    pub(crate) async fn start(engine: InProcessEngine, address: SocketAddr) -> Result<Self, EngineError> {
        // Only loopback addresses are allowed. Signatures do not encrypt, so requests and responses
        // could otherwise be read on the network.
        if !address.ip().is_loopback() {
            let refusal = format!("{address} is not a loopback address");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, refusal).into());
        }
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let access_key = AccessKey::random();
        let app = Router::new().fallback(answer).with_state((engine, access_key.clone()));
        let app = local_guard::protect(app, AllowedNames::new(&address.ip().to_string(), &[]));
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let stopped = async {
                // An error means that the handle was dropped, which also stops the server.
                let _ = stopped.await;
            };
            axum::serve(listener, app).with_graceful_shutdown(stopped).await.map_err(|error| error.to_string())
        });
        Ok(Self { address, access_key, stop, task })
    }

    /// Returns the address that the server listens on, with the actual port if port 0 was
    /// requested.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address as an endpoint of the AWS SDK.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the key that requests have to be signed with. It is generated when the server
    /// starts, and is not stored.
    #[must_use]
    pub fn access_key(&self) -> &AccessKey {
        &self.access_key
    }

    /// Returns a client of this server.
    #[must_use]
    pub fn client(&self) -> Client {
        client_with_key(&self.url(), &self.access_key)
    }

    /// Stops accepting connections, and returns when the requests in flight are answered.
    pub async fn shutdown(self) -> Result<(), EngineError> {
        // An error means that the server has already stopped. The task then returns the reason.
        let _ = self.stop.send(());
        self.task.await?.map_err(EngineError::Server)
    }
}

async fn answer(State((engine, access_key)): State<(InProcessEngine, AccessKey)>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_REQUEST_BYTES).await else { return operations::too_long().into_response() };
    if let Err(refusal) = access_key.check(SystemTime::now(), &parts, &body) {
        return refusal.into_answer().into_response();
    }
    let target = parts.headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
    let operation = aws_json::operation_named(target).to_owned();
    match engine.call(operation, body.to_vec()).await {
        Some(answer) => answer.into_response(),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

impl IntoResponse for EngineResponse {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, [(CONTENT_TYPE, crate::aws_json::CONTENT_TYPE)], Body::from(self.body)).into_response()
    }
}
