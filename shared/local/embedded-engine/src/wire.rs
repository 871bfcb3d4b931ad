//! Requests and answers in the form that the AWS SDK and the engine exchange.

use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use serde_json::Value;

/// The type of requests and answers.
pub(crate) const CONTENT_TYPE: &str = "application/x-amz-json-1.0";

/// The answer to one request: DynamoDB's JSON.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn ok(body: String) -> Self {
        Self { status: 200, body }
    }

    /// The engine itself has failed: DynamoDB's error for a request with unknown outcome.
    pub(crate) fn failed() -> Self {
        Self { status: 500, body: r#"{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError"}"#.to_owned() }
    }

    pub(crate) fn into_sdk_response(self) -> Result<HttpResponse, ConnectorError> {
        let status = StatusCode::try_from(self.status).map_err(|error| ConnectorError::other(error.into(), None))?;
        let mut response = HttpResponse::new(status, SdkBody::from(self.body));
        response.headers_mut().insert("content-type", CONTENT_TYPE);
        Ok(response)
    }
}

/// The operation that the header `x-amz-target` names: `PutItem`. Empty if it names none.
pub(crate) fn operation_named(target: &str) -> &str {
    target.rsplit_once('.').map_or("", |(_, operation)| operation)
}

/// The operation a request is for: `PutItem`. Empty when the request names none.
pub(crate) fn operation(request: &HttpRequest) -> &str {
    operation_named(request.headers().get("x-amz-target").unwrap_or_default())
}

/// The whole of a body. Those of the SDK and of the engine are in memory already; those of a server arrive in parts.
pub(crate) async fn whole(body: SdkBody) -> Result<Vec<u8>, ConnectorError> {
    let bytes = ByteStream::new(body).collect().await.map_err(|error| ConnectorError::io(error.into()))?;
    Ok(bytes.to_vec())
}

/// Reads a request's JSON; the request can be sent on.
pub(crate) async fn read(mut request: HttpRequest) -> Result<(HttpRequest, Value), ConnectorError> {
    let body = whole(request.take_body()).await?;
    let json = serde_json::from_slice(&body).map_err(|error| ConnectorError::user(error.into()))?;
    *request.body_mut() = SdkBody::from(body);
    Ok((request, json))
}

/// The request with another body. Its signature no longer fits, which only an engine on a socket
/// checks.
pub(crate) fn with_request(mut request: HttpRequest, json: &Value) -> HttpRequest {
    let body = json.to_string();
    request.headers_mut().insert("content-length", body.len().to_string());
    *request.body_mut() = SdkBody::from(body);
    request
}

/// Reads an answer's JSON; for [`with_answer`].
pub(crate) async fn read_answer(mut response: HttpResponse) -> Result<(HttpResponse, Value), ConnectorError> {
    let body = whole(response.take_body()).await?;
    let json = serde_json::from_slice(&body).map_err(|error| ConnectorError::other(error.into(), None))?;
    Ok((response, json))
}

/// The answer with another body, and without the headers that describe the one it had.
pub(crate) fn with_answer(mut response: HttpResponse, json: &Value) -> HttpResponse {
    response.headers_mut().remove("content-length");
    response.headers_mut().remove("x-amz-crc32");
    *response.body_mut() = SdkBody::from(json.to_string());
    response
}
