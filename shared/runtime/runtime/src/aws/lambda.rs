//! Invocations of Lambda functions.

use std::time::Duration;

use aws_smithy_runtime_api::client::http::HttpConnector;
use bytes::Bytes;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::aws::client::{AwsResponse, RetryPolicy, SignedClient, SignedRequest};
use crate::aws::environment::AwsService;
use crate::aws::error::AwsError;

/// Maximum size of the payload of a synchronous invocation in bytes.
pub const MAX_PAYLOAD_BYTES: usize = 6 << 20;
/// Maximum size of the payload of an asynchronous invocation in bytes. AWS raised its limit in
/// 2025, but other servers with Lambda's API may still have this one.
pub const MAX_ASYNC_PAYLOAD_BYTES: usize = 256 << 10;
/// Timeout of an attempt to invoke a function asynchronously. Lambda responds when it has queued the
/// event.
const ASYNC_TIMEOUT: Duration = Duration::from_secs(5);

/// A client that invokes Lambda functions. The endpoint can be overridden with
/// `AWS_ENDPOINT_URL_LAMBDA`.
#[derive(Debug)]
pub struct LambdaClient {
    client: SignedClient,
}

impl LambdaClient {
    /// Returns a client with the region, the credentials and the endpoint of the environment.
    ///
    /// # Errors
    /// No region or no credentials are configured.
    pub async fn from_environment() -> Result<Self, AwsError> {
        Ok(Self { client: SignedClient::from_environment(AwsService::Lambda).await? })
    }

    /// Returns a client that sends requests over a connector, for tests.
    #[must_use]
    pub fn over(connector: impl HttpConnector + 'static) -> Self {
        Self { client: SignedClient::over(AwsService::Lambda, connector) }
    }

    /// Invokes a function asynchronously: returns when Lambda has queued the event. The function may
    /// be invoked more than once.
    ///
    /// # Errors
    /// The payload exceeds [`MAX_ASYNC_PAYLOAD_BYTES`], or Lambda did not accept the event.
    pub async fn invoke_async(&self, function: &str, payload: impl Into<Bytes>) -> Result<(), AwsError> {
        let payload = bounded(payload.into(), MAX_ASYNC_PAYLOAD_BYTES)?;
        self.send(function, "Event", payload, ASYNC_TIMEOUT, RetryPolicy::Idempotent).await.map(drop)
    }

    /// Invokes a function, and returns its response. The function is invoked at most once, so only
    /// throttling is retried.
    ///
    /// # Errors
    /// The payload exceeds [`MAX_PAYLOAD_BYTES`], the function failed, or it did not respond within
    /// the timeout.
    pub async fn invoke(
        &self,
        function: &str,
        payload: impl Into<Bytes>,
        timeout: Duration,
    ) -> Result<Bytes, AwsError> {
        let payload = bounded(payload.into(), MAX_PAYLOAD_BYTES)?;
        let response = self.send(function, "RequestResponse", payload, timeout, RetryPolicy::Once).await?;
        match response.header("x-amz-function-error") {
            Some(kind) => Err(AwsError::Function(kind.to_owned())),
            None => Ok(response.body),
        }
    }

    async fn send(
        &self,
        function: &str,
        kind: &str,
        body: Bytes,
        timeout: Duration,
        retry: RetryPolicy,
    ) -> Result<AwsResponse, AwsError> {
        let function = utf8_percent_encode(function, NON_ALPHANUMERIC);
        let path = format!("/2015-03-31/functions/{function}/invocations");
        let headers = [("content-type", "application/json".to_owned()), ("x-amz-invocation-type", kind.to_owned())];
        self.client.send(&SignedRequest { path: &path, headers: &headers, body, timeout, retry }).await
    }
}

fn bounded(payload: Bytes, limit: usize) -> Result<Bytes, AwsError> {
    if payload.len() > limit {
        return Err(AwsError::Broken(format!("a payload of {} bytes exceeds {limit} bytes", payload.len())));
    }
    Ok(payload)
}
