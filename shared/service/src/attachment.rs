//! Files as answers. A browser saves them and does not show them: what a user uploaded must not run in the name of the server.

use std::fmt::Write;

use axum::body::Body;
use axum::response::Response;
use futures::TryStream;
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};

/// A file that is sent piece by piece.
#[derive(Debug)]
pub struct Attachment {
    disposition: String,
    content_type: &'static str,
    length: u64,
    body: Body,
}

impl Attachment {
    /// A file of this name, type and length in bytes.
    pub fn new<S>(name: &str, content_type: &'static str, length: u64, chunks: S) -> Self
    where
        S: TryStream<Ok = Vec<u8>, Error = std::io::Error> + Send + 'static,
    {
        let chunks = futures::TryStreamExt::map_ok(futures::TryStreamExt::into_stream(chunks), axum::body::Bytes::from);
        Self { disposition: disposition(name), content_type, length, body: Body::from_stream(chunks) }
    }

    pub(crate) fn into_response(self) -> Response {
        let mut response = Response::new(self.body);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(self.length));
        let disposition = HeaderValue::from_str(&self.disposition);
        headers.insert(CONTENT_DISPOSITION, disposition.unwrap_or(HeaderValue::from_static("attachment")));
        response
    }
}

/// The name as a browser is told it (RFC 6266): quoted where it is no plain word, and encoded where it is not ASCII.
fn disposition(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let ascii: String = name.chars().filter(|character| (' '..='~').contains(character)).collect();
    let fallback = if ascii.is_empty() { "download" } else { &ascii };
    let quoted = if fallback.bytes().all(is_plain) {
        fallback.to_owned()
    } else {
        format!("\"{}\"", fallback.replace('\\', "\\\\").replace('"', "\\\""))
    };
    let mut disposition = format!("attachment; filename={quoted}");
    if ascii != name {
        disposition.push_str("; filename*=UTF-8''");
        for byte in name.bytes() {
            if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
                disposition.push(char::from(byte));
            } else {
                // Writing to a string does not fail.
                let _ = write!(disposition, "%{byte:02X}");
            }
        }
    }
    disposition
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_encoded() {
        for (name, expected) in [
            ("model.pkl", "attachment; filename=model.pkl"),
            ("a b.txt", "attachment; filename=\"a b.txt\""),
            ("a\"b\\", "attachment; filename=\"a\\\"b\\\\\""),
            ("é.txt", "attachment; filename=.txt; filename*=UTF-8''%C3%A9.txt"),
            ("日本", "attachment; filename=download; filename*=UTF-8''%E6%97%A5%E6%9C%AC"),
            ("a\r\nb", "attachment; filename=ab; filename*=UTF-8''a%0D%0Ab"),
        ] {
            assert_eq!(disposition(name), expected);
        }
    }
}
