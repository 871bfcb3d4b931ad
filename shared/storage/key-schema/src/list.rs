//! The parts of keys that identify a list of the index.

use std::fmt::Write;

use crate::segment::{Level, Segment, fnv1a_128, halves};

/// The kind of value that a list of the index is sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListKind {
    /// A metric.
    Metric,
    /// A param.
    Param,
    /// Tokens of a field.
    Tokens(Level),
}

impl Segment for ListKind {
    fn write(&self, key: &mut String) {
        match self {
            Self::Metric => key.push('M'),
            Self::Param => key.push('P'),
            Self::Tokens(level) => level.write(key),
        }
    }

    fn read(text: &str) -> Option<Self> {
        match text {
            "M" => Some(Self::Metric),
            "P" => Some(Self::Param),
            level => Level::read(level).map(Self::Tokens),
        }
    }
}

/// One of the partitions of a field's tokens. An entity has a single value for a field, but one
/// trigram for every two or three characters of the field's text. Trigrams are spread over
/// partitions by a hash of their first character, so that a new entity writes only a few entries to
/// each partition. Tokens with the same first character are still adjacent and sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenPart {
    level: Level,
    part: u8,
}

impl TokenPart {
    /// Number of partitions for trigrams.
    const SPREAD: u8 = 8;

    /// Returns the part that contains all tokens that start with `beginning`, which must not be
    /// empty for trigrams.
    #[must_use]
    pub fn of(level: Level, beginning: &str) -> Self {
        let mut character = [0; 4];
        let first = beginning.chars().next().unwrap_or_default().encode_utf8(&mut character);
        let [high, low] = halves(fnv1a_128(first.as_bytes()));
        // FNV leaves the high bits of short texts nearly alike. As for a `Bucket`, a multiplication
        // spreads them.
        let [.., spread] = ((high ^ low).wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes();
        Self { level, part: if level == Level::Value { 0 } else { spread % Self::SPREAD } }
    }

    /// Returns all parts of a level.
    pub fn all(level: Level) -> impl Iterator<Item = Self> {
        let parts = if level == Level::Value { 1 } else { Self::SPREAD };
        (0..parts).map(move |part| Self { level, part })
    }
}

impl Segment for TokenPart {
    fn write(&self, key: &mut String) {
        self.level.write(key);
        let _ = write!(key, "{:x}", self.part);
    }

    fn read(text: &str) -> Option<Self> {
        let (level, part) = text.split_at_checked(1)?;
        let level = Level::read(level)?;
        Self::all(level).find(|known| format!("{:x}", known.part) == part)
    }
}

/// Whether an entity itself was deleted, as opposed to its experiment. Copies of entities that were
/// deleted themselves are in a separate partition, so that a search reads only copies of active or
/// only copies of deleted entities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnStage {
    /// Not deleted itself. The entity has the stage of its experiment, unless it was restored on
    /// its own after the experiment was deleted: it is active then.
    Active,
    /// Deleted itself, independently of its experiment.
    Deleted,
}

impl OwnStage {
    /// Both stages.
    pub const ALL: [Self; 2] = [Self::Active, Self::Deleted];
}

impl Segment for OwnStage {
    fn write(&self, key: &mut String) {
        key.push_str(match self {
            Self::Active => "A",
            Self::Deleted => "D",
        });
    }

    fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.text() == text)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn tokens_that_begin_alike_stand_together_and_others_are_spread() {
        for level in [Level::Trigram] {
            assert_eq!(TokenPart::of(level, "abc"), TokenPart::of(level, "a"));
            let mut parts: HashMap<u8, usize> = HashMap::new();
            for character in ('a'..='z').chain('0'..='9').chain(['-', '_']) {
                *parts.entry(TokenPart::of(level, &character.to_string()).part).or_default() += 1;
            }
            assert!(parts.len() == 8 && parts.values().all(|characters| *characters <= 10), "{parts:?}");
            assert_eq!(TokenPart::all(level).count(), 8);
        }
        assert!(
            TokenPart::of(Level::Value, "abc") == TokenPart::of(Level::Value, "")
                && TokenPart::all(Level::Value).count() == 1
        );
    }

    #[test]
    fn each_comes_back() {
        let levels = [Level::Trigram, Level::Value];
        for part in levels.into_iter().flat_map(TokenPart::all) {
            assert_eq!(TokenPart::read(&part.text()), Some(part));
        }
        let tokens = levels.map(ListKind::Tokens);
        for kind in [ListKind::Metric, ListKind::Param].into_iter().chain(tokens) {
            assert_eq!(ListKind::read(&kind.text()), Some(kind));
        }
        for stage in OwnStage::ALL {
            assert_eq!(OwnStage::read(&stage.text()), Some(stage));
        }
        assert!(TokenPart::read("38").is_none() && TokenPart::read("V1").is_none() && TokenPart::read("").is_none());
    }
}
