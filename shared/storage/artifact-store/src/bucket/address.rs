//! The address of a bucket.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters that are percent-encoded in signatures and URLs: all but the unreserved ones of
/// RFC 3986.
const ESCAPED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const ESCAPED_IN_PATH: AsciiSet = ESCAPED.remove(b'/');

/// The URL of a bucket, without a trailing slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BucketAddress(String);

impl BucketAddress {
    /// Returns the URL of a bucket. In AWS, the bucket is part of the host name, unless its name
    /// contains a dot, because AWS's certificates do not cover such host names. At a custom
    /// endpoint, the bucket is the first part of the path, because a bucket in the host name would
    /// require DNS entries.
    pub(crate) fn new(bucket: &str, region: &str, endpoint: Option<&str>) -> Self {
        if let Some(endpoint) = endpoint {
            return Self(format!("{}/{bucket}", endpoint.trim_end_matches('/')));
        }
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        if bucket.contains('.') {
            Self(format!("https://s3.{region}.{domain}/{bucket}"))
        } else {
            Self(format!("https://{bucket}.s3.{region}.{domain}"))
        }
    }

    /// Returns scheme and host.
    pub(crate) fn origin(&self) -> String {
        self.0.splitn(4, '/').take(3).collect::<Vec<_>>().join("/")
    }

    /// Returns the URL of a key with query parameters. An empty key stands for the bucket itself.
    pub(crate) fn url(&self, key: &str, query: &[(&str, &str)]) -> String {
        let mut url = format!("{}/{}", self.0, utf8_percent_encode(key, &ESCAPED_IN_PATH));
        append(&mut url, query.iter().copied());
        url
    }
}

/// Appends query parameters to a URL.
pub(crate) fn append<'a>(url: &mut String, query: impl Iterator<Item = (&'a str, &'a str)>) {
    for (name, value) in query {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.extend(utf8_percent_encode(name, &ESCAPED));
        url.push('=');
        url.extend(utf8_percent_encode(value, &ESCAPED));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_a_host_or_a_path() {
        for (bucket, region, endpoint, expected) in [
            ("b", "eu-central-1", None, "https://b.s3.eu-central-1.amazonaws.com/k"),
            ("b", "cn-north-1", None, "https://b.s3.cn-north-1.amazonaws.com.cn/k"),
            ("b.c", "us-east-1", None, "https://s3.us-east-1.amazonaws.com/b.c/k"),
            ("b", "local", Some("http://127.0.0.1:9/"), "http://127.0.0.1:9/b/k"),
        ] {
            let address = BucketAddress::new(bucket, region, endpoint);
            assert_eq!(address.url("k", &[]), expected);
            assert!(expected.starts_with(&format!("{}/", address.origin())), "{}", address.origin());
        }
    }

    #[test]
    fn every_byte_that_may_be_read_in_two_ways_is_encoded() {
        let address = BucketAddress::new("b", "r", Some("http://h"));
        let url = address.url("a b/+?#%2f/é~", &[("list-type", "2"), ("prefix", "a b/+&=")]);
        assert_eq!(url, "http://h/b/a%20b/%2B%3F%23%252f/%C3%A9~?list-type=2&prefix=a%20b%2F%2B%26%3D");
    }
}
