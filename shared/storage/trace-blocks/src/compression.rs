//! Compressed bytes, preceded by their uncompressed length so that it can be checked before
//! decompression.

use std::io;

use crate::bytes::{ByteReader, put_count};

/// First byte of all compressed data. A future format would use another number.
const FORMAT: u8 = 1;

/// Compression level. A high level pays off because blocks are highly repetitive and packing
/// happens in the background.
const COMPRESSION_LEVEL: i32 = 9;

/// Maximum number of bytes before compression. No caller compresses more than this in one call.
const MAX_UNCOMPRESSED_BYTES: usize = 1 << 20;

pub(crate) fn compress(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = vec![FORMAT];
    put_count(&mut packed, content.len());
    packed.extend(zstd::bulk::compress(content, COMPRESSION_LEVEL)?);
    Ok(packed)
}

/// Decompresses bytes. Returns `None` if they do not have this module's format.
pub(crate) fn decompress(packed: &[u8]) -> Option<Vec<u8>> {
    let mut reader = ByteReader(packed);
    if reader.byte()? != FORMAT {
        return None;
    }
    let length = usize::try_from(reader.number()?).ok().filter(|length| *length <= MAX_UNCOMPRESSED_BYTES)?;
    if reader.is_empty() {
        return None;
    }
    zstd::bulk::decompress(reader.0, length).ok().filter(|content| content.len() == length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_compressed_comes_back(content: Vec<u8>) {
            prop_assert_eq!(decompress(&compress(&content).unwrap()), Some(content));
        }

        #[test]
        fn other_bytes_are_refused(bytes: Vec<u8>) {
            prop_assert_eq!(decompress(&bytes), None);
        }
    }

    #[test]
    fn what_would_be_too_large_is_not_unpacked() {
        let bomb = compress(&vec![0; MAX_UNCOMPRESSED_BYTES + 1]).unwrap();
        assert_eq!(decompress(&bomb), None);
        let mut says_less = vec![FORMAT, 10];
        says_less.extend(zstd::bulk::compress(&[0; 1000], COMPRESSION_LEVEL).unwrap());
        assert_eq!(decompress(&says_less), None);
    }
}
