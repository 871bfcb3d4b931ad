//! One request and its response, over a connection.

use bytes::{Bytes, BytesMut};
use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::OutboundError;
use crate::message::{MAX_BODY_BYTES, OutboundRequest, OutboundResponse};

/// Maximum size of a response's headers in bytes.
const MAX_HEADER_BYTES: usize = 32 << 10;
/// Maximum number of a response's headers.
const MAX_HEADERS: usize = 100;
/// Headers that only the client may set. Values from the caller are dropped.
const RESERVED_HEADERS: [HeaderName; 7] = [CONNECTION, CONTENT_LENGTH, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// Sends a request over a connection, and reads the response. The connection is closed afterwards,
/// even if the server has more to send.
pub(crate) async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &OutboundRequest<'_>,
) -> Result<OutboundResponse, OutboundError> {
    let request = prepared(request)?;
    let mut builder = http1::Builder::new();
    builder.max_buf_size(MAX_HEADER_BYTES).max_headers(MAX_HEADERS);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
    let driver = async {
        // The result can be ignored: an error of the connection is also returned by the pending
        // `send_request` or by reading the body.
        let _ = connection.await;
        std::future::pending::<()>().await;
    };
    let response = async { read(sender.send_request(request).await.map_err(|error| broken(&error))?).await };
    tokio::select! {
        response = response => response,
        () = driver => Err(OutboundError::Broken("the connection was closed".to_owned())),
    }
}

fn prepared(request: &OutboundRequest<'_>) -> Result<Request<Full<Bytes>>, OutboundError> {
    let invalid = |error: &dyn std::error::Error| OutboundError::Setup(error.to_string());
    let mut headers = request.headers.clone();
    for name in RESERVED_HEADERS {
        headers.remove(name);
    }
    headers.insert(HOST, HeaderValue::from_str(request.url.authority()).map_err(|error| invalid(&error))?);
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    let prepared = Request::builder().method(&request.method).uri(request.url.target());
    let mut prepared = prepared.body(Full::new(request.body.clone())).map_err(|error| invalid(&error))?;
    *prepared.headers_mut() = headers;
    Ok(prepared)
}

/// Reads the beginning of a response's body.
async fn read(response: Response<Incoming>) -> Result<OutboundResponse, OutboundError> {
    let (head, mut rest) = response.into_parts();
    let mut body = BytesMut::new();
    let mut is_truncated = false;
    while let Some(frame) = rest.frame().await {
        let Ok(data) = frame.map_err(|error| broken(&error))?.into_data() else { continue };
        let room = MAX_BODY_BYTES - body.len();
        body.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            is_truncated = true;
            break;
        }
    }
    Ok(OutboundResponse { status: head.status.as_u16(), headers: head.headers, body: body.freeze(), is_truncated })
}

fn broken(error: &hyper::Error) -> OutboundError {
    OutboundError::Broken(error.to_string())
}
