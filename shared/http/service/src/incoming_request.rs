//! Incoming requests whose bodies have not been read yet.

use std::time::Duration;

use access::RequestHead;
use axum::BoxError;
use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams, Request as HttpRequest};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use http::Method;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body::Body as _;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use mlflow_api::{Error, ErrorCode, Request, Result, json};
use tokio::time::{Instant, timeout, timeout_at};

use crate::body_memory::{BodyMemory, Compression, MAX_UNRESERVED_BYTES, MAX_WAIT};

/// Maximum size of a body that is read into memory, in bytes. MLflow has no limit of its own; a
/// Lambda receives at most 6 MB.
pub(crate) const MAX_BODY_BYTES: usize = 32 << 20;

/// Number of body bytes that are reserved in memory for each JSON value. Values take about ten
/// times as much memory as the reservation.
const BYTES_PER_JSON_VALUE: usize = 16;

/// Maximum pause of a client within a body. The part that has been received takes up memory that
/// other requests need.
const MAX_BODY_PAUSE: Duration = Duration::from_secs(10);
/// Maximum time to receive a whole body. A client that sends a byte now and then takes up just as
/// much memory.
const MAX_BODY_DURATION: Duration = Duration::from_mins(1);

/// Maximum pause of a client within a file. A pending file takes up resources, too. But files are
/// long and networks are slow, so a pause should not force a client to send the whole file again.
const MAX_STREAM_PAUSE: Duration = Duration::from_mins(1);

/// A request without its body.
pub(crate) struct IncomingRequest {
    /// Headers and facts that identify the sender.
    pub(crate) head: RequestHead,
    /// The part of the request that an endpoint receives.
    pub(crate) request: Request,
    body: Body,
}

/// The body of a request, as a stream.
pub struct BodyStream {
    /// Length in bytes, if the client announced it.
    pub length: Option<u64>,
    /// Chunks of the body. Yields an error if the body ends too early or stalls.
    pub chunks: BoxStream<'static, Result<Bytes>>,
}

impl IncomingRequest {
    /// Reads everything except the body.
    pub(crate) async fn read(request: HttpRequest) -> Result<Self> {
        let (mut parts, body) = request.into_parts();
        let path = RawPathParams::from_request_parts(&mut parts, &()).await;
        let path = path.map_err(|_| Error::new(ErrorCode::BadRequest, "The path could not be read."))?;
        // `HEAD` is handled like `GET`. Axum removes the body of the response.
        let method = if parts.method == Method::HEAD { &Method::GET } else { &parts.method };
        let request = Request {
            method: method.as_str().to_owned(),
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
        Ok(Self { head: RequestHead::of(&parts), request, body })
    }

    /// Reads the body and reserves memory for it. The caller has to keep the [`BodyMemory`] as long
    /// as the body or any value that was parsed from it.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if no memory becomes available in time. Other errors if the body is too
    /// long or cannot be received.
    pub(crate) async fn read_body(self) -> Result<(Request, BodyMemory)> {
        let compression = Compression::named(self.request.header("content-encoding"));
        let announced = self.announced_length();
        let length = self.body.size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        let mut arriving = BodyReader::new(self.body, length, MAX_BODY_PAUSE, MAX_BODY_DURATION);
        let mut room = BodyMemory::none();
        // A client that does not announce a length may send a small body without a reservation.
        if length.is_some() || !arriving.collect(MAX_UNRESERVED_BYTES).await? {
            // Reserves the maximum up front, so that no request waits for memory while it already
            // holds a part of what it needs.
            if let Err(error) = room.wait_to_read(length.unwrap_or(MAX_BODY_BYTES).min(MAX_BODY_BYTES)).await {
                arriving.drain().await;
                return Err(error);
            }
            arriving.collect(usize::MAX).await?;
        }
        // Only the length of an uncompressed body has to be compared with the announced one,
        // because decompression detects a corrupted body by itself.
        let announced = announced.filter(|_| compression == Compression::None);
        let read = restore_body(arriving.read, announced)?;
        room.shrink(read.len());
        let values = json::most_values(&read).saturating_mul(BYTES_PER_JSON_VALUE);
        room.wait_to_process(compression.of(&read, MAX_BODY_BYTES).max(values)).await?;
        Ok((Request { body: read, ..self.request }, room))
    }

    /// Returns the length of the body that the client announced.
    fn announced_length(&self) -> Option<u64> {
        self.head.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// Reads a body of at most `most` bytes from an unauthenticated client, without reserving
    /// memory.
    ///
    /// # Errors
    /// Returns an error if the body is longer or cannot be received.
    pub(crate) async fn read_short_body(self, most: usize) -> Result<Request> {
        let mut arriving = BodyReader::new(self.body, None, MAX_BODY_PAUSE, MAX_BODY_DURATION);
        if !arriving.collect(most).await? {
            let message = format!("The request body is longer than {most} bytes.");
            return Err(Error::new(ErrorCode::RequestTooLarge, message));
        }
        Ok(Request { body: arriving.read, ..self.request })
    }

    /// Returns the body as a stream.
    ///
    /// # Errors
    /// `BAD_REQUEST` if the length of the body differs from the one that the client announced. If a
    /// client declares a text type, API Gateway passes the body to a Lambda as text, in which bytes
    /// that are not valid UTF-8 have been replaced.
    pub(crate) fn stream(self) -> Result<BodyStream> {
        let length = self.body.size_hint().exact();
        if let (Some(length), Some(announced)) = (length, self.announced_length())
            && length != announced
        {
            let message = format!(
                "Expected a body of {announced} bytes, but received {length}. Send files as application/octet-stream."
            );
            return Err(Error::new(ErrorCode::BadRequest, message));
        }
        Ok(BodyStream { length, chunks: chunks(self.body, MAX_STREAM_PAUSE) })
    }
}

/// Restores a body as the client sent it, given the length that the client announced.
///
/// API Gateway decodes a body with a JSON type as UTF-8, and replaces invalid bytes with U+FFFD. In
/// UTF-16 and UTF-32, this affects the byte order mark and most characters outside of ASCII. Only
/// the byte order mark can be restored.
///
/// # Errors
/// `BAD_REQUEST` for JSON in UTF-16 or UTF-32 that has lost characters.
fn restore_body(body: Vec<u8>, announced: Option<u64>) -> Result<Vec<u8>> {
    let is_as_sent = |body: &[u8]| announced.is_none_or(|length| u64::try_from(body.len()) == Ok(length));
    if is_as_sent(&body) {
        return Ok(body);
    }
    if let Some(body) = restore_byte_order_mark(&body).filter(|body| is_as_sent(body)) {
        return Ok(body);
    }
    if !body.contains(&0) {
        return Ok(body);
    }
    let message = "The request body was decoded as UTF-8 in transit and is corrupted. Send JSON in UTF-8.";
    Err(Error::new(ErrorCode::BadRequest, message))
}

/// Restores the byte order mark of a body in UTF-16 or UTF-32 if it was replaced. Returns `None`
/// for other bodies.
fn restore_byte_order_mark(body: &[u8]) -> Option<Vec<u8>> {
    let lost = "\u{fffd}\u{fffd}".as_bytes();
    let (zeros, mark, rest) = match body.strip_prefix(lost) {
        // JSON begins with an ASCII character, so a zero byte that comes first indicates UTF-16 in
        // big-endian order.
        Some(rest @ [0, _, ..]) if !rest.starts_with(&[0, 0]) => (&[][..], [0xfe, 0xff], rest),
        Some(rest) => (&[][..], [0xff, 0xfe], rest),
        None => (&[0, 0][..], [0xfe, 0xff], body.strip_prefix(&[0, 0])?.strip_prefix(lost)?),
    };
    Some([zeros, &mark, rest].concat())
}

/// Returns a body as chunks, with an error if it stalls. Only time spent waiting for the client
/// counts; the reader may be slow.
fn chunks(body: Body, still: Duration) -> BoxStream<'static, Result<Bytes>> {
    let chunks = stream::try_unfold(body.into_data_stream(), move |mut body| async move {
        let chunk = timeout(still, body.next()).await.map_err(|_| stalled_error())?;
        let chunk = chunk.transpose().map_err(|_| unreadable_error())?;
        Ok(chunk.map(|chunk| (chunk, body)))
    });
    chunks.boxed()
}

fn stalled_error() -> Error {
    let message = format!("The request body stalled for {} seconds.", MAX_STREAM_PAUSE.as_secs());
    Error::new(ErrorCode::RequestTimeout, message)
}

/// A body that is being read.
struct BodyReader {
    body: Limited<Body>,
    /// Announced length in bytes, or 0.
    length: usize,
    max_pause: Duration,
    deadline: Instant,
    read: Vec<u8>,
}

impl BodyReader {
    /// Starts reading a body with a maximum pause and a maximum total time.
    fn new(body: Body, length: Option<usize>, still: Duration, slowest: Duration) -> Self {
        let length = length.unwrap_or_default().min(MAX_BODY_BYTES);
        Self {
            body: Limited::new(body, MAX_BODY_BYTES),
            length,
            max_pause: still,
            deadline: Instant::now() + slowest,
            read: Vec::new(),
        }
    }

    /// Reads until more than `most` bytes have arrived, and returns whether the body is complete.
    /// Nothing is copied if all bytes arrive at once, as in a Lambda.
    async fn collect(&mut self, most: usize) -> Result<bool> {
        while self.read.len() <= most {
            let frame = timeout_at(self.deadline.min(Instant::now() + self.max_pause), self.body.frame()).await;
            let Some(frame) = frame.map_err(|_| too_slow_error())? else { return Ok(true) };
            let Ok(data) = frame.map_err(|error| body_error(&error))?.into_data() else { continue };
            if self.read.is_empty() && data.len() >= self.length {
                self.read = Vec::from(data);
            } else {
                self.read.reserve(self.length.saturating_sub(self.read.len()));
                self.read.extend_from_slice(&data);
            }
        }
        Ok(false)
    }

    /// Reads and discards the rest of the body. A client that is rejected while it is sending may
    /// not see the response otherwise.
    async fn drain(mut self) {
        let _ = timeout(MAX_WAIT, async { while let Some(Ok(_)) = self.body.frame().await {} }).await;
    }
}

fn too_slow_error() -> Error {
    let message = format!(
        "The request body stalled for {} seconds, or took more than {} seconds in total.",
        MAX_BODY_PAUSE.as_secs(),
        MAX_BODY_DURATION.as_secs()
    );
    Error::new(ErrorCode::RequestTimeout, message)
}

fn body_error(error: &BoxError) -> Error {
    if error.is::<LengthLimitError>() {
        let message = format!("The request body is longer than {MAX_BODY_BYTES} bytes.");
        return Error::new(ErrorCode::RequestTooLarge, message);
    }
    unreadable_error()
}

fn unreadable_error() -> Error {
    Error::new(ErrorCode::BadRequest, "The request body could not be read.")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    /// Reads a body of `bytes` bytes, which arrive one by one with a pause before each.
    async fn read(
        bytes: usize,
        pause: Duration,
        still: Duration,
        slowest: Duration,
    ) -> std::result::Result<usize, u16> {
        let body = stream::iter(0..bytes).then(move |_| async move {
            tokio::time::sleep(pause).await;
            Ok::<_, std::io::Error>(Bytes::from_static(b"x"))
        });
        let mut arriving = BodyReader::new(Body::from_stream(body), None, still, slowest);
        match arriving.collect(usize::MAX).await {
            Ok(is_all) => Ok(is_all.then_some(arriving.read.len()).unwrap()),
            Err(error) => Err(error.code.http_status()),
        }
    }

    #[test]
    fn a_byte_order_mark_that_was_read_as_text_is_restored() {
        let text = "\u{feff}{\"a\": 1}";
        let utf_16 = |unit: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(unit).collect::<Vec<u8>>();
        let utf_32 = |unit: fn(u32) -> [u8; 4]| text.chars().map(u32::from).flat_map(unit).collect::<Vec<u8>>();
        for sent in
            [utf_16(u16::to_le_bytes), utf_16(u16::to_be_bytes), utf_32(u32::to_le_bytes), utf_32(u32::to_be_bytes)]
        {
            let announced = Some(sent.len() as u64);
            let read = String::from_utf8_lossy(&sent).into_owned().into_bytes();
            assert!(read != sent);
            assert_eq!(restore_body(read, announced), Ok(sent.clone()));
            assert_eq!(restore_body(sent.clone(), announced), Ok(sent.clone()));
            assert_eq!(restore_body(sent.clone(), None), Ok(sent));
        }
    }

    #[test]
    fn a_body_that_has_lost_characters_on_its_way_is_refused() {
        for text in ["{\"a\": \"größer\"}", "\u{feff}{\"a\": \"größer\"}"] {
            let sent: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let read = String::from_utf8_lossy(&sent).into_owned().into_bytes();
            let error = restore_body(read, Some(sent.len() as u64)).unwrap_err();
            assert!(error.message.ends_with("Send JSON in UTF-8."), "{error:?}");
        }
        // In UTF-8, an invalid byte leaves the rest of the text intact.
        let read = "{\"a\": \"\u{fffd}\"}".as_bytes().to_vec();
        assert_eq!(restore_body(read.clone(), Some(10)), Ok(read));
    }

    /// The pauses and limits of this test differ so much that a busy machine does not affect the
    /// result.
    #[tokio::test]
    async fn a_body_that_pauses_or_takes_too_long_is_not_waited_for() {
        let brief = Duration::from_millis(1);
        assert_eq!(read(5, brief, HOUR, HOUR).await, Ok(5));
        assert_eq!(read(5, HOUR, brief, HOUR).await, Err(408));
        assert_eq!(read(usize::MAX, brief, HOUR, Duration::from_millis(50)).await, Err(408));
    }

    #[tokio::test]
    async fn a_file_that_stalls_ends_with_an_error_and_one_that_is_read_slowly_does_not() {
        let come = || stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"x"))]);
        let mut stalled = chunks(Body::from_stream(come().chain(stream::pending())), Duration::from_millis(1));
        assert_eq!(stalled.next().await, Some(Ok(Bytes::from_static(b"x"))));
        let error = stalled.next().await.unwrap().unwrap_err();
        assert_eq!((error.code.http_status(), stalled.next().await), (408, None));
        let mut slow = chunks(Body::from_stream(come().chain(come())), Duration::from_millis(20));
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_millis(60)).await;
            assert!(slow.next().await.is_some_and(|chunk| chunk.is_ok()));
        }
        assert_eq!(slow.next().await, None);
    }
}
