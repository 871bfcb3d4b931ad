//! Signed requests to the AWS APIs that describe a stack.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_config::{BehaviorVersion, Region};
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::DateTime;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::date_time::Format;
use http_body_util::BodyExt;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::xml::{self, XmlElement};
use crate::signing::{self, Signature};
use crate::{Failure, credentials};

/// Timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum clock skew in seconds that AWS accepts in signatures. If this machine's clock is off by
/// more, requests are signed with the time of AWS's clock.
pub(super) const MAX_CLOCK_SKEW_SECONDS: i64 = 300;
/// Characters that are percent-encoded: all except the unreserved ones of RFC 3986.
const ENCODED_CHARACTERS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// An AWS service: the first label of its host name, and its name in signatures.
#[derive(Clone, Copy, Debug)]
struct Service {
    host: &'static str,
    name: &'static str,
    is_global: bool,
}

const CLOUDFORMATION: Service = Service { host: "cloudformation", name: "cloudformation", is_global: false };
const CLOUDWATCH: Service = Service { host: "monitoring", name: "monitoring", is_global: false };
const DYNAMODB: Service = Service { host: "dynamodb", name: "dynamodb", is_global: false };
const IAM: Service = Service { host: "iam", name: "iam", is_global: true };
const LAMBDA: Service = Service { host: "lambda", name: "lambda", is_global: false };
const S3: Service = Service { host: "s3", name: "s3", is_global: false };

/// The reason why a request for a fact failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnreadFact {
    pub(super) request: String,
    pub(super) code: String,
    pub(super) message: String,
    /// The actual region of the bucket, if S3 reports a different one.
    pub(super) bucket_region: Option<String>,
}

impl fmt::Display for UnreadFact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} {}", self.request, self.code, self.message)
    }
}

struct Answer {
    status: u16,
    bucket_region: Option<String>,
    body: String,
}

/// A client for the AWS APIs of one region, with the caller's credentials.
pub(super) struct AwsRequests {
    provider: SharedCredentialsProvider,
    /// The caller's credentials. They are cached, because those of a role are obtained over the
    /// network.
    credentials: OnceCell<Credentials>,
    pub(super) region: String,
    /// Endpoint to which the requests to all services are sent, for example that of an emulator.
    endpoint: Option<String>,
    connector: SharedHttpConnector,
    /// Seconds by which AWS's clock is ahead of this machine's clock.
    ahead: AtomicI64,
}

impl AwsRequests {
    /// Creates the client from the AWS configuration of the environment.
    ///
    /// # Errors
    /// No region or no credentials are configured.
    pub(super) async fn new(region: Option<String>) -> Result<Self, Failure> {
        let config = aws_config::defaults(BehaviorVersion::latest());
        let config = match runtime::https::client()? {
            Some(client) => config.http_client(client),
            None => config,
        };
        let config = match region {
            Some(region) => config.region(Region::new(region)),
            None => config,
        };
        let config = config.load().await;
        let region = config.region().ok_or("no AWS region is configured: set AWS_REGION, or use --region")?.to_string();
        Ok(Self {
            provider: credentials::find_provider(&config, "AWS").await?,
            credentials: OnceCell::new(),
            region,
            endpoint: config.endpoint_url().map(|url| url.trim_end_matches('/').to_owned()),
            connector: runtime::https::connector()?,
            ahead: AtomicI64::new(0),
        })
    }

    /// Returns by how many seconds AWS's clock is ahead of this machine's clock. The time is taken
    /// from a response header, which every response has.
    pub(super) async fn ahead(&self) -> Result<i64, Failure> {
        let url = self.url(CLOUDFORMATION, "/");
        let request = http::Request::get(&url).body(SdkBody::empty())?;
        let answer = timeout(REQUEST_TIMEOUT, self.connector.call(HttpRequest::try_from(request)?)).await;
        let answer = answer.map_err(|_| format!("{url} does not respond"))?;
        let answer = answer.map_err(|error| format!("cannot reach {url}: {}", credentials::with_causes(&error)))?;
        let here = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let there = answer.headers().get("date").and_then(|date| DateTime::from_str(date, Format::HttpDate).ok());
        let ahead = there.map_or(0, |there| there.secs() - i64::try_from(here).unwrap_or_default());
        if ahead.abs() > MAX_CLOCK_SKEW_SECONDS {
            self.ahead.store(ahead, Ordering::Relaxed);
        }
        Ok(ahead)
    }

    /// Returns the current time by AWS's clock, in ms since 1970.
    pub(super) fn now_ms(&self) -> i64 {
        entities::now_ms() + self.ahead.load(Ordering::Relaxed) * 1_000
    }

    pub(super) async fn cloudformation(
        &self,
        action: &str,
        parameters: &[(&str, &str)],
    ) -> Result<XmlElement, UnreadFact> {
        self.query(CLOUDFORMATION, "2010-05-15", action, parameters).await
    }

    pub(super) async fn iam(&self, action: &str, parameters: &[(&str, &str)]) -> Result<XmlElement, UnreadFact> {
        self.query(IAM, "2010-05-08", action, parameters).await
    }

    pub(super) async fn cloudwatch(&self, action: &str, parameters: &[(&str, &str)]) -> Result<XmlElement, UnreadFact> {
        self.query(CLOUDWATCH, "2010-08-01", action, parameters).await
    }

    pub(super) async fn dynamodb(&self, operation: &str, request: &Value) -> Result<Value, UnreadFact> {
        let target = format!("DynamoDB_20120810.{operation}");
        let headers = [("content-type", "application/x-amz-json-1.0"), ("x-amz-target", target.as_str())];
        let asked = format!("dynamodb:{operation}");
        let answer = self.send(DYNAMODB, &asked, "POST", "/", &headers, &request.to_string()).await?;
        json(&asked, &answer)
    }

    pub(super) async fn lambda(&self, action: &str, path: &str) -> Result<Value, UnreadFact> {
        let asked = format!("lambda:{action}");
        let answer = self.send(LAMBDA, &asked, "GET", path, &[], "").await?;
        json(&asked, &answer)
    }

    /// Reads a part of a bucket's configuration, such as `cors`.
    pub(super) async fn bucket(&self, action: &str, bucket: &str, part: &str) -> Result<XmlElement, UnreadFact> {
        let asked = format!("s3:{action}");
        let answer = self.send(S3, &asked, "GET", &format!("/{bucket}?{part}"), &[], "").await?;
        element(&asked, &answer)
    }

    async fn query(
        &self,
        service: Service,
        version: &str,
        action: &str,
        parameters: &[(&str, &str)],
    ) -> Result<XmlElement, UnreadFact> {
        let mut body = format!("Action={action}&Version={version}");
        for (name, value) in parameters {
            let _ = write!(body, "&{name}={}", utf8_percent_encode(value, ENCODED_CHARACTERS));
        }
        let headers = [("content-type", "application/x-www-form-urlencoded; charset=utf-8")];
        let asked = format!("{}:{action}", if service.host == "monitoring" { "cloudwatch" } else { service.name });
        let answer = self.send(service, &asked, "POST", "/", &headers, &body).await?;
        element(&asked, &answer)
    }

    async fn send(
        &self,
        service: Service,
        asked: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Answer, UnreadFact> {
        let sent = timeout(REQUEST_TIMEOUT, self.send_now(service, method, path, headers, body)).await;
        let sent = sent.unwrap_or_else(|_| Err("the request timed out".into()));
        sent.map_err(|error| unread(asked, "Unreachable", &error.to_string()))
    }

    async fn send_now(
        &self,
        service: Service,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Answer, Failure> {
        let url = self.url(service, path);
        let region = if service.is_global { home_of(&self.region) } else { self.region.as_str() };
        let ahead = self.ahead.load(Ordering::Relaxed);
        let time = SystemTime::now();
        let apart = Duration::from_secs(ahead.unsigned_abs());
        let time = if ahead < 0 { time - apart } else { time + apart };
        let signature = Signature { service: service.name, region, time };
        let credentials = self.credentials.get_or_try_init(|| self.provider.provide_credentials()).await?.clone();
        let signed = signing::headers(credentials, signature, method, &url, headers.iter().copied(), body.as_bytes())?;
        let mut request = http::Request::builder().method(method).uri(&url).body(SdkBody::from(body))?;
        let signed = signed.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in headers.iter().copied().chain(signed) {
            request.headers_mut().insert(http::HeaderName::from_bytes(name.as_bytes())?, value.parse()?);
        }
        let answer = self.connector.call(HttpRequest::try_from(request)?).await?;
        let status = answer.status().as_u16();
        let bucket_region = answer.headers().get("x-amz-bucket-region").map(str::to_owned);
        let body = answer.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
        Ok(Answer { status, bucket_region, body: String::from_utf8_lossy(&body).into_owned() })
    }

    fn url(&self, service: Service, path: &str) -> String {
        match &self.endpoint {
            Some(endpoint) => format!("{endpoint}{path}"),
            None => format!("https://{}{path}", host(service, &self.region)),
        }
    }
}

/// Returns the host of a service in a region, for each of the AWS partitions.
fn host(service: Service, region: &str) -> String {
    let Service { host, is_global, .. } = service;
    match (is_global, region.split('-').take(2).collect::<Vec<_>>().as_slice()) {
        (true, ["cn", _]) => format!("{host}.{}.amazonaws.com.cn", home_of(region)),
        (true, ["us", "gov"]) => format!("{host}.us-gov.amazonaws.com"),
        (true, _) => format!("{host}.amazonaws.com"),
        (false, ["cn", _]) => format!("{host}.{region}.amazonaws.com.cn"),
        (false, _) => format!("{host}.{region}.amazonaws.com"),
    }
}

/// Returns the region that is used to sign requests to global services such as IAM.
fn home_of(region: &str) -> &'static str {
    if region.starts_with("cn-") {
        "cn-north-1"
    } else if region.starts_with("us-gov-") {
        "us-gov-west-1"
    } else {
        "us-east-1"
    }
}

fn unread(asked: &str, code: &str, message: &str) -> UnreadFact {
    UnreadFact { request: asked.to_owned(), code: code.to_owned(), message: message.to_owned(), bucket_region: None }
}

fn json(asked: &str, answer: &Answer) -> Result<Value, UnreadFact> {
    let said: Value = serde_json::from_str(&answer.body)
        .map_err(|_| unread(asked, &answer.status.to_string(), "the response is not JSON"))?;
    if answer.status == 200 {
        return Ok(said);
    }
    let text = |names: &[&str]| names.iter().find_map(|name| said[*name].as_str()).unwrap_or_default().to_owned();
    let code = text(&["__type", "Type", "code", "Code"]);
    let code = code.rsplit('#').next().unwrap_or_default();
    let code = if code.is_empty() || code == "User" { answer.status.to_string() } else { code.to_owned() };
    Err(unread(asked, &code, &text(&["message", "Message"])))
}

fn element(asked: &str, answer: &Answer) -> Result<XmlElement, UnreadFact> {
    let said = xml::parse(&answer.body);
    if answer.status == 200 {
        return said.ok_or_else(|| unread(asked, "200", "the response is not XML"));
    }
    let said = said.unwrap_or_default();
    // In an error response of S3, the root element is the error itself.
    let error = said.child("Error").unwrap_or(&said);
    let code = error.text_of("Code");
    let code = if code.is_empty() { answer.status.to_string() } else { code.to_owned() };
    let said_region = Some(error.text_of("Region").to_owned()).filter(|region| !region.is_empty());
    let bucket_region = answer.bucket_region.clone().or(said_region);
    Err(UnreadFact { bucket_region, ..unread(asked, &code, error.text_of("Message")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_partition_has_its_hosts() {
        for (service, region, expected) in [
            (LAMBDA, "eu-central-1", "lambda.eu-central-1.amazonaws.com"),
            (IAM, "eu-central-1", "iam.amazonaws.com"),
            (IAM, "cn-northwest-1", "iam.cn-north-1.amazonaws.com.cn"),
            (CLOUDWATCH, "cn-north-1", "monitoring.cn-north-1.amazonaws.com.cn"),
            (IAM, "us-gov-east-1", "iam.us-gov.amazonaws.com"),
            (S3, "us-gov-east-1", "s3.us-gov-east-1.amazonaws.com"),
        ] {
            assert_eq!(host(service, region), expected);
        }
    }

    #[test]
    fn refusals_are_told_with_their_code() {
        let answer = |body: &str| Answer { status: 400, bucket_region: None, body: body.to_owned() };
        let refused = json("lambda:GetFunction", &answer(r#"{"Type":"User","Message":"no"}"#)).unwrap_err();
        assert_eq!(refused.to_string(), "lambda:GetFunction: 400 no");
        let said = r#"{"__type":"com.amazonaws#AccessDeniedException","message":"no"}"#;
        assert_eq!(json("a", &answer(said)).unwrap_err().code, "AccessDeniedException");
        let said = "<ErrorResponse><Error><Code>Throttling</Code><Message>later</Message></Error></ErrorResponse>";
        assert_eq!(element("a", &answer(said)).unwrap_err().to_string(), "a: Throttling later");
        let said = "<Error><Code>AuthorizationHeaderMalformed</Code><Region>us-west-2</Region></Error>";
        assert_eq!(element("a", &answer(said)).unwrap_err().bucket_region.as_deref(), Some("us-west-2"));
    }
}
