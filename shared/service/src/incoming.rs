//! Requests on their way in, their bodies not read yet.

use std::time::Duration;

use axum::BoxError;
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
use tokio::time::{Instant, timeout, timeout_at};

use crate::room::{Compression, PATIENCE, Room};

/// Longest body that is read into memory, in bytes. MLflow has no limit of its own; a Lambda gets at most 6 MB.
pub(crate) const LONGEST_BODY: usize = 32 << 20;

/// How long a client may send nothing in the midst of a body: what it has sent takes the room of others.
const STILL: Duration = Duration::from_secs(10);
/// How long it may take in all: who sends a byte now and then takes as much room.
const SLOWEST: Duration = Duration::from_mins(1);

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

    /// The request with its body, and the room that it takes in memory, which is to be kept as long as the body or what is made of it.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED`, where there is no room for too long.
    pub(crate) async fn whole(self) -> Result<(Request, Room)> {
        let compression = Compression::named(self.request.header("content-encoding"));
        let length = self.body.size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        let mut body = Limited::new(self.body, LONGEST_BODY);
        // All that it may take at first, so that nobody waits who has some of it.
        let mut room = match Room::for_reading(length.unwrap_or(LONGEST_BODY).min(LONGEST_BODY)).await {
            Ok(room) => room,
            Err(error) => {
                drain(body).await;
                return Err(error);
            }
        };
        let read = collect(&mut body, length.unwrap_or_default().min(LONGEST_BODY), STILL, SLOWEST).await.map_err(
            |error| {
                if error.is::<LengthLimitError>() {
                    let message = format!("The request body is longer than {LONGEST_BODY} bytes.");
                    Error::new(ErrorCode::RequestTooLarge, message)
                } else {
                    unreadable()
                }
            },
        )?;
        room.keep(read.len());
        let room = room.for_work(compression.of(&read, LONGEST_BODY)).await?;
        Ok((Request { body: read, ..self.request }, room))
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

/// All of a body that is said to have so many bytes, unless it pauses for too long, or takes too long in all. None is copied where they come at once,
/// as they do in a Lambda.
async fn collect(
    body: &mut Limited<Body>,
    length: usize,
    still: Duration,
    slowest: Duration,
) -> std::result::Result<Vec<u8>, BoxError> {
    let end = Instant::now() + slowest;
    let mut read = Vec::new();
    while let Some(frame) = timeout_at(end.min(Instant::now() + still), body.frame()).await? {
        let Ok(data) = frame?.into_data() else { continue };
        if read.is_empty() && data.len() >= length {
            read = Vec::from(data);
        } else {
            read.reserve(length.saturating_sub(read.len()));
            read.extend_from_slice(&data);
        }
    }
    Ok(read)
}

/// Reads a body and forgets it: who is refused while he sends may not see the answer.
async fn drain(mut body: Limited<Body>) {
    let _ = timeout(PATIENCE, async { while let Some(Ok(_)) = body.frame().await {} }).await;
}

fn unreadable() -> Error {
    Error::new(ErrorCode::BadRequest, "The request body could not be read.")
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    /// How much is read of a body of so many bytes, of which one comes every 20 ms.
    async fn read(bytes: usize, still: u64, slowest: u64) -> Option<usize> {
        let body = stream::iter(0..bytes).then(|_| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok::<_, std::io::Error>(Bytes::from_static(b"x"))
        });
        let mut body = Limited::new(Body::from_stream(body), LONGEST_BODY);
        let [still, slowest] = [still, slowest].map(Duration::from_millis);
        collect(&mut body, 0, still, slowest).await.ok().map(|read| read.len())
    }

    #[tokio::test]
    async fn a_body_that_pauses_or_takes_too_long_is_not_waited_for() {
        assert_eq!(read(5, 60_000, 60_000).await, Some(5));
        assert_eq!(read(5, 1, 60_000).await, None);
        assert_eq!(read(usize::MAX, 60_000, 200).await, None);
    }
}
