//! Sends signed requests to a bucket over HTTP, with retries.

use std::fmt;
use std::time::{Duration, SystemTime};

use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::http::Response;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use runtime::aws::{AwsEnvironment, AwsService, CachedCredentials, RetryAttempts, Signer, chain};

use crate::bucket::address::BucketAddress;
use crate::bucket::failure::{BucketFailure, Result};
use crate::bucket::xml;

/// Maximum size of a response in bytes. Lists are the largest: 1,000 keys of 1 KB, in which each
/// byte may be encoded as three.
const MAX_RESPONSE_BYTES: usize = 16 << 20;
/// Maximum number of bytes of an object that one request reads.
pub const MAX_RANGE_BYTES: usize = MAX_RESPONSE_BYTES;
/// The HTTP status of a response with a range of an object.
const PARTIAL_CONTENT: u16 = 206;
/// Timeout of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// Assumed minimum upload speed in bytes per second. A laptop's connection may be slow.
const MIN_UPLOAD_SPEED: usize = 100_000;

/// A request to the bucket or to one of its keys.
pub(crate) struct BucketRequest<'a> {
    pub(crate) method: &'static str,
    pub(crate) key: &'a str,
    pub(crate) query: &'a [(&'a str, &'a str)],
    pub(crate) headers: &'a [(&'a str, String)],
    pub(crate) body: Bytes,
    /// Timeout of one attempt, not counting the time for sending the body.
    pub(crate) attempt: Duration,
}

impl<'a> BucketRequest<'a> {
    pub(crate) fn new(method: &'static str, key: &'a str) -> Self {
        Self { method, key, query: &[], headers: &[], body: Bytes::new(), attempt: ATTEMPT_TIMEOUT }
    }
}

/// A successful response.
pub(crate) struct BucketResponse {
    response: Response<()>,
    /// The body as text. Empty if the response contains a range of an object.
    pub(crate) body: String,
    /// The requested range of an object. Empty for all other responses.
    pub(crate) content: Bytes,
}

impl BucketResponse {
    pub(crate) fn header(&self, name: &'static str) -> Option<&str> {
        self.response.headers().get(name)
    }

    /// Returns whether the response contains a range of an object.
    pub(crate) fn is_range(&self) -> bool {
        self.response.status().as_u16() == PARTIAL_CONTENT
    }
}

/// The outcome of an attempt.
enum AttemptOutcome {
    Answered(BucketResponse),
    Refused(BucketFailure),
    Again(String),
}

/// A bucket's address, with the credentials for it.
pub(crate) struct Connection {
    pub(crate) address: BucketAddress,
    pub(crate) region: String,
    credentials: CachedCredentials,
    connector: SharedHttpConnector,
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects to a bucket, with the region, the credentials and the optional endpoint of the
    /// environment. Sends no requests except those for credentials.
    pub(crate) async fn from_environment(bucket: &str) -> Result<Self> {
        let AwsEnvironment { region, endpoint, credentials } = AwsEnvironment::load(AwsService::S3).await?;
        let connector = runtime::https::connector().map_err(BucketFailure::broken)?;
        Ok(Self { address: BucketAddress::new(bucket, &region, endpoint.as_deref()), region, credentials, connector })
    }

    /// Connects to the bucket `b` over a connector, with dummy credentials.
    pub(crate) fn over(connector: impl HttpConnector + 'static) -> Self {
        use aws_credential_types::Credentials;
        use aws_credential_types::provider::SharedCredentialsProvider;

        let credentials = Credentials::builder().access_key_id("id").secret_access_key("secret").provider_name("test");
        Self {
            address: BucketAddress::new("b", "r", None),
            region: "r".to_owned(),
            credentials: CachedCredentials::new(SharedCredentialsProvider::new(credentials.build())),
            connector: SharedHttpConnector::new(connector),
        }
    }

    /// Returns a signer for requests at the current time.
    pub(crate) async fn signer(&self) -> Result<Signer<'_>> {
        let credentials = self.credentials.get().await.map_err(BucketFailure::Broken)?;
        Ok(Signer { service: AwsService::S3, credentials, region: &self.region, now: SystemTime::now() })
    }

    /// Sends a request, and retries transient failures. Only successful responses are returned.
    pub(crate) async fn send(&self, request: BucketRequest<'_>) -> Result<BucketResponse> {
        let url = self.address.url(request.key, request.query);
        let mut attempts = RetryAttempts::new();
        let mut last = String::new();
        while attempts.next().await {
            match self.attempt(&url, &request).await? {
                AttemptOutcome::Answered(reply) => return Ok(reply),
                AttemptOutcome::Refused(failure) => return Err(failure),
                AttemptOutcome::Again(cause) => {
                    tracing::debug!(cause, "retrying a request to the bucket");
                    last = cause;
                }
            }
        }
        Err(BucketFailure::Unavailable(last))
    }

    async fn attempt(&self, url: &str, request: &BucketRequest<'_>) -> Result<AttemptOutcome> {
        let signed = self.signer().await?.headers(request.method, url, request.headers, &request.body)?;
        let mut prepared = http::Request::builder().method(request.method).uri(url);
        for (name, value) in request.headers {
            prepared = prepared.header(*name, value);
        }
        for (name, value) in signed {
            prepared = prepared.header(name, value);
        }
        let prepared = prepared.body(SdkBody::from(request.body.clone())).map_err(BucketFailure::broken)?;
        let prepared = HttpRequest::try_from(prepared).map_err(BucketFailure::broken)?;
        let for_body = Duration::from_secs((request.body.len() / MIN_UPLOAD_SPEED) as u64);
        let exchange = tokio::time::timeout(request.attempt + for_body, self.exchange(prepared));
        Ok(match exchange.await {
            Err(_) => AttemptOutcome::Again("the request timed out".to_owned()),
            Ok(Err(cause)) => AttemptOutcome::Again(cause),
            Ok(Ok(reply)) => classify(reply),
        })
    }

    async fn exchange(&self, request: HttpRequest) -> Result<BucketResponse, String> {
        let mut response = self.connector.call(request).await.map_err(|error| chain(&error))?;
        let body =
            Limited::new(response.take_body(), MAX_RESPONSE_BYTES).collect().await.map_err(|error| chain(&*error))?;
        let (response, body) = (response.map(|_| ()), body.to_bytes());
        // Only responses to requests with the header `Range` have this status.
        if response.status().as_u16() == PARTIAL_CONTENT {
            return Ok(BucketResponse { response, body: String::new(), content: body });
        }
        let body = String::from_utf8_lossy(&body).into_owned();
        Ok(BucketResponse { response, body, content: Bytes::new() })
    }
}

/// Classifies a response as a success, a permanent error, or a transient error. The body is checked
/// as well, for two reasons: S3 may start a response with a success status and end it with an
/// error, and a captive portal or a proxy between a laptop and S3 may respond with an HTML page.
fn classify(reply: BucketResponse) -> AttemptOutcome {
    let status = reply.response.status().as_u16();
    let begin = reply.body.trim_start().get(..9).unwrap_or_default().to_lowercase();
    if begin == "<!doctype" || begin.starts_with("<html") {
        return AttemptOutcome::Again(format!("an HTML page with status {status}, which is not from the bucket"));
    }
    let error = xml::error(&reply.body);
    if (200..300).contains(&status) && error.is_none() {
        return AttemptOutcome::Answered(reply);
    }
    let (code, message) = error.unwrap_or_default();
    match BucketFailure::of_code(status, code, message) {
        BucketFailure::Unavailable(cause) => AttemptOutcome::Again(cause),
        failure => AttemptOutcome::Refused(failure),
    }
}
