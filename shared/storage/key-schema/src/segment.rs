//! The segments that keys consist of. Their encoding contains no `#`, and its byte order is the
//! order of the values.

use std::fmt::Write;

use sha2::Digest as _;

use model::{
    ArchiveObject, DatasetRecordId, EvaluationDatasetId, ExperimentId, IssueId, LabelSchemaId, McpServerName,
    McpVersion, ModelId, ReviewQueueId, RunId, ScorerId, SkillName, TraceId, WebhookEventId, WebhookId,
};

/// A value that can be encoded between two literals of a key.
pub trait Segment: Sized {
    /// Appends the encoded value to a key.
    fn write(&self, key: &mut String);
    /// Parses the encoded value.
    fn read(text: &str) -> Option<Self>;
    /// Returns the encoded value.
    fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }
}

/// How the tokens of a full-text list are made from a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Some of the value's substrings of three characters, in lower case.
    Trigram,
    /// The whole value.
    Value,
}

impl Segment for Level {
    fn write(&self, key: &mut String) {
        key.push_str(match self {
            Self::Trigram => "3",
            Self::Value => "V",
        });
    }

    fn read(text: &str) -> Option<Self> {
        match text {
            "3" => Some(Self::Trigram),
            "V" => Some(Self::Value),
            _ => None,
        }
    }
}

/// Returns the first 128 bits of SHA-256, which stand for a long text in a key. It is infeasible to
/// find two texts with the same hash, or a text for a given hash.
#[must_use]
pub fn sha256_128(bytes: &[u8]) -> u128 {
    let hash = sha2::Sha256::digest(bytes);
    hash.first_chunk().map_or(0, |first| u128::from_be_bytes(*first))
}

/// Returns the 128-bit FNV-1a hash. Use it only to spread items over partitions. Collisions are
/// easy to compute, and an attacker can choose a text with any given hash, so it must not be part
/// of a key or an identity: use [`sha256_128`] for these.
#[must_use]
pub fn fnv1a_128(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash: u128, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

/// Returns the two halves of a hash, the more significant one first.
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

/// Implements [`Segment`] for ids that are texts of a fixed form and contain no `#`.
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
id_segments!(DatasetRecordId, EvaluationDatasetId, IssueId, LabelSchemaId, ReviewQueueId, ScorerId, TraceId);

/// Implements [`Segment`] for ids that are ULIDs.
macro_rules! ulid_segments {
    ($($id:ident),+) => {$(
        impl Segment for $id {
            fn write(&self, key: &mut String) {
                let _ = write!(key, "{self}");
            }

            fn read(text: &str) -> Option<Self> {
                Self::parse(text)
            }
        }
    )+};
}
ulid_segments!(WebhookEventId, WebhookId);

/// The sequence number of a record of the table's stream, with leading zeros, so that keys sort in
/// the order of the stream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceNumber(String);

impl SequenceNumber {
    /// Number of digits in keys. The documentation of DynamoDB states a maximum of 40.
    const DIGITS: usize = 40;

    /// Parses a sequence number. Returns `None` for a text that is no number or too long.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_number =
            !text.is_empty() && text.len() <= Self::DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| Self(format!("{text:0>width$}", width = Self::DIGITS)))
    }
}

impl Segment for SequenceNumber {
    fn write(&self, key: &mut String) {
        key.push_str(&self.0);
    }

    fn read(text: &str) -> Option<Self> {
        Self::parse(text).filter(|number| number.0 == text)
    }
}

/// Names of MCP servers are not escaped, because they contain no character that has a meaning in
/// keys.
impl Segment for McpServerName {
    fn write(&self, key: &mut String) {
        key.push_str(self.as_str());
    }

    fn read(text: &str) -> Option<Self> {
        Self::parse(text).ok()
    }
}

/// A version of an MCP server, smallest first. The key contains the version's precedence, followed
/// by the version as it was written, because versions that differ only in build metadata have the
/// same precedence.
impl Segment for McpVersion {
    fn write(&self, key: &mut String) {
        key.push_str(&self.precedence_key());
        key.push_str(self.as_str());
    }

    fn read(text: &str) -> Option<Self> {
        let (_, written) = text.rsplit_once(['~', '!'])?;
        Self::of(written).filter(|version| version.text() == text)
    }
}

/// The name of a skill. Keys sort by organization, and then by name.
impl Segment for SkillName {
    fn write(&self, key: &mut String) {
        key.push_str(&self.sort_key());
    }

    fn read(text: &str) -> Option<Self> {
        Self::of_sort_key(text)
    }
}

/// A 64-bit integer, smallest first: 16 hexadecimal digits with the sign bit flipped.
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

/// A 64-bit integer, greatest first. For times, this means newest first.
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

/// A metric's value, greatest first, with NaN last. All 64 bits are significant for the order.
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

/// Returns bits that sort like the number: negative numbers are inverted, and positive numbers sort
/// after them.
fn ordered_bits(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn read_hex(text: &str) -> Option<u64> {
    let well_formed =
        text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    well_formed.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// A small number, such as a model version or a count, encoded with ten digits.
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

/// A 64-bit hash that distinguishes rows whose keys are otherwise equal.
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

/// A 128-bit SHA-256 hash of a text that a client chose. It identifies a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WideDigest(pub u128);

impl WideDigest {
    /// Returns the hash of several texts. Each is preceded by its length, so that moving characters
    /// from one text to the next changes the hash.
    #[must_use]
    pub fn of(texts: &[&str]) -> Self {
        let mut bytes = Vec::new();
        for text in texts {
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        Self::of_bytes(&bytes)
    }

    /// Returns the hash of bytes.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(sha256_128(bytes))
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

impl Segment for ArchiveObject {
    fn write(&self, key: &mut String) {
        let _ = write!(key, "{self}");
    }

    fn read(text: &str) -> Option<Self> {
        Self::parse(text)
    }
}

/// The number of one of the 16 metrics documents over which the further metrics of a wide run are
/// distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket(u8);

impl Bucket {
    /// Number of buckets.
    pub const COUNT: u8 = 16;

    /// Returns the bucket of a metric.
    #[must_use]
    pub fn of(metric: &str) -> Self {
        Self(spread(metric) >> 4)
    }
}

/// Returns eight bits of a text's hash. FNV leaves the high bits of short texts nearly alike.
/// Multiplying by 2^64 / golden ratio spreads them.
fn spread(text: &str) -> u8 {
    let [high, low] = halves(fnv1a_128(text.as_bytes()));
    let [.., bits] = ((high ^ low).wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes();
    bits
}

impl Segment for Bucket {
    fn write(&self, key: &mut String) {
        let _ = write!(key, "{:x}", self.0);
    }

    fn read(text: &str) -> Option<Self> {
        (text.len() == 1).then(|| u8::from_str_radix(text, 16).ok().map(Self)).flatten()
    }
}

/// One of the few partitions over which rows of all experiments are spread, so that none of them is
/// hot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(u8);

impl Shard {
    const COUNT: u8 = 4;

    /// Returns the shard of an entity, by its id.
    #[must_use]
    pub fn of(id: &str) -> Self {
        Self(spread(id) % Self::COUNT)
    }

    /// Returns all shards.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self)
    }
}

impl Segment for Shard {
    fn write(&self, key: &mut String) {
        let _ = write!(key, "{}", self.0);
    }

    fn read(text: &str) -> Option<Self> {
        let shard = text.parse().ok().filter(|shard| *shard < Self::COUNT)?;
        (text.len() == 1).then_some(Self(shard))
    }
}

/// The list that a registered model is in: models and prompts are searched separately.
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

/// The lifecycle stage in a run's own item, with the version of the experiment's stage for which it
/// applies.
///
/// Deleting or restoring an experiment changes only one item, that of the experiment, and
/// increments its stage version. A run that was deleted on its own is deleted only while this
/// version is current, so the version is part of the index key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Not deleted on its own. The run has the stage of its experiment, unless it was restored on
    /// its own after the experiment was deleted: it is active then.
    Active,
    /// Deleted on its own, when the experiment's stage had this version.
    Deleted {
        /// The experiment's stage version when the run was deleted.
        version: u32,
    },
}

impl Stage {
    /// Prefix of all encoded `Deleted` values.
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
mod tests;
