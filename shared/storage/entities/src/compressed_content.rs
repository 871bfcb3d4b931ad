//! Long texts, compressed and split into parts that fit into items.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

/// Maximum number of bytes in one part. An item has room for 400 KB, including its key and
/// attribute names.
pub const MAX_PART_BYTES: usize = 380 << 10;

/// Compresses a text. JSON becomes five to twenty times smaller.
#[must_use]
pub fn compress(text: &str) -> Vec<u8> {
    deflate(text.as_bytes())
}

/// Decompresses a text. Returns `None` if the bytes were not produced by [`compress`].
#[must_use]
pub fn decompress(bytes: &[u8]) -> Option<String> {
    String::from_utf8(inflate(bytes)?).ok()
}

/// Compresses bytes.
#[must_use]
pub fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// Decompresses bytes. Returns `None` if the input was not produced by [`deflate`].
#[must_use]
pub fn inflate(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut inflated = Vec::new();
    DeflateDecoder::new(bytes).read_to_end(&mut inflated).ok()?;
    Some(inflated)
}

/// Splits bytes into parts of at most [`MAX_PART_BYTES`].
pub fn parts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(MAX_PART_BYTES)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_come_back(text in "\\PC{0,200}") {
            prop_assert_eq!(decompress(&compress(&text)), Some(text));
        }

        #[test]
        fn foreign_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = decompress(&bytes);
        }
    }

    #[test]
    fn parts_together_are_the_whole() {
        let bytes = vec![7; MAX_PART_BYTES * 2 + 5];
        let sizes: Vec<_> = parts(&bytes).map(<[u8]>::len).collect();
        assert_eq!(sizes, [MAX_PART_BYTES, MAX_PART_BYTES, 5]);
        assert_eq!(parts(&bytes).flatten().count(), bytes.len());
    }
}
