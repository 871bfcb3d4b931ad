//! Ranges of keys, as queries ask for them.

use std::marker::PhantomData;

use crate::definition::{Index, PK, SK};
use crate::{Key, Segment, TextSegment};

/// Greater than every character of a key but itself.
const END: char = '\u{10FFFF}';
/// Less than every character of a key.
const BEGIN: char = '\u{1}';

/// A text after all keys that begin with `beginning`, and before all later keys. `$` follows `#`,
/// which ends every segment but the last.
fn end_of(beginning: &str) -> String {
    match beginning.strip_suffix('#') {
        Some(segments) => format!("{segments}$"),
        None => format!("{beginning}{END}"),
    }
}

/// A range of one partition, of the table or of an index, in the order of its sort keys.
///
/// A place in the range is the part of a sort key after the beginning that all keys of the range
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
    /// All of the partition.
    All,
    /// Those that begin so.
    BeginWith(String),
    /// Those from the first to the last, both included.
    Between(String, String),
}

impl KeyRange {
    /// The keys of a partition that begin so; all of it if the beginning is empty.
    pub(crate) fn new(index: Option<&'static Index>, partition: String, beginning: &str) -> Self {
        Self { index, partition, beginning: beginning.to_owned(), first: String::new(), last: None }
    }

    /// Only from this place on, itself included.
    #[must_use]
    pub fn starting(mut self, first: &str) -> Self {
        if first > self.first.as_str() {
            first.clone_into(&mut self.first);
        }
        self
    }

    /// Only from this sort key on, itself included, if it is one of the range.
    #[must_use]
    pub fn starting_at_key(self, sort_key: &str) -> Self {
        match self.place(sort_key).map(str::to_owned) {
            Some(place) => self.starting(&place),
            None => self,
        }
    }

    /// Only keys after this place.
    #[must_use]
    pub fn after(self, last: &str) -> Self {
        self.starting(&format!("{last}{BEGIN}"))
    }

    /// Only up to this place, itself included.
    #[must_use]
    pub fn until(mut self, last: &str) -> Self {
        if self.last.as_deref().is_none_or(|known| last < known) {
            self.last = Some(last.to_owned());
        }
        self
    }

    /// Only up to the last place that begins so.
    #[must_use]
    pub fn until_beginning(self, beginning: &str) -> Self {
        self.until(&end_of(beginning))
    }

    /// Only keys after the last place that begins so.
    #[must_use]
    pub fn after_beginning(self, beginning: &str) -> Self {
        self.starting(&end_of(beginning))
    }

    /// Only the places that begin so.
    #[must_use]
    pub fn beginning(self, beginning: &str) -> Self {
        self.starting(beginning).until_beginning(beginning)
    }

    /// From the first key of this range to the last of another range of the same partition, with
    /// everything between. Its places are whole sort keys.
    #[must_use]
    pub fn through(self, other: impl Into<Self>) -> Self {
        let other = other.into();
        let first = self.beginning + &self.first;
        let last = other.last.map_or_else(|| end_of(&other.beginning), |last| other.beginning.clone() + &last);
        Self { beginning: String::new(), first, last: Some(last), ..self }
    }

    /// Whether no key can lie in the range.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last.as_deref().is_some_and(|last| self.first.as_str() > last)
    }

    /// Whether a key of the table or index lies in the range.
    #[must_use]
    pub fn contains(&self, key: &Key) -> bool {
        let is_within = |place: &str| match &self.last {
            Some(_) if self.is_beginning() => place.starts_with(&self.first),
            last => place >= self.first.as_str() && last.as_deref().is_none_or(|last| place <= last),
        };
        key.pk == self.partition && self.place(&key.sk).is_some_and(is_within)
    }

    /// The place of a sort key in the range.
    #[must_use]
    pub fn place<'a>(&self, sort_key: &'a str) -> Option<&'a str> {
        sort_key.strip_prefix(&self.beginning)
    }

    /// The index that is read; `None` for the table itself.
    #[must_use]
    pub fn index(&self) -> Option<&'static Index> {
        self.index
    }

    /// The attribute of the partition key, and its value.
    #[must_use]
    pub fn partition(&self) -> (&'static str, &str) {
        (self.index.map_or(PK, |index| index.partition), &self.partition)
    }

    /// The attribute of the sort key.
    #[must_use]
    pub fn sort_attribute(&self) -> &'static str {
        self.index.map_or(SK, |index| index.sort)
    }

    /// Whether it is all places that begin so: then a query can ask for exactly these, whatever characters they have.
    fn is_beginning(&self) -> bool {
        self.last.as_ref().is_some_and(|last| *last == end_of(&self.first))
    }

    /// The sort keys of the range.
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

/// The keys between two texts. A range of whole keys may have no first one, and DynamoDB takes no empty text for a key.
fn between(first: String, last: String) -> SortKeys {
    SortKeys::Between(if first.is_empty() { BEGIN.to_string() } else { first }, last)
}

/// The rows of a type in one partition whose first segments are given; a method for each further segment narrows it. The keys of
/// other rows may begin the same: a run's params lie among the rows that begin like a run.
#[derive(Clone, Debug)]
pub struct Prefix<Row, const GIVEN: usize> {
    range: KeyRange,
    row: PhantomData<Row>,
}

impl<Row, const GIVEN: usize> Prefix<Row, GIVEN> {
    pub(crate) fn new(index: Option<&'static Index>, partition: String, literal: &str) -> Self {
        Self { range: KeyRange::new(index, partition, literal), row: PhantomData }
    }

    /// With one more segment, and the literal that follows it.
    pub(crate) fn then<const MORE: usize>(mut self, segment: &impl Segment, literal: &str) -> Prefix<Row, MORE> {
        segment.write(&mut self.range.beginning);
        self.range.beginning.push_str(literal);
        Prefix { range: self.range, row: PhantomData }
    }

    /// The keys whose next segment is a text that begins so, and perhaps more: a text that has no room in a key is cut.
    #[must_use]
    pub fn beginning(mut self, text: &impl TextSegment) -> KeyRange {
        self.range.beginning.push_str(&text.beginning());
        self.range
    }

    /// Only rows after the one whose key ends with this segment.
    #[must_use]
    pub fn after(self, segment: &impl Segment) -> KeyRange {
        self.range.after(&segment.text())
    }

    /// As a range, which can be narrowed by places.
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
