//! Names of archived objects.

use std::fmt;

/// The name of an object of the archive: 128 random bits. A new name is drawn for each attempt to
/// write an object, and no name is used twice. A late deletion of an abandoned object therefore
/// never affects another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArchiveObject(u128);

impl ArchiveObject {
    /// Creates a name from random bits.
    #[must_use]
    pub const fn new(random: u128) -> Self {
        Self(random)
    }

    /// Returns the random bits.
    #[must_use]
    pub const fn number(self) -> u128 {
        self.0
    }

    /// Parses the 32 lowercase hexadecimal digits of a name. Returns `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_name = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_name { u128::from_str_radix(text, 16).ok().map(Self) } else { None }
    }
}

impl fmt::Display for ArchiveObject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_32_digits() {
        for number in [0, 1, u128::MAX] {
            let object = ArchiveObject::new(number);
            assert_eq!(ArchiveObject::parse(&object.to_string()), Some(object));
        }
        for text in ["", "0", &"0".repeat(33), &"A".repeat(32), &"g".repeat(32), &format!("+{}", "0".repeat(31))] {
            assert_eq!(ArchiveObject::parse(text), None, "{text}");
        }
    }
}
