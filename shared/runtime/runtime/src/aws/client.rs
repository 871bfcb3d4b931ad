//! A client that signs requests to one service, and retries them.

use std::fmt;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};

use crate::aws::credentials::{CachedCredentials, chain};
use crate::aws::environment::{AwsEnvironment, AwsService, domain};
use crate::aws::error::AwsError;
use crate::aws::retries::RetryAttempts;
use crate::aws::signature::Signer;

/// Maximum size of a response in bytes. The largest responses are those of invoked Lambda
/// functions, which are limited to 6 MB.
const MAX_RESPONSE_BYTES: usize = 7 << 20;
/// Maximum number of characters of a service's error message that are kept.
const MAX_MESSAGE_CHARS: usize = 1000;
/// Error codes of throttled requests, which the service has rejected without executing them.
const THROTTLING: [&str; 3] = ["RequestLimitExceeded", "ThrottlingException", "TooManyRequestsException"];

/// Which failures of a request are retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPolicy {
    /// The request may be executed more than once. Throttling, server errors, timeouts and lost
    /// responses are retried.
    Idempotent,
    /// The request must not be executed more than once. Only throttling is retried.
    Once,
}

/// A request to a service.
#[derive(Debug)]
pub struct SignedRequest<'a> {
    /// The path, percent-encoded, with a leading slash.
    pub path: &'a str,
    /// Headers, whose names are in lower case.
    pub headers: &'a [(&'a str, String)],
    /// The body of the `POST` request.
    pub body: Bytes,
    /// Timeout of one attempt.
    pub timeout: Duration,
    /// Which failures are retried.
    pub retry: RetryPolicy,
}

/// A successful response.
#[derive(Debug)]
pub struct AwsResponse {
    status: u16,
    headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl AwsResponse {
    /// Returns the value of a header, whose name is given in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

/// The outcome of an attempt.
enum AttemptOutcome {
    Answered(AwsResponse),
    Refused(AwsError),
    Throttled(String),
    Failed(String),
}

/// A client that signs requests to one service.
pub struct SignedClient {
    service: AwsService,
    region: String,
    /// URL without a trailing slash.
    endpoint: String,
    credentials: CachedCredentials,
    connector: SharedHttpConnector,
}

impl fmt::Debug for SignedClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SignedClient").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl SignedClient {
    /// Returns a client with the region, the credentials and the endpoint of the environment. Sends
    /// no requests except those for credentials.
    ///
    /// # Errors
    /// No region or no credentials are configured.
    pub async fn from_environment(service: AwsService) -> Result<Self, AwsError> {
        let AwsEnvironment { region, endpoint, credentials } = AwsEnvironment::load(service).await?;
        let connector = crate::https::connector().map_err(AwsError::broken)?;
        let endpoint = endpoint.unwrap_or_else(|| format!("https://{}.{region}.{}", service.name(), domain(&region)));
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        Ok(Self { service, region, endpoint, credentials, connector })
    }

    /// Returns a client for tests, which sends requests over a connector, with dummy credentials
    /// and the region `r`.
    #[must_use]
    pub fn over(service: AwsService, connector: impl HttpConnector + 'static) -> Self {
        let credentials = Credentials::builder().access_key_id("id").secret_access_key("secret").provider_name("test");
        Self {
            service,
            region: "r".to_owned(),
            endpoint: format!("https://{}.r.amazonaws.com", service.name()),
            credentials: CachedCredentials::new(SharedCredentialsProvider::new(credentials.build())),
            connector: SharedHttpConnector::new(connector),
        }
    }

    /// Sends a request, and retries it according to its policy. Only successful responses are
    /// returned.
    ///
    /// # Errors
    /// The service rejected the request or did not respond, or there are no credentials.
    pub async fn send(&self, request: &SignedRequest<'_>) -> Result<AwsResponse, AwsError> {
        let mut attempts = RetryAttempts::new();
        let mut last = String::new();
        while attempts.next().await {
            last = match self.attempt(request).await? {
                AttemptOutcome::Answered(response) => return Ok(response),
                AttemptOutcome::Refused(error) => return Err(error),
                AttemptOutcome::Throttled(cause) => cause,
                AttemptOutcome::Failed(cause) if request.retry == RetryPolicy::Idempotent => cause,
                AttemptOutcome::Failed(cause) => {
                    return Err(AwsError::Unavailable { service: self.service.name(), cause });
                }
            };
            tracing::debug!(cause = last, service = self.service.name(), "retrying a request");
        }
        Err(AwsError::Unavailable { service: self.service.name(), cause: last })
    }

    async fn attempt(&self, request: &SignedRequest<'_>) -> Result<AttemptOutcome, AwsError> {
        let url = format!("{}{}", self.endpoint, request.path);
        let credentials = self.credentials.get().await.map_err(AwsError::Broken)?;
        let signer = Signer { service: self.service, credentials, region: &self.region, now: SystemTime::now() };
        let signature = signer.headers("POST", &url, request.headers, &request.body)?;
        let mut prepared = http::Request::builder().method("POST").uri(url);
        for (name, value) in request.headers {
            prepared = prepared.header(*name, value);
        }
        for (name, value) in signature {
            prepared = prepared.header(name, value);
        }
        let prepared = prepared.body(SdkBody::from(request.body.clone())).map_err(AwsError::broken)?;
        let prepared = HttpRequest::try_from(prepared).map_err(AwsError::broken)?;
        Ok(match tokio::time::timeout(request.timeout, self.exchange(prepared)).await {
            Err(_) => AttemptOutcome::Failed("the request timed out".to_owned()),
            Ok(Err(cause)) => AttemptOutcome::Failed(cause),
            Ok(Ok(response)) => self.classify(response),
        })
    }

    async fn exchange(&self, request: HttpRequest) -> Result<AwsResponse, String> {
        let mut response = self.connector.call(request).await.map_err(|error| chain(&error))?;
        let body =
            Limited::new(response.take_body(), MAX_RESPONSE_BYTES).collect().await.map_err(|error| chain(&*error))?;
        let headers = response.headers().iter().map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        Ok(AwsResponse { status: response.status().as_u16(), headers, body: body.to_bytes() })
    }

    /// Classifies a response as a success, a permanent error, or a transient error.
    fn classify(&self, response: AwsResponse) -> AttemptOutcome {
        let status = response.status;
        if (200..300).contains(&status) {
            return AttemptOutcome::Answered(response);
        }
        let (code, message) = error_of(&response);
        let cause = || format!("{status} {code}: {message}");
        if status == 429 || THROTTLING.contains(&code.as_str()) {
            AttemptOutcome::Throttled(cause())
        } else if status >= 500 {
            AttemptOutcome::Failed(cause())
        } else {
            AttemptOutcome::Refused(AwsError::Refused { service: self.service.name(), status, code, message })
        }
    }
}

/// Returns the code and the message of an error response. Services send the code in a header or in
/// the body. A namespace before the code (`namespace#Code`) or a URL after it (`Code:https://…`) is
/// removed.
fn error_of(response: &AwsResponse) -> (String, String) {
    let body: serde_json::Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let text = |name: &str| body.get(name).and_then(serde_json::Value::as_str);
    let code = response.header("x-amzn-errortype").or_else(|| text("__type")).unwrap_or_default();
    let code = code.split(':').next().unwrap_or_default().rsplit('#').next().unwrap_or_default();
    let message = text("message").or_else(|| text("Message")).unwrap_or_default();
    let short = |text: &str| text.chars().take(MAX_MESSAGE_CHARS).collect();
    (short(code), short(message))
}
