//! Normalizes paths and queries to the one encoding that signers and verifiers cannot interpret
//! differently. `clients/python` does the same.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// The unreserved characters of RFC 3986, which are left unchanged. All other bytes are
/// percent-encoded.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns the path and query in normalized encoding. Returns `None` if a parameter is not valid
/// UTF-8 and therefore cannot be signed.
///
/// Parameters keep their order, which is significant in MLflow (`order_by`). The signature is
/// computed over a sorted copy.
pub(crate) fn target(path: &str, query: Option<&str>) -> Option<String> {
    let segments = path.split('/').map(|segment| encode(&percent_decode_str(segment).collect::<Vec<_>>()));
    let mut target = without_dots(segments.collect()).join("/");
    if !target.starts_with('/') {
        target.insert(0, '/');
    }
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    for (number, pair) in pairs.enumerate() {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        target.push(if number == 0 { '?' } else { '&' });
        target.push_str(&parameter(name)?);
        target.push('=');
        target.push_str(&parameter(value)?);
    }
    Some(target)
}

/// Resolves `.` and `..` in a path. Signers disagree on whether a trailing dot segment leaves a
/// slash.
fn without_dots(segments: Vec<String>) -> Vec<String> {
    let ends_in_dots = segments.last().is_some_and(|last| last == "." || last == "..");
    let mut kept: Vec<String> = Vec::with_capacity(segments.len());
    for segment in segments {
        match segment.as_str() {
            // The empty segment before the leading slash is kept.
            ".." => kept.truncate(kept.len().saturating_sub(1).max(1)),
            "." => {}
            _ => kept.push(segment),
        }
    }
    if ends_in_dots {
        kept.push(String::new());
    }
    kept
}

fn parameter(text: &str) -> Option<String> {
    let text = text.replace('+', " ");
    let decoded = percent_decode_str(&text).decode_utf8().ok()?;
    Some(encode(decoded.as_bytes()))
}

fn encode(bytes: &[u8]) -> String {
    percent_encode(bytes, UNRESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_written_in_one_way() {
        for (path, query, expected) in [
            ("/", None, "/"),
            ("/a b=c@é.txt", None, "/a%20b%3Dc%40%C3%A9.txt"),
            ("/a%20b%3dc%40%c3%a9.txt", None, "/a%20b%3Dc%40%C3%A9.txt"),
            ("/a%2Fb/~c", None, "/a%2Fb/~c"),
            ("/a%25b", None, "/a%25b"),
            ("/a/./b/../c", None, "/a/c"),
            ("/a/%2e%2e/c/", None, "/c/"),
            ("/../..", None, "/"),
            ("/a/..", None, "/"),
            ("/a/.", None, "/a/"),
            ("//api", None, "//api"),
            (
                "/s",
                Some("filter=a+%3D+'b c'&order_by=z&order_by=a&flag&&x="),
                "/s?filter=a%20%3D%20%27b%20c%27&order_by=z&order_by=a&flag=&x=",
            ),
            ("/s", Some(""), "/s"),
        ] {
            assert_eq!(target(path, query).as_deref(), Some(expected), "{path} {query:?}");
        }
        assert_eq!(target("/s", Some("x=%FF")), None);
    }
}
