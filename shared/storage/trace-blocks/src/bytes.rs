//! Encoding of numbers and texts as bytes.

/// Appends a number, with seven bits per byte.
pub(crate) fn put_number(bytes: &mut Vec<u8>, number: u64) {
    let mut left = number;
    while left >= 0x80 {
        bytes.push(low(left) | 0x80);
        left >>= 7;
    }
    bytes.push(low(left));
}

fn low(number: u64) -> u8 {
    u8::try_from(number & 0x7f).unwrap_or_default()
}

/// Appends the number of items that follow.
pub(crate) fn put_count(bytes: &mut Vec<u8>, count: usize) {
    put_number(bytes, count as u64);
}

/// Appends a signed number. Numbers near zero of either sign take few bytes.
pub(crate) fn put_signed(bytes: &mut Vec<u8>, number: i64) {
    put_number(bytes, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

/// Appends the length of the bytes, and then the bytes.
pub(crate) fn put_bytes(bytes: &mut Vec<u8>, content: &[u8]) {
    put_count(bytes, content.len());
    bytes.extend_from_slice(content);
}

/// A decoder. Its methods return `None` if the bytes end too early or do not have the expected
/// form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteReader<'a>(pub(crate) &'a [u8]);

impl<'a> ByteReader<'a> {
    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // At the tenth byte, only one of the 64 bits of a number is left.
            if bits.checked_shl(shift).is_none_or(|shifted| shifted >> shift != bits) {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// Reads the number of items that follow. Returns `None` if more items are announced than there
    /// are bytes left.
    pub(crate) fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok().filter(|count| *count <= self.0.len())
    }

    pub(crate) fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.count()?;
        self.take(count)
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(number: u64, signed: i64, bytes: Vec<u8>, text: String) {
            let mut written = Vec::new();
            put_number(&mut written, number);
            put_signed(&mut written, signed);
            put_bytes(&mut written, &bytes);
            put_bytes(&mut written, text.as_bytes());
            let mut reader = ByteReader(&written);
            prop_assert_eq!(reader.number(), Some(number));
            prop_assert_eq!(reader.signed(), Some(signed));
            prop_assert_eq!(reader.bytes(), Some(bytes.as_slice()));
            prop_assert_eq!(reader.text(), Some(text.as_str()));
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn nothing_is_read_of_other_bytes_that_is_not_there(bytes: Vec<u8>) {
            let mut reader = ByteReader(&bytes);
            let _ = (reader.number(), reader.count(), reader.text(), reader.signed());
            prop_assert!(reader.0.len() <= bytes.len());
        }
    }

    #[test]
    fn numbers_that_are_too_long_are_none() {
        assert_eq!(ByteReader(&[0x80; 20]).number(), None);
        assert_eq!(ByteReader(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).number(), None);
        assert_eq!(ByteReader(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]).number(), Some(u64::MAX));
        assert_eq!(ByteReader(&[200, 1, 1]).count(), None, "more than there are bytes");
    }
}
