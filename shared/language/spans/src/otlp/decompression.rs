//! Compressed bodies.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use crate::export_error::ExportError;

/// Maximum number of bytes of a body after decompression.
const MAX_BODY_BYTES: usize = 32 << 20;

/// Size of a body, in bytes, up to which a request does not have to wait for memory.
const SMALL_BODY_BYTES: usize = 64 << 10;

/// Returns the body as it was before compression.
pub(super) fn decompressed<'a>(encoding: Option<&str>, body: &'a [u8]) -> Result<Cow<'a, [u8]>, ExportError> {
    let encoding = encoding.unwrap_or_default().to_lowercase();
    match encoding.as_str() {
        "" => Ok(Cow::Borrowed(body)),
        // To Python, an empty input is a gzip file without members.
        "gzip" if body.is_empty() => Ok(Cow::Borrowed(body)),
        "gzip" => match bounded(MultiGzDecoder::new(body), said(body).clamp(SMALL_BODY_BYTES, MAX_BODY_BYTES)) {
            Some(plain) => plain.map(Cow::Owned),
            None => Err(undone(body, "gzip")),
        },
        // Some clients omit the zlib header and checksum.
        "deflate" => {
            match bounded(ZlibDecoder::new(body), MAX_BODY_BYTES)
                .or_else(|| bounded(DeflateDecoder::new(body), MAX_BODY_BYTES))
            {
                Some(plain) => plain.map(Cow::Owned),
                None => Err(undone(body, "deflate")),
            }
        }
        other => Err(ExportError::new(400, format!("Unsupported Content-Encoding: {other}"))),
    }
}

/// Returns the error for a body that does not decompress. API Gateway treats JSON as text even if
/// it is compressed, and replaces invalid bytes with U+FFFD. If the body shows this damage, the
/// message recommends what to send instead.
fn undone(body: &[u8], encoding: &str) -> ExportError {
    let is_read_as_text = std::str::from_utf8(body).is_ok_and(|text| text.contains(char::REPLACEMENT_CHARACTER));
    if is_read_as_text {
        let message = format!(
            "The {encoding} payload was decoded as text in transit and is corrupt. Send protobuf \
             (Content-Type: application/x-protobuf), or JSON without compression."
        );
        return ExportError::new(400, message);
    }
    ExportError::new(400, format!("Failed to decompress {encoding} payload"))
}

/// Returns the decompressed length that the last four bytes of a gzip body state. The request has
/// waited for that much memory. If there are several members, which no exporter sends, it is only
/// the length of the last one.
fn said(body: &[u8]) -> usize {
    let length = body.last_chunk::<4>().map(|length| u32::from_le_bytes(*length)).unwrap_or_default();
    usize::try_from(length).unwrap_or(usize::MAX)
}

/// Returns the output of a decoder, or `None` if decoding fails. Rejects an output of more than
/// `most` bytes.
fn bounded(decoder: impl Read, most: usize) -> Option<Result<Vec<u8>, ExportError>> {
    let mut plain = Vec::new();
    decoder.take(most as u64 + 1).read_to_end(&mut plain).ok()?;
    if plain.len() <= most {
        return Some(Ok(plain));
    }
    let than =
        if most == MAX_BODY_BYTES { format!("{MAX_BODY_BYTES} bytes") } else { "its gzip trailer states".to_owned() };
    Some(Err(ExportError::new(413, format!("The request is larger than {than} after decompression"))))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn member(bytes: usize) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&vec![b' '; bytes]).unwrap();
        encoder.finish().unwrap()
    }

    /// Returns the decompressed length of a gzip body, or the error.
    fn length(members: &[usize]) -> Result<usize, (u16, String)> {
        let body = members.iter().flat_map(|bytes| member(*bytes)).collect::<Vec<_>>();
        let plain = decompressed(Some("gzip"), &body).map(|plain| plain.len());
        plain.map_err(|refusal| (refusal.status, refusal.detail))
    }

    #[test]
    fn a_body_that_was_read_as_text_is_refused_with_advice() {
        let refused = |encoding: &str, body: &[u8]| {
            let refusal = decompressed(Some(encoding), body).unwrap_err();
            (refusal.status, refusal.detail)
        };
        for encoding in ["gzip", "deflate"] {
            let (status, detail) = refused(encoding, String::from_utf8_lossy(&member(1_000)).as_bytes());
            assert_eq!(status, 400);
            let begins = format!("The {encoding} payload was decoded as text in transit");
            assert!(detail.starts_with(&begins) && detail.contains("application/x-protobuf"), "{detail}");
            // Other bodies are corrupt in another way: truncated, or plain text.
            for body in [&member(1_000)[..12], b"{\"resourceSpans\":[]}"] {
                let expected = (400, format!("Failed to decompress {encoding} payload"));
                assert_eq!(refused(encoding, body), expected);
            }
        }
    }

    #[test]
    fn gzip_becomes_what_it_says() {
        assert_eq!(length(&[3 << 20]), Ok(3 << 20));
        assert_eq!(length(&[MAX_BODY_BYTES]), Ok(MAX_BODY_BYTES));
        let larger = |than: &str| Err((413, format!("The request is larger than {than} after decompression")));
        assert_eq!(length(&[MAX_BODY_BYTES + 1]), larger("33554432 bytes"));
        // With several members, only the size of the last one is at the end of the body.
        assert_eq!(length(&[10, 20]), Ok(30));
        assert_eq!(length(&[SMALL_BODY_BYTES, 0]), Ok(SMALL_BODY_BYTES));
        assert_eq!(length(&[0, 3 << 20]), Ok(3 << 20));
        for members in [[3 << 20, 0], [SMALL_BODY_BYTES, 1], [1, 3 << 20], [MAX_BODY_BYTES, 0]] {
            assert_eq!(length(&members), larger("its gzip trailer states"), "{members:?}");
        }
    }
}
