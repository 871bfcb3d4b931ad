//! Bodies that come compressed.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use crate::refusal::Refusal;

/// Bytes of a body after decompression.
const LARGEST: usize = 32 << 20;

/// Bytes for which no request waits until there is room in memory.
const SMALL: usize = 64 << 10;

/// The body as it was before it was compressed.
pub(super) fn decompressed<'a>(encoding: Option<&str>, body: &'a [u8]) -> Result<Cow<'a, [u8]>, Refusal> {
    let encoding = encoding.unwrap_or_default().to_lowercase();
    match encoding.as_str() {
        "" => Ok(Cow::Borrowed(body)),
        // To Python, nothing at all is a gzip file without members.
        "gzip" if body.is_empty() => Ok(Cow::Borrowed(body)),
        "gzip" => match bounded(MultiGzDecoder::new(body), said(body).clamp(SMALL, LARGEST)) {
            Some(plain) => plain.map(Cow::Owned),
            None => Err(undone(body, "gzip")),
        },
        // Some clients leave the two bytes before and the checksum away.
        "deflate" => {
            match bounded(ZlibDecoder::new(body), LARGEST).or_else(|| bounded(DeflateDecoder::new(body), LARGEST)) {
                Some(plain) => plain.map(Cow::Owned),
                None => Err(undone(body, "deflate")),
            }
        }
        other => Err(Refusal::new(400, format!("Unsupported Content-Encoding: {other}"))),
    }
}

/// The refusal of a body that does not decompress. API Gateway takes JSON for a text, even if it is
/// compressed, and puts U+FFFD in place of bytes that are none. Then it says what to send instead.
fn undone(body: &[u8], encoding: &str) -> Refusal {
    let is_read_as_text = std::str::from_utf8(body).is_ok_and(|text| text.contains(char::REPLACEMENT_CHARACTER));
    if is_read_as_text {
        let message = format!(
            "The {encoding} payload was read as text on its way and is broken. Send protobuf \
             (Content-Type: application/x-protobuf), or JSON without compression."
        );
        return Refusal::new(400, message);
    }
    Refusal::new(400, format!("Failed to decompress {encoding} payload"))
}

/// The length that gzip's last four bytes say. The request has waited for so much room in memory; of several members, which no exporter sends, only the
/// last one's length is there.
fn said(body: &[u8]) -> usize {
    let length = body.last_chunk::<4>().map(|length| u32::from_le_bytes(*length)).unwrap_or_default();
    usize::try_from(length).unwrap_or(usize::MAX)
}

/// The output of a decoder; `None` where it fails, and a refusal where it is more than `most`
/// bytes.
fn bounded(decoder: impl Read, most: usize) -> Option<Result<Vec<u8>, Refusal>> {
    let mut plain = Vec::new();
    decoder.take(most as u64 + 1).read_to_end(&mut plain).ok()?;
    if plain.len() <= most {
        return Some(Ok(plain));
    }
    let than = if most == LARGEST { format!("{LARGEST} bytes") } else { "its last four bytes say".to_owned() };
    Some(Err(Refusal::new(413, format!("The request is larger than {than} after decompression"))))
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

    /// The decompressed length of a body in gzip, or the refusal.
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
            let begins = format!("The {encoding} payload was read as text on its way");
            assert!(detail.starts_with(&begins) && detail.contains("application/x-protobuf"), "{detail}");
            // Others are broken in another way: cut off, or plain text.
            for body in [&member(1_000)[..12], b"{\"resourceSpans\":[]}"] {
                let expected = (400, format!("Failed to decompress {encoding} payload"));
                assert_eq!(refused(encoding, body), expected);
            }
        }
    }

    #[test]
    fn gzip_becomes_what_it_says() {
        assert_eq!(length(&[3 << 20]), Ok(3 << 20));
        assert_eq!(length(&[LARGEST]), Ok(LARGEST));
        let larger = |than: &str| Err((413, format!("The request is larger than {than} after decompression")));
        assert_eq!(length(&[LARGEST + 1]), larger("33554432 bytes"));
        // Several members: only the last one's size is at the end of the body.
        assert_eq!(length(&[10, 20]), Ok(30));
        assert_eq!(length(&[SMALL, 0]), Ok(SMALL));
        assert_eq!(length(&[0, 3 << 20]), Ok(3 << 20));
        for members in [[3 << 20, 0], [SMALL, 1], [1, 3 << 20], [LARGEST, 0]] {
            assert_eq!(length(&members), larger("its last four bytes say"), "{members:?}");
        }
    }
}
