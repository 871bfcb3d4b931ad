//! Requests and responses, as the AWS SDK and the engine exchange them.

use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use serde_json::Value;

/// Content type of requests and responses.
pub(crate) const CONTENT_TYPE: &str = "application/x-amz-json-1.0";

/// The response to one request, as DynamoDB's JSON.
#[derive(Debug)]
pub(crate) struct EngineResponse {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl EngineResponse {
    pub(crate) fn ok(body: String) -> Self {
        Self { status: 200, body }
    }

    /// Returns the error that DynamoDB returns for a request with unknown outcome. It is used for
    /// failures of the engine itself.
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

/// Returns the operation that an `x-amz-target` header names, such as `PutItem`. Returns an empty
/// string if the header names none.
pub(crate) fn operation_named(target: &str) -> &str {
    target.rsplit_once('.').map_or("", |(_, operation)| operation)
}

/// Returns the operation of a request, such as `PutItem`. Returns an empty string if the request
/// names none.
pub(crate) fn operation(request: &HttpRequest) -> &str {
    operation_named(request.headers().get("x-amz-target").unwrap_or_default())
}

/// Returns the whole body. Bodies of the SDK and of the engine are in memory already; those from a
/// server arrive in parts.
pub(crate) async fn whole(body: SdkBody) -> Result<Vec<u8>, ConnectorError> {
    let bytes = ByteStream::new(body).collect().await.map_err(|error| ConnectorError::io(error.into()))?;
    Ok(bytes.to_vec())
}

/// Parses a request's JSON. The returned request can still be sent.
pub(crate) async fn read(mut request: HttpRequest) -> Result<(HttpRequest, Value), ConnectorError> {
    let body = whole(request.take_body()).await?;
    let json = serde_json::from_slice(&body).map_err(|error| ConnectorError::user(error.into()))?;
    *request.body_mut() = SdkBody::from(body);
    Ok((request, json))
}

/// Returns the request with another body. Its signature becomes invalid, but only an engine behind
/// a socket verifies signatures.
pub(crate) fn with_request(mut request: HttpRequest, json: &Value) -> HttpRequest {
    let body = json.to_string();
    request.headers_mut().insert("content-length", body.len().to_string());
    *request.body_mut() = SdkBody::from(body);
    request
}

/// Parses a response's JSON. The returned response has no body anymore: [`with_answer`] gives it a
/// new one.
pub(crate) async fn read_answer(mut response: HttpResponse) -> Result<(HttpResponse, Value), ConnectorError> {
    let body = whole(response.take_body()).await?;
    let json = serde_json::from_slice(&body).map_err(|error| ConnectorError::other(error.into(), None))?;
    Ok((response, json))
}

/// Returns the response with another body, and without the headers that describe the previous one.
pub(crate) fn with_answer(mut response: HttpResponse, json: &Value) -> HttpResponse {
    response.headers_mut().remove("content-length");
    response.headers_mut().remove("x-amz-crc32");
    *response.body_mut() = SdkBody::from(json.to_string());
    response
}
