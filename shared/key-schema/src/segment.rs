//! The parts a key is made of. Each writes itself so that it holds no `#` and sorts, byte by byte, like what it stands for.

use std::fmt::Write;

use mlflow_api::{DatasetRecordId, EvaluationDatasetId, ExperimentId, ModelId, RunId, ScorerId};

/// A value that can stand between two literals of a key.
pub trait Segment: Sized {
    /// Appends the value's form in a key.
    fn write(&self, key: &mut String);
    /// Reads a value back from its form in a key.
    fn read(text: &str) -> Option<Self>;
    /// The value's form in a key.
    fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }
}

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
        /// `#` follows both. A text longer than the key has room for keeps its beginning and ends in a hash of the whole; the
        /// row then holds it in an attribute.
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
        let _ = write!(key, "{CUT}{:032x}", fnv1a_128(text.as_bytes()));
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

/// How the tokens of a full-text list were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Three characters in a row, in lower case.
    Trigram,
    /// A stemmed word.
    Word,
    /// The whole value.
    Value,
}

impl Segment for Level {
    fn write(&self, key: &mut String) {
        key.push_str(match self {
            Self::Trigram => "3",
            Self::Word => "W",
            Self::Value => "V",
        });
    }

    fn read(text: &str) -> Option<Self> {
        match text {
            "3" => Some(Self::Trigram),
            "W" => Some(Self::Word),
            "V" => Some(Self::Value),
            _ => None,
        }
    }
}

/// FNV-1a with 128 bits: names are told apart, not protected.
#[must_use]
pub fn fnv1a_128(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash: u128, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

/// The two halves of a hash, the higher first.
#[must_use]
pub fn halves(hash: u128) -> [u64; 2] {
    let [a, b] = [hash >> 64, hash & u128::from(u64::MAX)].map(u64::try_from);
    [a.unwrap_or_default(), b.unwrap_or_default()]
}

impl Segment for ExperimentId {
    fn write(&self, key: &mut String) {
        let _ = write!(key, "{self}");
    }

    fn read(text: &str) -> Option<Self> {
        let id = text.parse().ok().and_then(Self::from_number)?;
        (id.to_string() == text).then_some(id)
    }
}

impl Segment for RunId {
    fn write(&self, key: &mut String) {
        key.push_str(self.as_str());
    }

    fn read(text: &str) -> Option<Self> {
        Self::parse(text)
    }
}

impl Segment for ModelId {
    fn write(&self, key: &mut String) {
        key.push_str(self.as_str());
    }

    fn read(text: &str) -> Option<Self> {
        Self::parse(text)
    }
}

/// Ids that are texts of one form, made here.
macro_rules! id_segments {
    ($($id:ident),+) => {$(
        impl Segment for $id {
            fn write(&self, key: &mut String) {
                key.push_str(self.as_str());
            }

            fn read(text: &str) -> Option<Self> {
                Self::parse(text)
            }
        }
    )+};
}
id_segments!(DatasetRecordId, EvaluationDatasetId, ScorerId);

/// A 64-bit integer, smallest first: 16 hexadecimal digits with the sign bit turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ascending(pub i64);

const SIGN: u64 = 1 << 63;

impl Segment for Ascending {
    fn write(&self, key: &mut String) {
        let _ = write!(key, "{:016x}", self.0.cast_unsigned() ^ SIGN);
    }

    fn read(text: &str) -> Option<Self> {
        read_hex(text).map(|bits| Self((bits ^ SIGN).cast_signed()))
    }
}

/// A 64-bit integer, greatest first: the newest time leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descending(pub i64);

impl Segment for Descending {
    fn write(&self, key: &mut String) {
        Ascending(!self.0).write(key);
    }

    fn read(text: &str) -> Option<Self> {
        Ascending::read(text).map(|Ascending(inverted)| Self(!inverted))
    }
}

/// A metric's value, greatest first, NaN last; the order is that of the whole 64-bit value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DescendingDouble(pub f64);

impl Segment for DescendingDouble {
    fn write(&self, key: &mut String) {
        let bits = if self.0.is_nan() { 0 } else { ordered_bits(self.0) };
        let _ = write!(key, "{:016x}", !bits);
    }

    fn read(text: &str) -> Option<Self> {
        let bits = !read_hex(text)?;
        let raw = if bits & SIGN == 0 { !bits } else { bits ^ SIGN };
        Some(Self(if bits == 0 { f64::NAN } else { f64::from_bits(raw) }))
    }
}

/// Bits of a number that sort like the number: negatives inverted, positives above them.
fn ordered_bits(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn read_hex(text: &str) -> Option<u64> {
    let well_formed =
        text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    well_formed.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// A small number in ten digits: a model version, a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ordinal(pub u32);

impl Segment for Ordinal {
    fn write(&self, key: &mut String) {
        let _ = write!(key, "{:010}", self.0);
    }

    fn read(text: &str) -> Option<Self> {
        (text.len() == 10).then(|| text.parse().ok().map(Self)).flatten()
    }
}

/// 64 bits of a hash, to tell rows apart that are alike in the rest of their key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(pub u64);

impl Segment for Digest {
    fn write(&self, key: &mut String) {
        let _ = write!(key, "{:016x}", self.0);
    }

    fn read(text: &str) -> Option<Self> {
        read_hex(text).map(Self)
    }
}

/// 128 bits of a hash of what a client chose: what makes a row the row of a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WideDigest(pub u128);

impl WideDigest {
    /// Of several texts. The length goes before each, so that none can take a character from the next.
    #[must_use]
    pub fn of(texts: &[&str]) -> Self {
        let mut bytes = Vec::new();
        for text in texts {
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        Self(fnv1a_128(&bytes))
    }
}

impl Segment for WideDigest {
    fn write(&self, key: &mut String) {
        let _ = write!(key, "{:032x}", self.0);
    }

    fn read(text: &str) -> Option<Self> {
        let (high, low) = text.split_at_checked(16)?;
        Some(Self((u128::from(read_hex(high)?) << 64) | u128::from(read_hex(low)?)))
    }
}

/// One of the 16 documents that take a wide run's further metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket(u8);

impl Bucket {
    /// How many there are.
    pub const COUNT: u8 = 16;

    /// The bucket of a metric.
    #[must_use]
    pub fn of(metric: &str) -> Self {
        let hash = fnv1a_128(metric.as_bytes());
        let [high, low] = halves(hash);
        // FNV leaves the high bits of short texts nearly alike; a multiplication by 2^64 / golden ratio spreads them.
        let [.., nibbles] = ((high ^ low).wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes();
        Self(nibbles >> 4)
    }
}

impl Segment for Bucket {
    fn write(&self, key: &mut String) {
        let _ = write!(key, "{:x}", self.0);
    }

    fn read(text: &str) -> Option<Self> {
        (text.len() == 1).then(|| u8::from_str_radix(text, 16).ok().map(Self)).flatten()
    }
}

/// Registered models are listed in two lists: what is searched as a model, and what as a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModelKind {
    /// A model.
    Model,
    /// A prompt.
    Prompt,
}

impl Segment for ModelKind {
    fn write(&self, key: &mut String) {
        key.push_str(match self {
            Self::Model => "M",
            Self::Prompt => "P",
        });
    }

    fn read(text: &str) -> Option<Self> {
        match text {
            "M" => Some(Self::Model),
            "P" => Some(Self::Prompt),
            _ => None,
        }
    }
}

/// Which lifecycle stage a run's own item says, and of which version of the experiment's stage.
///
/// Deleting or restoring an experiment changes one item, the experiment, and raises its stage version. A run deleted on its
/// own is deleted only as long as that version stands, so the version is part of the index key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// As the experiment, or active on its own.
    Active,
    /// Deleted on its own while the experiment's stage had this version.
    Deleted {
        /// The experiment's stage version at that time.
        version: u32,
    },
}

impl Stage {
    /// What every `Deleted` begins with in a key.
    pub(crate) const DELETED: &str = "DELETED.";
}

impl Segment for Stage {
    fn write(&self, key: &mut String) {
        match self {
            Self::Active => key.push_str("ACTIVE"),
            Self::Deleted { version } => {
                let _ = write!(key, "{}{version:010}", Self::DELETED);
            }
        }
    }

    fn read(text: &str) -> Option<Self> {
        match text.strip_prefix(Self::DELETED) {
            Some(version) => Ordinal::read(version).map(|Ordinal(version)| Self::Deleted { version }),
            None => (text == "ACTIVE").then_some(Self::Active),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(segment: &impl Segment) -> String {
        segment.text()
    }

    proptest! {
        #[test]
        fn names_come_back_and_hold_no_separator(name in "\\PC{0,40}|[ !-/a-c#$]{0,40}|[\\x00-\\x7f]{0,20}") {
            let key = written(&Name(name.clone()));
            prop_assert!(!key.contains('#'));
            prop_assert_eq!(Name::read(&key), Some(Name(name)));
        }

        #[test]
        fn names_keep_their_order_before_a_separator(a in "[ !-&a-c\u{e9}]{0,6}", b in "[ !-&a-c\u{e9}]{0,6}") {
            let with_separator = |name: &str| written(&Name::from(name)) + "#zzz";
            prop_assert_eq!(a.cmp(&b), with_separator(&a).cmp(&with_separator(&b)));
        }

        #[test]
        fn long_names_are_cut_and_still_told_apart(name in "[ a\u{1F600}]{400,900}", more in "[a-z ]{1,3}") {
            let longer = format!("{name}{more}");
            let (key, other) = (written(&Name(name)), written(&Name(longer)));
            prop_assert!(key.len() <= 700 && other.len() <= 700);
            prop_assert_ne!(key, other);
        }

        #[test]
        fn a_beginning_begins_every_text_that_begins_so(text in "[ -~\u{e9}]{0,300}", more in "[ -~]{0,300}") {
            let beginning = Value(text.clone()).beginning();
            prop_assert!(written(&Value(text + &more)).starts_with(&beginning));
        }

        #[test]
        fn integers_keep_their_order(a: i64, b: i64) {
            prop_assert_eq!(a.cmp(&b), written(&Ascending(a)).cmp(&written(&Ascending(b))));
            prop_assert_eq!(b.cmp(&a), written(&Descending(a)).cmp(&written(&Descending(b))));
            prop_assert_eq!(Ascending::read(&written(&Ascending(a))), Some(Ascending(a)));
            prop_assert_eq!(Descending::read(&written(&Descending(a))), Some(Descending(a)));
        }

        #[test]
        fn doubles_keep_their_order(a in any::<f64>(), b in any::<f64>()) {
            let (left, right) = (written(&DescendingDouble(a)), written(&DescendingDouble(b)));
            match (a.is_nan(), b.is_nan()) {
                (true, true) => prop_assert_eq!(left, right),
                (true, false) => prop_assert!(left > right),
                (false, true) => prop_assert!(left < right),
                (false, false) => prop_assert_eq!(b.total_cmp(&a), left.cmp(&right)),
            }
            let back = DescendingDouble::read(&written(&DescendingDouble(a))).unwrap().0;
            prop_assert!(back.to_bits() == a.to_bits() || (a.is_nan() && back.is_nan()));
        }
    }

    #[test]
    fn the_edges_of_doubles_are_in_order() {
        let values =
            [f64::INFINITY, f64::MAX, 1.0, 5e-324, 0.0, -0.0, -5e-324, -1.0, f64::MIN, f64::NEG_INFINITY, f64::NAN];
        let keys: Vec<_> = values.iter().map(|value| written(&DescendingDouble(*value))).collect();
        assert!(keys.is_sorted() && keys.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn metrics_spread_over_the_buckets() {
        let mut counts = [0; Bucket::COUNT as usize];
        for number in 0..1_600 {
            counts[usize::from(Bucket::of(&format!("metric_{number}")).0)] += 1;
        }
        assert!(counts.iter().all(|count| (50..200).contains(count)), "{counts:?}");
    }
}
