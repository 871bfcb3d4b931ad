//! Files as responses. Browsers save files instead of displaying them, because a user's upload must
//! not run in the origin of the server.
//!
//! A client that already has a part of a file requests the rest (`Range`), on condition that the
//! file has not changed (`If-Range`).

use std::fmt;
use std::io;
use std::ops::Range;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::stream::BoxStream;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, IF_NONE_MATCH, IF_RANGE, RANGE,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use mlflow_api::content_disposition::attachment_disposition;

/// Reads a byte range of a file as a stream.
type RangeReader = Box<dyn FnOnce(Range<u64>) -> BoxStream<'static, io::Result<Bytes>> + Send>;

/// A file that is sent as a stream.
pub struct Attachment {
    disposition: String,
    content_type: &'static str,
    length: u64,
    tag: String,
    read: RangeReader,
}

/// The part of a file that is requested.
#[derive(Debug, PartialEq, Eq)]
enum RequestedRange {
    Whole,
    Part(Range<u64>),
    /// Nothing, because the client's copy is up to date.
    Unchanged,
    /// A range outside of the file.
    OutOfRange,
}

impl Attachment {
    /// Creates a response that sends a file. `length` is in bytes. `tag` is a quoted entity tag
    /// that changes whenever the file changes, or empty if the file is generated for each response.
    /// `read` returns the bytes of a range.
    pub fn new(
        name: &str,
        content_type: &'static str,
        length: u64,
        tag: String,
        read: impl FnOnce(Range<u64>) -> BoxStream<'static, io::Result<Bytes>> + Send + 'static,
    ) -> Self {
        Self { disposition: attachment_disposition(name), content_type, length, tag, read: Box::new(read) }
    }

    /// Returns the response to a request with these headers.
    pub(crate) fn into_response(self, asked: &HeaderMap) -> Response {
        let length = self.length;
        let (status, range) = match requested_range(asked, &self.tag, length) {
            RequestedRange::Whole => (StatusCode::OK, Some(0..length)),
            RequestedRange::Part(range) => (StatusCode::PARTIAL_CONTENT, Some(range)),
            RequestedRange::Unchanged => (StatusCode::NOT_MODIFIED, None),
            RequestedRange::OutOfRange => (StatusCode::RANGE_NOT_SATISFIABLE, None),
        };
        let mut response = Response::default();
        *response.status_mut() = status;
        let headers = response.headers_mut();
        let mut set = |name: HeaderName, value: &str| {
            // All values are ASCII without control characters, so the fallback is never used.
            headers.insert(name, HeaderValue::from_str(value).unwrap_or(HeaderValue::from_static("attachment")));
        };
        set(CONTENT_DISPOSITION, &self.disposition);
        set(CONTENT_TYPE, self.content_type);
        set(CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'");
        set(ACCEPT_RANGES, "bytes");
        set(CACHE_CONTROL, "no-cache");
        if !self.tag.is_empty() {
            set(ETAG, &self.tag);
        }
        match (status, &range) {
            (StatusCode::PARTIAL_CONTENT, Some(part)) => {
                set(CONTENT_RANGE, &format!("bytes {}-{}/{length}", part.start, part.end.saturating_sub(1)));
            }
            (StatusCode::RANGE_NOT_SATISFIABLE, _) => set(CONTENT_RANGE, &format!("bytes */{length}")),
            _ => {}
        }
        if let Some(part) = range {
            set(CONTENT_LENGTH, &(part.end - part.start).to_string());
            *response.body_mut() = Body::from_stream((self.read)(part));
        }
        response
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Attachment").field("disposition", &self.disposition).finish_non_exhaustive()
    }
}

/// Determines which part of a file with this tag and length is requested. A request for several
/// ranges, or with an invalid header, receives the whole file.
fn requested_range(headers: &HeaderMap, tag: &str, length: u64) -> RequestedRange {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let is_known = |tags: &str| {
        let mut tags = tags.split(',').map(|known| known.trim().trim_start_matches("W/"));
        tags.any(|known| known == "*" || known == tag)
    };
    if text(IF_NONE_MATCH).is_some_and(is_known) {
        return RequestedRange::Unchanged;
    }
    let is_other = headers.contains_key(IF_RANGE) && text(IF_RANGE) != Some(tag);
    let Some(Ok(ranges)) = text(RANGE).filter(|_| !is_other).map(http_range_header::parse_range_header) else {
        return RequestedRange::Whole;
    };
    if ranges.ranges.len() != 1 {
        return RequestedRange::Whole;
    }
    match ranges.validate(length).as_deref() {
        Ok([part]) => RequestedRange::Part(*part.start()..part.end() + 1),
        _ => RequestedRange::OutOfRange,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_ask_for_all_or_for_a_part() {
        let asked = |headers: &[(HeaderName, &'static str)]| {
            let headers = headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
            requested_range(&headers.collect(), "\"t\"", 10)
        };
        for (range, expected) in [
            ("bytes=0-", RequestedRange::Part(0..10)),
            ("bytes=3-5", RequestedRange::Part(3..6)),
            ("bytes=-4", RequestedRange::Part(6..10)),
            ("bytes=9-99", RequestedRange::Part(9..10)),
            ("bytes=10-", RequestedRange::OutOfRange),
            ("bytes=20-30", RequestedRange::OutOfRange),
            ("bytes=0-1,3-4", RequestedRange::Whole),
            ("bytes=x", RequestedRange::Whole),
            ("lines=1-2", RequestedRange::Whole),
        ] {
            assert_eq!(asked(&[(RANGE, range)]), expected, "{range}");
        }
        assert_eq!(asked(&[(RANGE, "bytes=3-"), (IF_RANGE, "\"t\"")]), RequestedRange::Part(3..10));
        for other in ["\"u\"", "W/\"t\"", "Sun, 22 Nov 2026 04:00:00 GMT"] {
            assert_eq!(asked(&[(RANGE, "bytes=3-"), (IF_RANGE, other)]), RequestedRange::Whole, "{other}");
        }
        for (known, expected) in [
            ("\"u\", W/\"t\"", RequestedRange::Unchanged),
            ("*", RequestedRange::Unchanged),
            ("\"u\"", RequestedRange::Whole),
        ] {
            assert_eq!(asked(&[(IF_NONE_MATCH, known)]), expected, "{known}");
        }
    }
}
