//! Events of API Gateway, before they become requests.

use axum::Router;
use lambda_http::aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use lambda_http::lambda_runtime::LambdaEvent;
use lambda_http::request::LambdaRequest;
use lambda_http::{Adapter, Service, service_fn};
use mlflow_api::{Error, ErrorCode};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::value::RawValue;
use url::Url;

use crate::endpoint_response::error_response;
use crate::router::with_browser_headers;

/// Characters that a URI's query cannot contain. Clients do not have to escape them.
const ESCAPED_QUERY_CHARACTERS: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>');

/// Handles events of API Gateway until the sandbox ends.
///
/// `lambda_http` panics on an event that it cannot convert to a request, and the runtime fails on
/// control characters in headers. Clients would receive a 500, so such events are answered here
/// with 400.
///
/// # Errors
/// Returns an error if the runtime API fails.
pub async fn run_lambda(router: Router) -> Result<(), lambda_http::Error> {
    let refuse = || async {
        let message =
            "The request is invalid: its host is malformed, its headers contain control characters, or it is too long.";
        error_response(&Error::new(ErrorCode::BadRequest, message))
    };
    let mut refusing = Adapter::from(with_browser_headers(Router::new().fallback(refuse)));
    let mut serving = Adapter::from(router);
    let handler = service_fn(move |event: LambdaEvent<Box<RawValue>>| {
        let (payload, context) = event.into_parts();
        match parse_event(payload.get()) {
            Some(request) => serving.call(LambdaEvent::new(LambdaRequest::ApiGatewayV2(request), context)),
            None => refusing
                .call(LambdaEvent::new(LambdaRequest::ApiGatewayV2(ApiGatewayV2httpRequest::default()), context)),
        }
    });
    lambda_http::lambda_runtime::run(handler).await
}

/// Parses an event that `lambda_http` can convert to a request, or returns `None`. Adds the escapes
/// that the client has omitted in the query.
fn parse_event(event: &str) -> Option<ApiGatewayV2httpRequest> {
    let mut request: ApiGatewayV2httpRequest = serde_json::from_str(event).ok()?;
    if let Some(query) = &mut request.raw_query_string {
        *query = utf8_percent_encode(query, ESCAPED_QUERY_CHARACTERS).to_string();
    }
    let header = |name: http::HeaderName| request.headers.get(name).and_then(|value| value.to_str().ok());
    let host = header(http::header::HOST).or(request.request_context.domain_name.as_deref()).unwrap_or("localhost");
    let scheme = header(http::HeaderName::from_static("x-forwarded-proto")).unwrap_or("https");
    let path = request.raw_path.as_deref().unwrap_or_default();
    let url = Url::parse(&format!("{scheme}://{host}{path}")).ok()?;
    let query = request.raw_query_string.as_deref().unwrap_or_default();
    http::Uri::try_from(format!("{url}?{query}")).is_ok().then_some(request)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::extract::Request;
    use axum::routing::get;
    use http_body_util::BodyExt;
    use serde_json::{Value, json};
    use tower::ServiceExt;

    use super::*;

    fn event(query: &str, header: (&str, &str)) -> Value {
        json!({
            "version": "2.0", "routeKey": "$default", "rawPath": "/a b", "rawQueryString": query, "isBase64Encoded": false,
            "headers": { "host": "id.execute-api.eu-central-1.amazonaws.com", "x-forwarded-proto": "https", header.0: header.1 },
            "requestContext": {
                "accountId": "1", "apiId": "id", "stage": "$default", "requestId": "r", "timeEpoch": 0,
                "http": { "method": "GET", "path": "/a b", "protocol": "HTTP/1.1", "sourceIp": "::1" },
            },
        })
    }

    /// Returns the query arguments of an event as a router receives them, decoded.
    async fn query(event: &Value) -> Option<Vec<(String, String)>> {
        let request = parse_event(&event.to_string())?;
        let request: lambda_http::Request = LambdaRequest::ApiGatewayV2(request).into();
        let echo = |request: Request| async move { request.uri().query().unwrap_or_default().to_owned() };
        let answer = Router::new().route("/{*path}", get(echo)).oneshot(request.map(|_| Body::empty())).await.unwrap();
        let query = answer.into_body().collect().await.unwrap().to_bytes();
        Some(mlflow_api::Request::parse_query(std::str::from_utf8(&query).unwrap()))
    }

    #[tokio::test]
    async fn a_query_need_not_be_escaped() {
        for (sent, expected) in [
            ("", None),
            ("a=1&b=%3C%22%20%2B", Some("<\" +")),
            ("b=<\"> {}|\\^`'[]", Some("<\"> {}|\\^`'[]")),
            ("b=größer\u{7f}", Some("größer\u{7f}")),
            ("b=%zz%&c", Some("%zz%")),
            ("b=a#b", Some("a#b")),
        ] {
            let read = query(&event(sent, ("accept", "*/*"))).await.unwrap();
            let value = read.iter().find(|(name, _)| name == "b").map(|(_, value)| value.as_str());
            assert_eq!(value, expected, "{sent}");
        }
    }

    #[tokio::test]
    async fn an_event_that_is_no_request_is_not_read() {
        for header in [
            ("user-agent", "a\u{1}b"),
            ("user-agent", "a\nb"),
            ("host", "a b"),
            ("host", "256.1.1.1"),
            ("host", "a:99999"),
            ("x-forwarded-proto", "no scheme"),
        ] {
            assert_eq!(query(&event("a=1", header)).await, None, "{header:?}");
        }
        let long = "x".repeat(70_000);
        assert_eq!(query(&event(&long, ("accept", "*/*"))).await, None);
        assert!(parse_event("{}").is_none());
    }
}
