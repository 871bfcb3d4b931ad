//! Requests to providers.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use thiserror::Error;
use url::Url;
use zeroize::Zeroizing;

/// Maximum size of a response in bytes.
pub const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// Timeout of a request, including the response.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of establishing a connection. It is shorter than [`TIMEOUT`], so that a provider that
/// cannot be reached is told from one that does not respond.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Sends requests to providers. Tests replace it.
pub trait ProviderTransport: fmt::Debug + Send + Sync + 'static {
    /// Sends a request, once. Redirects are not followed. Like error statuses, they are returned as
    /// responses.
    fn send(&self, request: ProviderRequest) -> BoxFuture<'_, Result<ProviderResponse, TransportError>>;
}

/// A request to a provider. `Debug` prints neither the body nor credentials.
pub struct ProviderRequest {
    /// The URL.
    pub url: Url,
    /// Value of the header `Authorization`.
    pub authorization: Option<Zeroizing<String>>,
    /// Fields of the form that a `POST` request sends. A request without a form is a `GET`.
    pub form: Option<Zeroizing<String>>,
}

impl ProviderRequest {
    /// Returns a `GET` request without credentials.
    #[must_use]
    pub fn get(url: Url) -> Self {
        Self { url, authorization: None, form: None }
    }
}

impl fmt::Debug for ProviderRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = if self.form.is_some() { "POST" } else { "GET" };
        write!(formatter, "ProviderRequest({method} {})", self.url)
    }
}

/// A response of a provider. `Debug` does not print the body, which may contain tokens.
pub struct ProviderResponse {
    /// The status.
    pub status: u16,
    /// The body, at most [`MAX_RESPONSE_BYTES`].
    pub body: Bytes,
}

impl fmt::Debug for ProviderResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ProviderResponse({}, {} bytes)", self.status, self.body.len())
    }
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TransportError {
    /// No connection was established, so the request was certainly not sent.
    #[error("no connection: {0}")]
    NotSent(String),
    /// The request may have been sent, and executed.
    #[error("no response: {0}")]
    MaybeSent(String),
    /// The response exceeds [`MAX_RESPONSE_BYTES`].
    #[error("the response is larger than {MAX_RESPONSE_BYTES} bytes")]
    TooLarge,
}

/// Requests over HTTPS, with the root certificates of this machine.
#[derive(Debug)]
pub struct HttpsTransport {
    connector: SharedHttpConnector,
}

impl HttpsTransport {
    /// Returns a transport. Opens no connection.
    ///
    /// # Errors
    /// The root certificates cannot be read.
    pub fn new() -> Result<Self, String> {
        Ok(Self { connector: runtime::https::connector_without_pool(CONNECT_TIMEOUT)? })
    }

    async fn exchange(&self, request: ProviderRequest) -> Result<ProviderResponse, TransportError> {
        let request = prepared(request).map_err(TransportError::NotSent)?;
        let mut response = self.connector.call(request).await.map_err(|error| {
            let cause = chain(&error);
            if is_connect(&error) { TransportError::NotSent(cause) } else { TransportError::MaybeSent(cause) }
        })?;
        let status = response.status().as_u16();
        let body = Limited::new(response.take_body(), MAX_RESPONSE_BYTES).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                TransportError::TooLarge
            } else {
                TransportError::MaybeSent(chain(&*error))
            }
        })?;
        Ok(ProviderResponse { status, body: body.to_bytes() })
    }
}

impl ProviderTransport for HttpsTransport {
    fn send(&self, request: ProviderRequest) -> BoxFuture<'_, Result<ProviderResponse, TransportError>> {
        Box::pin(async move {
            let timed_out = || Err(TransportError::MaybeSent("the request timed out".to_owned()));
            tokio::time::timeout(TIMEOUT, self.exchange(request)).await.unwrap_or_else(|_| timed_out())
        })
    }
}

fn prepared(request: ProviderRequest) -> Result<HttpRequest, String> {
    let ProviderRequest { url, authorization, form } = request;
    let method = if form.is_some() { "POST" } else { "GET" };
    let mut prepared = http::Request::builder().method(method).uri(url.as_str()).header("accept", "application/json");
    if let Some(authorization) = &authorization {
        prepared = prepared.header("authorization", authorization.as_str());
    }
    let body = match &form {
        Some(form) => {
            prepared = prepared.header("content-type", "application/x-www-form-urlencoded");
            SdkBody::from(form.as_bytes())
        }
        None => SdkBody::empty(),
    };
    let prepared = prepared.body(body).map_err(|error| error.to_string())?;
    HttpRequest::try_from(prepared).map_err(|error| error.to_string())
}

/// Checks whether an error occurred before the connection was established.
fn is_connect(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(current) = next {
        if current
            .downcast_ref::<hyper_util::client::legacy::Error>()
            .is_some_and(hyper_util::client::legacy::Error::is_connect)
        {
            return true;
        }
        next = current.source();
    }
    false
}

/// Returns the messages of an error and its causes.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut messages = vec![error.to_string()];
    let mut next = error.source();
    while let Some(cause) = next {
        let message = cause.to_string();
        if messages.last() != Some(&message) {
            messages.push(message);
        }
        next = cause.source();
    }
    messages.join(": ")
}

#[cfg(test)]
mod tests;
