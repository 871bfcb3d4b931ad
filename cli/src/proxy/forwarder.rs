//! Forwards a request to the API, and to the bucket if the API redirects there.

use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;

use crate::credentials::with_causes;
use crate::proxy::refusal::{MAX_BODY_BYTES, ProxyRefusal};
use crate::proxy::signer::RequestSigner;
use crate::proxy::tracking_uri::{TrackingUri, is_loopback, may_be_here};
use crate::proxy::{forwarded_headers, normalized_target};

/// Maximum time until a response begins. API Gateway limits a function to 30 s.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(2);
/// Maximum number of redirects. S3 itself may redirect to another region.
const MAX_REDIRECTS: usize = 3;
/// Maximum length of an error that API Gateway itself generates, which is a single sentence.
const MAX_GATEWAY_ERROR_BYTES: u64 = 64 << 10;

/// Client of the API.
pub(crate) struct Forwarder {
    tracking_uri: TrackingUri,
    signer: RequestSigner,
    connector: SharedHttpConnector,
}

/// A request whose body is in memory, so that it can be sent repeatedly.
struct OutgoingRequest {
    method: Method,
    headers: HeaderMap,
    body: Bytes,
}

type UpstreamResponse = http::Response<SdkBody>;

pub(crate) async fn forward(State(forwarder): State<Arc<Forwarder>>, request: Request) -> Response {
    forwarder.answer(request).await.unwrap_or_else(IntoResponse::into_response)
}

impl Forwarder {
    pub(crate) fn new(tracking_uri: TrackingUri, signer: RequestSigner, connector: SharedHttpConnector) -> Self {
        Self { tracking_uri, signer, connector }
    }

    async fn answer(&self, request: Request) -> Result<Response, ProxyRefusal> {
        let (parts, body) = request.into_parts();
        if matches!(parts.method, Method::CONNECT | Method::TRACE) {
            return Err(ProxyRefusal::Method);
        }
        let target = normalized_target::target(parts.uri.path(), parts.uri.query()).ok_or(ProxyRefusal::Unsigned)?;
        let url = format!("{}{target}", self.tracking_uri);
        let headers = forwarded_headers::to_api(&parts.method, parts.uri.path(), &parts.headers);
        let outgoing = OutgoingRequest { method: parts.method, headers, body: read_body(body).await? };
        let answered = self.ask_api(&url, &outgoing).await?;
        let Some(bucket) = self.bucket_redirect(&answered)? else { return self.of_api(answered).await };
        let answered = self.ask_bucket(bucket, outgoing, answered.status()).await?;
        of_bucket(answered)
    }

    async fn ask_api(&self, url: &str, outgoing: &OutgoingRequest) -> Result<UpstreamResponse, ProxyRefusal> {
        let OutgoingRequest { method, headers, body } = outgoing;
        let mut headers = headers.clone();
        for (name, value) in
            self.signer.sign(method.as_str(), url, &forwarded_headers::signed_headers(&headers), body).await?
        {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(ProxyRefusal::unsigned)?;
            headers.insert(name, HeaderValue::from_str(&value).map_err(ProxyRefusal::unsigned)?);
        }
        self.send(url, method, headers, body.clone()).await
    }

    /// Sends the request to the bucket and follows redirects until a file is returned. The API's
    /// signature is not sent, because each redirect's URL contains a signature for the bucket.
    async fn ask_bucket(
        &self,
        first: Uri,
        outgoing: OutgoingRequest,
        first_status: StatusCode,
    ) -> Result<UpstreamResponse, ProxyRefusal> {
        let OutgoingRequest { mut method, headers, mut body } = outgoing;
        let mut headers = forwarded_headers::to_bucket(&headers);
        let (mut url, mut status) = (first, first_status);
        for _ in 0..MAX_REDIRECTS {
            if is_for_get(status, &method) {
                (method, body) = (Method::GET, Bytes::new());
                headers.remove(http::header::CONTENT_TYPE);
            }
            let answered = self.send(&url.to_string(), &method, headers.clone(), body.clone()).await?;
            let Some(location) = location(&answered) else { return Ok(answered) };
            status = answered.status();
            url = self.allowed_redirect(resolved(location, &url)).ok_or(ProxyRefusal::ForbiddenRedirect)?;
        }
        Err(ProxyRefusal::ForbiddenRedirect)
    }

    async fn send(
        &self,
        url: &str,
        method: &Method,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<UpstreamResponse, ProxyRefusal> {
        // S3 accepts neither chunked bodies nor empty bodies without a length.
        if !body.is_empty() || matches!(*method, Method::PUT | Method::POST | Method::PATCH) {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        let mut request = http::Request::builder()
            .method(method)
            .uri(url)
            .body(SdkBody::from(body))
            .map_err(ProxyRefusal::unsigned)?;
        *request.headers_mut() = headers;
        let request = HttpRequest::try_from(request).map_err(ProxyRefusal::unsigned)?;
        let unreachable = |error: &dyn std::error::Error| {
            tracing::debug!(error = with_causes(error), "a request failed");
            ProxyRefusal::Unreachable { origin: origin_of(url) }
        };
        let answered = tokio::time::timeout(RESPONSE_TIMEOUT, self.connector.call(request)).await;
        let answered = answered
            .map_err(|_| ProxyRefusal::Timeout { origin: origin_of(url) })?
            .map_err(|error| unreachable(&error))?;
        answered.try_into_http1x().map_err(|error| unreachable(&error))
    }

    /// Returns the URL of the bucket if the API redirects to one. Redirects to the API itself are
    /// left to the browser.
    fn bucket_redirect(&self, answered: &UpstreamResponse) -> Result<Option<Uri>, ProxyRefusal> {
        let Some(location) =
            location(answered).filter(|location| location.contains("://") || location.starts_with("//"))
        else {
            return Ok(None);
        };
        let here: Option<Uri> = self.tracking_uri.origin().parse().ok();
        let url = here.and_then(|here| resolved(location, &here)).ok_or(ProxyRefusal::ForbiddenRedirect)?;
        if self.is_api(&url) {
            return Ok(None);
        }
        self.allowed_redirect(Some(url)).map(Some).ok_or(ProxyRefusal::ForbiddenRedirect)
    }

    fn is_api(&self, url: &Uri) -> bool {
        origin_of(&url.to_string()).eq_ignore_ascii_case(self.tracking_uri.origin())
    }

    /// Returns the URL if the proxy may follow it, because it uses TLS, or because both the URL and
    /// the API are on this machine.
    fn allowed_redirect(&self, url: Option<Uri>) -> Option<Uri> {
        url.filter(|url| match url.scheme_str() {
            Some("https") => url.host().is_some_and(|host| self.tracking_uri.is_here() || !may_be_here(host)),
            Some("http") => self.tracking_uri.is_here() && url.host().is_some_and(is_loopback),
            _ => false,
        })
    }

    /// Converts a response of the API for the browser.
    async fn of_api(&self, mut answered: UpstreamResponse) -> Result<Response, ProxyRefusal> {
        if answered.status() == StatusCode::FORBIDDEN {
            answered = self.unless_refused(answered).await?;
        }
        let mut headers = forwarded_headers::from_api(answered.headers());
        if let Some(url) =
            location(&answered).and_then(|location| location.parse::<Uri>().ok()).filter(|url| self.is_api(url))
        {
            let path = url.path_and_query().map_or("/", |path| path.as_str());
            headers.insert(LOCATION, HeaderValue::from_str(path).map_err(ProxyRefusal::unsigned)?);
        }
        Ok(response(answered, headers))
    }

    /// Converts a refusal by API Gateway itself into a [`ProxyRefusal`]. A refusal by a function is
    /// passed on unchanged. It can be recognized by its error code, which all errors of MLflow
    /// have.
    async fn unless_refused(&self, answered: UpstreamResponse) -> Result<UpstreamResponse, ProxyRefusal> {
        let is_short = answered.body().size_hint().upper().is_some_and(|length| length <= MAX_GATEWAY_ERROR_BYTES);
        if !is_short {
            return Ok(answered);
        }
        let (parts, body) = answered.into_parts();
        let body = body
            .collect()
            .await
            .map_err(|_| ProxyRefusal::Unreachable { origin: self.tracking_uri.to_string() })?
            .to_bytes();
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        if said.get("error_code").is_none()
            && let Some(message) = said.get("message").and_then(Value::as_str)
        {
            tracing::debug!(message, "API Gateway refused a request");
            let is_expired = message.contains("token") && message.contains("expired");
            return Err(if is_expired {
                ProxyRefusal::Expired
            } else {
                ProxyRefusal::Forbidden { region: self.signer.region().to_owned() }
            });
        }
        Ok(http::Response::from_parts(parts, SdkBody::from(body)))
    }
}

/// Reads the whole body, which has to be signed before it is sent.
async fn read_body(body: Body) -> Result<Bytes, ProxyRefusal> {
    if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
        return Err(ProxyRefusal::TooLong);
    }
    let collected = Limited::new(body, MAX_BODY_BYTES).collect().await;
    let collected = collected.map_err(|error| {
        if error.is::<LengthLimitError>() { ProxyRefusal::TooLong } else { ProxyRefusal::IncompleteBody }
    });
    Ok(collected?.to_bytes())
}

/// Converts a response of the bucket for the browser. Errors are replaced, because S3 mentions keys
/// and accounts in them.
fn of_bucket(answered: UpstreamResponse) -> Result<Response, ProxyRefusal> {
    let status = answered.status();
    if status.is_client_error() || status.is_server_error() {
        return Err(ProxyRefusal::Bucket(status));
    }
    // A bucket in another region responds with a redirect that has no `Location` header.
    if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
        return Err(ProxyRefusal::ForbiddenRedirect);
    }
    let headers = forwarded_headers::from_bucket(answered.headers());
    Ok(response(answered, headers))
}

/// Returns a response with these headers, and streams its body.
fn response(answered: UpstreamResponse, headers: HeaderMap) -> Response {
    let (parts, body) = answered.into_parts();
    let mut response = Response::new(Body::new(body));
    *response.status_mut() = parts.status;
    *response.headers_mut() = headers;
    response
}

/// Returns the location of a redirect.
fn location(answered: &UpstreamResponse) -> Option<&str> {
    let is_redirect = matches!(answered.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    answered.headers().get(LOCATION).filter(|_| is_redirect)?.to_str().ok()
}

/// Resolves a redirect's location against the URL `base`, like a browser. Relative paths without a
/// leading slash are not supported, because no redirect to a bucket uses one.
fn resolved(location: &str, base: &Uri) -> Option<Uri> {
    let (scheme, authority) = (base.scheme_str()?, base.authority()?);
    let url = if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else {
        location.to_owned()
    };
    url.parse().ok().filter(|url: &Uri| {
        url.scheme().is_some() && url.authority().is_some_and(|authority| !authority.as_str().contains('@'))
    })
}

/// Returns whether a redirect with this status turns the request into a GET (Fetch standard,
/// HTTP-redirect fetch).
fn is_for_get(status: StatusCode, method: &Method) -> bool {
    match status.as_u16() {
        301 | 302 => *method == Method::POST,
        303 => !matches!(*method, Method::GET | Method::HEAD),
        _ => false,
    }
}

fn origin_of(url: &str) -> String {
    url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/")
}
