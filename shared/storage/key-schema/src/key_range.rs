//! Ranges of keys for queries.

use std::marker::PhantomData;

use crate::definition::{Index, PK, SK};
use crate::{Key, Segment, TextSegment};

/// A character that sorts after every other character of a key.
const LAST_CHARACTER: char = '\u{10FFFF}';
/// A character that sorts before every other character of a key.
const FIRST_CHARACTER: char = '\u{1}';

/// Returns a text that sorts after all keys with this prefix, and before all later keys. A prefix
/// ends in `#`, unless it ends with the last segment. The text then ends in `$`, the successor of
/// `#`.
fn end_of(beginning: &str) -> String {
    match beginning.strip_suffix('#') {
        Some(segments) => format!("{segments}$"),
        None => format!("{beginning}{LAST_CHARACTER}"),
    }
}

/// A range of sort keys in one partition of the table or of an index.
///
/// A position in the range is the part of a sort key after the prefix that all keys of the range
/// share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    index: Option<&'static Index>,
    partition: String,
    beginning: String,
    first: String,
    last: Option<String>,
}

/// The sort keys of a [`KeyRange`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SortKeys {
    /// All keys of the partition.
    All,
    /// Keys with this prefix.
    BeginWith(String),
    /// Keys from the first to the last, inclusive.
    Between(String, String),
}

impl KeyRange {
    /// Returns the range of a partition's keys with this prefix. The empty prefix means the whole
    /// partition.
    pub(crate) fn new(index: Option<&'static Index>, partition: String, beginning: &str) -> Self {
        Self { index, partition, beginning: beginning.to_owned(), first: String::new(), last: None }
    }

    /// Starts the range at this position (a sort key without the range's prefix), inclusive.
    #[must_use]
    pub fn starting(mut self, first: &str) -> Self {
        if first > self.first.as_str() {
            first.clone_into(&mut self.first);
        }
        self
    }

    /// Starts the range at this sort key, inclusive. A sort key outside the range has no effect.
    #[must_use]
    pub fn starting_at_key(self, sort_key: &str) -> Self {
        match self.place(sort_key).map(str::to_owned) {
            Some(place) => self.starting(&place),
            None => self,
        }
    }

    /// Starts the range after this position (a sort key without the range's prefix).
    #[must_use]
    pub fn after(self, last: &str) -> Self {
        self.starting(&format!("{last}{FIRST_CHARACTER}"))
    }

    /// Ends the range at this position (a sort key without the range's prefix), inclusive.
    #[must_use]
    pub fn until(mut self, last: &str) -> Self {
        if self.last.as_deref().is_none_or(|known| last < known) {
            self.last = Some(last.to_owned());
        }
        self
    }

    /// Ends the range with the last sort key whose position (the part after the range's prefix)
    /// begins with this text.
    #[must_use]
    pub fn until_beginning(self, beginning: &str) -> Self {
        self.until(&end_of(beginning))
    }

    /// Starts the range after the last sort key whose position (the part after the range's prefix)
    /// begins with this text.
    #[must_use]
    pub fn after_beginning(self, beginning: &str) -> Self {
        self.starting(&end_of(beginning))
    }

    /// Restricts the range to sort keys whose position (the part after the range's prefix) begins
    /// with this text.
    #[must_use]
    pub fn beginning(self, beginning: &str) -> Self {
        self.starting(beginning).until_beginning(beginning)
    }

    /// Returns the range from the first key of this range to the last key of another range in the
    /// same partition, including everything in between. The result has no common prefix, so its
    /// positions are whole sort keys.
    #[must_use]
    pub fn through(self, other: impl Into<Self>) -> Self {
        let other = other.into();
        let first = self.beginning + &self.first;
        let last = other.last.map_or_else(|| end_of(&other.beginning), |last| other.beginning.clone() + &last);
        Self { beginning: String::new(), first, last: Some(last), ..self }
    }

    /// Checks whether the range cannot contain any key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last.as_deref().is_some_and(|last| self.first.as_str() > last)
    }

    /// Checks whether the range contains a key of the table or index.
    #[must_use]
    pub fn contains(&self, key: &Key) -> bool {
        let is_within = |place: &str| match &self.last {
            Some(_) if self.is_beginning() => place.starts_with(&self.first),
            last => place >= self.first.as_str() && last.as_deref().is_none_or(|last| place <= last),
        };
        key.pk == self.partition && self.place(&key.sk).is_some_and(is_within)
    }

    /// Returns the position of a sort key in the range, which is the part after the range's prefix.
    #[must_use]
    pub fn place<'a>(&self, sort_key: &'a str) -> Option<&'a str> {
        sort_key.strip_prefix(&self.beginning)
    }

    /// Returns the index of the range, or `None` for the table itself.
    #[must_use]
    pub fn index(&self) -> Option<&'static Index> {
        self.index
    }

    /// Returns the attribute of the partition key, and its value.
    #[must_use]
    pub fn partition(&self) -> (&'static str, &str) {
        (self.index.map_or(PK, |index| index.partition), &self.partition)
    }

    /// Returns the attribute of the sort key.
    #[must_use]
    pub fn sort_attribute(&self) -> &'static str {
        self.index.map_or(SK, |index| index.sort)
    }

    /// Checks whether the range consists of exactly the sort keys with one prefix. A query can
    /// express such a range precisely, whatever characters the keys contain.
    fn is_beginning(&self) -> bool {
        self.last.as_ref().is_some_and(|last| *last == end_of(&self.first))
    }

    /// Returns the sort keys of the range.
    #[must_use]
    pub fn sort_keys(&self) -> SortKeys {
        let beginning = &self.beginning;
        match &self.last {
            None if self.first.is_empty() && beginning.is_empty() => SortKeys::All,
            None if self.first.is_empty() => SortKeys::BeginWith(beginning.clone()),
            None => between(format!("{beginning}{}", self.first), end_of(beginning)),
            Some(_) if self.is_beginning() => match format!("{beginning}{}", self.first) {
                beginning if beginning.is_empty() => SortKeys::All,
                beginning => SortKeys::BeginWith(beginning),
            },
            Some(last) => between(format!("{beginning}{}", self.first), format!("{beginning}{last}")),
        }
    }
}

/// Returns the keys between two texts. If the range has no prefix, the first text may be empty. It
/// is then replaced, because DynamoDB does not accept an empty string as a key.
fn between(first: String, last: String) -> SortKeys {
    SortKeys::Between(if first.is_empty() { FIRST_CHARACTER.to_string() } else { first }, last)
}

/// The rows of one type in one partition, narrowed by the leading segments of their keys. For each
/// of the following segments, a method narrows the rows further. Keys of other row types may share
/// the prefix: for example, the keys of a run's params begin with the prefix of runs.
#[derive(Clone, Debug)]
pub struct Prefix<Row, const GIVEN: usize> {
    range: KeyRange,
    row: PhantomData<Row>,
}

impl<Row, const GIVEN: usize> Prefix<Row, GIVEN> {
    pub(crate) fn new(index: Option<&'static Index>, partition: String, literal: &str) -> Self {
        Self { range: KeyRange::new(index, partition, literal), row: PhantomData }
    }

    /// Appends a segment, and the literal that follows it.
    pub(crate) fn then<const MORE: usize>(mut self, segment: &impl Segment, literal: &str) -> Prefix<Row, MORE> {
        segment.write(&mut self.range.beginning);
        self.range.beginning.push_str(literal);
        Prefix { range: self.range, row: PhantomData }
    }

    /// Returns the range of keys whose next segment is a text with this prefix. It may contain
    /// other keys, because a text that is too long for a key is truncated.
    #[must_use]
    pub fn beginning(mut self, text: &impl TextSegment) -> KeyRange {
        self.range.beginning.push_str(&text.beginning());
        self.range
    }

    /// Returns the range of the rows after the row whose key ends with this segment.
    #[must_use]
    pub fn after(self, segment: &impl Segment) -> KeyRange {
        self.range.after(&segment.text())
    }

    /// Converts the prefix to a range, which can be narrowed by positions within it.
    #[must_use]
    pub fn range(self) -> KeyRange {
        self.range
    }
}

impl<Row, const GIVEN: usize> From<Prefix<Row, GIVEN>> for KeyRange {
    fn from(prefix: Prefix<Row, GIVEN>) -> Self {
        prefix.range
    }
}

#[cfg(test)]
mod tests {
    use model::{ExperimentId, RunId};

    use super::*;
    use crate::index::{IndexEntry, RunLocation, RunsByStage};
    use crate::rows::{Experiment, ExperimentName, RankByMetric, Run, RunTag};
    use crate::{Descending, DescendingDouble, Field, Name, Stage};

    const EXPERIMENT: ExperimentId = ExperimentId::DEFAULT;

    fn between(first: &str, last: &str) -> SortKeys {
        SortKeys::Between(first.to_owned(), last.to_owned())
    }

    #[test]
    fn each_segment_narrows_the_range() {
        let (field, value) = (Field::from("m"), DescendingDouble(0.5));
        let run = RunId::parse("r").unwrap();
        for (range, partition, beginning) in [
            (RunTag::all(&EXPERIMENT).range(), "EXP#0", "R#"),
            (RunTag::all(&EXPERIMENT).run(&run).range(), "EXP#0", "R#r#TAG#"),
            (RankByMetric::all(&EXPERIMENT, &field).value(&value).range(), "IX#0#M#m", &format!("{}#", value.text())),
        ] {
            assert_eq!(range.sort_keys(), SortKeys::BeginWith(beginning.to_owned()));
            assert_eq!((range.index(), range.partition(), range.sort_attribute()), (None, (PK, partition), SK));
        }
        let whole = || RankByMetric::all(&EXPERIMENT, &field).range();
        assert_eq!(whole().sort_keys(), SortKeys::All);
        assert_eq!(whole().until("b").sort_keys(), between("\u{1}", "b"), "no empty text");
        assert_eq!(whole().starting("b").sort_keys(), between("b", "\u{10FFFF}"));
        assert_eq!(Experiment::partition(&EXPERIMENT).sort_keys(), SortKeys::All);
    }

    #[test]
    fn a_range_of_an_index_knows_its_attributes() {
        let run = RunId::parse("r").unwrap();
        let range = RunsByStage::all(&EXPERIMENT).stage(&Stage::Active).range();
        assert_eq!((range.partition(), range.sort_attribute()), ((PK, "EXP#0"), "lsi1sk"));
        assert_eq!(range.index(), Some(RunsByStage::INDEX));
        let range = RunLocation::all(&run).range();
        assert_eq!((range.partition(), range.sort_attribute()), (("gsi1pk", "RUN#r"), "gsi1sk"));
        let (key, global) =
            (RunsByStage::key(&Stage::Active, &Descending(0), &run), RunLocation::key(&run, &EXPERIMENT));
        assert_eq!(key.0[0], ("lsi1sk", "R#ACTIVE#7fffffffffffffff#r".to_owned()));
        assert_eq!(global.0, [("gsi1pk", "RUN#r".to_owned()), ("gsi1sk", "EXP#0".to_owned())]);
        let back = RunsByStage { stage: Stage::Active, started: Descending(0), run };
        assert_eq!(RunsByStage::parse(&key.0[0].1), Some(back));
        assert_eq!(RunsByStage::parse(&global.0[1].1), None);
    }

    #[test]
    fn places_narrow_it_further_and_never_widen_it() {
        let range = || RunsByStage::all(&EXPERIMENT).stage(&Stage::Active).range();
        assert_eq!(range().starting("b").starting("a").sort_keys(), between("R#ACTIVE#b", "R#ACTIVE$"));
        assert_eq!(range().until("b").until("c").sort_keys(), between("R#ACTIVE#", "R#ACTIVE#b"));
        assert_eq!(range().after("b").sort_keys(), between("R#ACTIVE#b\u{1}", "R#ACTIVE$"));
        assert_eq!(Experiment::partition(&EXPERIMENT).beginning("").sort_keys(), SortKeys::All);
        assert_eq!(range().beginning("b").sort_keys(), SortKeys::BeginWith("R#ACTIVE#b".to_owned()));
        assert_eq!(range().beginning("b#").after("b#c").sort_keys(), between("R#ACTIVE#b#c\u{1}", "R#ACTIVE#b$"));
        assert_eq!(
            range().until_beginning("b").after_beginning("b").sort_keys(),
            between("R#ACTIVE#b\u{10FFFF}", "R#ACTIVE#b\u{10FFFF}")
        );
        assert_eq!(range().starting_at_key("R#ACTIVE#b"), range().starting("b"));
        assert_eq!(range().starting_at_key("R#DELETED.#b"), range(), "no key of the range");
        assert_eq!(range().place("R#ACTIVE#b"), Some("b"));
        assert!(range().starting("b").until("a").is_empty() && !range().starting("a").until("a").is_empty());
        let [a, ab] = ["a", "ab"].map(|run| RunId::parse(run).unwrap());
        let range = Run::all(&EXPERIMENT).after(&a);
        assert!(range.contains(&Run::key(&EXPERIMENT, &ab)) && !range.contains(&Run::key(&EXPERIMENT, &a)));
    }

    #[test]
    fn names_that_begin_so_are_in_the_range() {
        let range = ExperimentName::all(&"w".into()).beginning(&Name::from("a #"));
        for (name, is_in) in [("a #", true), ("a #1", true), ("a ", false), ("b", false)] {
            assert_eq!(range.contains(&ExperimentName::key(&"w".into(), &name.into())), is_in, "{name}");
        }
        assert!(!range.contains(&ExperimentName::key(&"other".into(), &"a #".into())));
    }
}
