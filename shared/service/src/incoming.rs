//! Requests on their way in, their bodies not read yet.

use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams, Request as HttpRequest};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body::Body as _;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use mlflow_api::{Error, ErrorCode, Request, Result};

/// Longest body that is read into memory, in bytes. MLflow has no limit of its own; a Lambda gets at most 6 MB.
pub(crate) const LONGEST_BODY: usize = 32 << 20;

/// A request, but for its body.
pub(crate) struct Incoming {
    pub(crate) headers: HeaderMap,
    /// What an endpoint gets to see of it.
    pub(crate) request: Request,
    body: Body,
}

/// The body of a request, as it comes.
pub struct BodyStream {
    /// Its length in bytes, if the client has said it before.
    pub length: Option<u64>,
    /// Its bytes. An error if it ends too early.
    pub chunks: BoxStream<'static, Result<Bytes>>,
}

impl Incoming {
    /// Reads all but the body.
    pub(crate) async fn read(request: HttpRequest) -> Result<Self> {
        let (mut parts, body) = request.into_parts();
        let path = RawPathParams::from_request_parts(&mut parts, &()).await;
        let path = path.map_err(|_| Error::new(ErrorCode::BadRequest, "The path could not be read."))?;
        let request = Request {
            method: parts.method.as_str().to_owned(),
            path: path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            query: Request::parse_query(parts.uri.query().unwrap_or_default()),
            content_type: parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned),
            headers: Request::HEADERS
                .into_iter()
                .filter_map(|name| Some((name, parts.headers.get(name)?.to_str().ok()?.to_owned())))
                .collect(),
            body: Vec::new(),
            is_typed: false,
        };
        Ok(Self { headers: parts.headers, request, body })
    }

    /// The request with its body.
    pub(crate) async fn whole(self) -> Result<Request> {
        let body = Limited::new(self.body, LONGEST_BODY).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                Error::invalid(format!("The request body is longer than {LONGEST_BODY} bytes."))
            } else {
                unreadable()
            }
        })?;
        Ok(Request { body: body.to_bytes().to_vec(), ..self.request })
    }

    /// The body alone.
    ///
    /// # Errors
    /// `BAD_REQUEST`, where it is not as long as the client has said. API Gateway hands a Lambda what a client calls text as a text, in which
    /// bytes that are no UTF-8 were replaced.
    pub(crate) fn stream(self) -> Result<BodyStream> {
        let length = self.body.size_hint().exact();
        let announced = self.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if let (Some(length), Some(announced)) = (length, announced)
            && length != announced
        {
            let message =
                format!("Of a body of {announced} bytes, {length} have come. Send files as application/octet-stream.");
            return Err(Error::new(ErrorCode::BadRequest, message));
        }
        let chunks = self.body.into_data_stream().map(|chunk| chunk.map_err(|_| unreadable()));
        Ok(BodyStream { length, chunks: chunks.boxed() })
    }
}

fn unreadable() -> Error {
    Error::new(ErrorCode::BadRequest, "The request body could not be read.")
}
