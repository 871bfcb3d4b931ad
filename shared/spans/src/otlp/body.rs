//! Bodies that come compressed.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use crate::refusal::Refusal;

/// Bytes of a body after decompression.
const LARGEST: usize = 32 << 20;

/// The body as it was before it was compressed.
pub(super) fn decompressed<'a>(encoding: Option<&str>, body: &'a [u8]) -> Result<Cow<'a, [u8]>, Refusal> {
    let encoding = encoding.unwrap_or_default().to_lowercase();
    match encoding.as_str() {
        "" => Ok(Cow::Borrowed(body)),
        // To Python, nothing at all is a gzip file without members.
        "gzip" if body.is_empty() => Ok(Cow::Borrowed(body)),
        "gzip" => match bounded(MultiGzDecoder::new(body)) {
            Some(plain) => plain.map(Cow::Owned),
            None => Err(Refusal::new(400, "Failed to decompress gzip payload")),
        },
        // Some clients leave the two bytes before and the checksum away.
        "deflate" => match bounded(ZlibDecoder::new(body)).or_else(|| bounded(DeflateDecoder::new(body))) {
            Some(plain) => plain.map(Cow::Owned),
            None => Err(Refusal::new(400, "Failed to decompress deflate payload")),
        },
        other => Err(Refusal::new(400, format!("Unsupported Content-Encoding: {other}"))),
    }
}

/// What a decoder gives; nothing where it fails, and an answer of its own where it gives too much.
fn bounded(decoder: impl Read) -> Option<Result<Vec<u8>, Refusal>> {
    let mut plain = Vec::new();
    decoder.take(LARGEST as u64 + 1).read_to_end(&mut plain).ok()?;
    if plain.len() > LARGEST {
        let detail = format!("The request is larger than {LARGEST} bytes after decompression");
        return Some(Err(Refusal::new(413, detail)));
    }
    Some(Ok(plain))
}
