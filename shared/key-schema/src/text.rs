//! Texts as parts of keys.

use std::fmt::Write;

use mlflow_api::UserName;

use crate::segment::{Segment, sha256_128};

/// A text the user chose.
pub trait TextSegment: Segment {
    /// The longest beginning, in bytes: a text whose form in a key is longer than this may have been cut, and then
    /// the order of keys is not that of texts.
    const UNCUT: usize;

    /// What all texts that begin like this one begin with in a key, cut or not; for queries by prefix.
    fn beginning(&self) -> String;
}

/// Marks a text that was cut; greater than every escape of a character, so no whole text ends like a cut one.
const CUT: &str = "$~";

/// A type of texts the user chose. Longest form in a key, in bytes: a sort key has room for 1,024.
macro_rules! text_segment {
    ($(#[doc = $doc:literal])+ $name:ident, $longest:literal) => {
        $(#[doc = $doc])+
        ///
        /// Bytes up to `$` become `$` and two hexadecimal digits, so the text holds no `#` and `a` still sorts before `a!` when
        /// `#` follows both. A text longer than the key has room for keeps its beginning and ends in a hash of the whole
        /// ([`sha256_128`](crate::sha256_128)); the row then holds it in an attribute. Whoever reads by such a name compares that.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(pub String);

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl TextSegment for $name {
            const UNCUT: usize = uncut($longest);

            fn beginning(&self) -> String {
                let mut key = String::new();
                write_uncut(&self.0, $longest, &mut key);
                key
            }
        }

        impl Segment for $name {
            fn write(&self, key: &mut String) {
                write_text(&self.0, $longest, key);
            }

            fn read(text: &str) -> Option<Self> {
                read_text(text).map(Self)
            }
        }
    };
}

text_segment! {
    /// A tag's key, an experiment's name.
    Name, 700
}
text_segment! {
    /// What a list of an index is about: a metric, a param, a field.
    Field, 400
}
text_segment! {
    /// A value or a token in a list of an index.
    Value, 200
}

/// A user's name. It is bounded so that no key cuts it: nobody's key is that of another.
impl Segment for UserName {
    fn write(&self, key: &mut String) {
        Name::from(self.as_str()).write(key);
    }

    fn read(text: &str) -> Option<Self> {
        Self::named(&Name::read(text)?.0)
    }
}

fn write_character(character: char, key: &mut String) {
    if character <= '$' {
        let _ = write!(key, "${:02x}", character as u32);
    } else {
        key.push(character);
    }
}

/// How much is left of a text that is cut, in bytes.
const fn uncut(longest: usize) -> usize {
    longest - CUT.len() - 32
}

fn write_uncut(text: &str, longest: usize, key: &mut String) {
    let start = key.len();
    for character in text.chars() {
        let end = key.len();
        write_character(character, key);
        if key.len() - start > uncut(longest) {
            key.truncate(end);
            return;
        }
    }
}

fn write_text(text: &str, longest: usize, key: &mut String) {
    let start = key.len();
    let mut end_of_beginning = start;
    for character in text.chars() {
        if key.len() - start <= uncut(longest) {
            end_of_beginning = key.len();
        }
        write_character(character, key);
    }
    if key.len() - start > longest {
        key.truncate(end_of_beginning);
        let _ = write!(key, "{CUT}{:032x}", sha256_128(text.as_bytes()));
    }
}

fn read_text(text: &str) -> Option<String> {
    let mut name = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(position) = rest.find('$') {
        name.push_str(&rest[..position]);
        let escape = rest.get(position + 1..position + 3)?;
        name.push(char::from(u8::from_str_radix(escape, 16).ok()?));
        rest = &rest[position + 3..];
    }
    name.push_str(rest);
    Some(name)
}
