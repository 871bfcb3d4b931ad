//! What the index knows of a text of a run: its lists by value, and its field for words and trigrams.

use std::collections::HashSet;

use super::list::{Level, RunList, TextRange};
use crate::fields::{IndexedFields, RUN_NAME, USER_ID, of_datasets};
use crate::filter::{KeyTest, RUN_NAME_TAG, RunFilter, RunPredicate, RunText, TextTest};
use crate::like;
use crate::tokens::{self, Term};

/// How many terms of one predicate are looked up: three trigrams narrow a search down about as far as ten.
const TERMS: usize = 3;

/// A text that a run may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Name,
    Status,
    Param(String),
    /// Any other, by its field. Of a field of datasets a run may have several values, one of which has to pass.
    Field(String),
}

impl Column {
    /// The column a predicate looks at, and what it asks of it. The run name is the tag that MLflow keeps equal to it.
    pub(super) fn of_predicate(predicate: &RunPredicate) -> Option<(Self, Asked<'_>)> {
        match predicate {
            RunPredicate::Param { key, test } => Some((Self::Param(key.clone()), Asked::of_key(test)?)),
            RunPredicate::Tag { key, test } if key == RUN_NAME_TAG => Some((Self::Name, Asked::of_key(test)?)),
            RunPredicate::Tag { key, test } => Some((Self::of_tag(key), Asked::of_key(test)?)),
            RunPredicate::Text { attribute: RunText::Status, test } => Some((Self::Status, Asked::Value(test))),
            RunPredicate::Text { attribute: RunText::UserId, test } => {
                Some((Self::Field(USER_ID.to_owned()), Asked::Value(test)))
            }
            RunPredicate::Dataset { field, test } => Some((Self::Field(of_datasets(*field)), Asked::Value(test))),
            RunPredicate::Text { .. } | RunPredicate::Metric { .. } | RunPredicate::Number { .. } => None,
        }
    }

    pub(super) fn of_tag(key: &str) -> Self {
        Self::Field(format!("tags.{key}"))
    }

    /// The list of the runs with these values, if there is one.
    pub(super) fn list(&self, range: TextRange, fields: &IndexedFields) -> Option<RunList> {
        match self {
            Self::Name => Some(RunList::ByName(range)),
            Self::Status => Some(RunList::ByStatus(range)),
            Self::Param(key) => Some(RunList::ByParam { key: key.clone(), range }),
            Self::Field(field) => fields.has_value(field).then(|| by_token(Level::Value, field, range)),
        }
    }

    /// Whether some runs have nothing there. All have a name and a status.
    pub(super) fn may_be_missing(&self) -> bool {
        matches!(self, Self::Param(_) | Self::Field(_))
    }

    /// The field whose text is indexed, if it is.
    fn text_field(&self, fields: &IndexedFields) -> Option<String> {
        let field = match self {
            Self::Name => RUN_NAME.to_owned(),
            Self::Status => return None,
            Self::Param(key) => format!("params.{key}"),
            Self::Field(field) => field.clone(),
        };
        fields.has_text(&field).then_some(field)
    }

    /// Lists in each of which every run that passes stands; none if no list leaves out a run.
    pub(super) fn lists(&self, asked: Asked<'_>, fields: &IndexedFields) -> Vec<RunList> {
        let range = asked.range();
        let by_value = |range| self.list(range, fields);
        let by_value_of = if range == TextRange::ANY { None } else { by_value(range.clone()) };
        if by_value_of.is_some() && matches!(range, TextRange::Equal(_)) {
            return by_value_of.into_iter().collect();
        }
        let terms = match (self.text_field(fields), asked) {
            (Some(field), Asked::Value(test)) => {
                let terms = terms(test);
                let mut terms = chosen(&terms);
                // The list by value says as much of a beginning, and more.
                terms.retain(|term| by_value_of.is_none() || matches!(term.token, TextRange::Equal(_)));
                terms.into_iter().map(|term| by_token(term.level, &field, term.token.clone())).collect()
            }
            _ => Vec::new(),
        };
        let lists: Vec<_> = by_value_of.into_iter().chain(terms).collect();
        if lists.is_empty() && self.may_be_missing() {
            return by_value(TextRange::ANY).into_iter().collect();
        }
        lists
    }

    /// The values a filter leaves, as far as one range can say; `None` if it lets runs pass that have none.
    pub(super) fn range(&self, filter: &RunFilter) -> Option<TextRange> {
        let predicates = filter.predicates.iter().filter_map(Self::of_predicate);
        let ranges = predicates.filter(|(column, _)| column == self).map(|(_, asked)| asked.range());
        ranges.max_by_key(|range| match range {
            TextRange::Equal(_) => usize::MAX,
            TextRange::Prefix(beginning) => beginning.len(),
        })
    }
}

/// What a predicate asks of a text that has to be there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked<'a> {
    Presence,
    Value(&'a TextTest),
}

impl<'a> Asked<'a> {
    fn of_key(test: &'a KeyTest) -> Option<Self> {
        match test {
            KeyTest::Absent => None,
            KeyTest::Present => Some(Self::Presence),
            KeyTest::Value(test) => Some(Self::Value(test)),
        }
    }

    fn range(self) -> TextRange {
        match self {
            Self::Presence => TextRange::ANY,
            Self::Value(test) => range(test),
        }
    }
}

/// The texts that may pass a test.
pub(super) fn range(asked: &TextTest) -> TextRange {
    match asked {
        TextTest::Equal(text) => TextRange::Equal(text.clone()),
        TextTest::Like(pattern) => match like::beginning(pattern.as_str()) {
            (text, false) => TextRange::Equal(text.to_owned()),
            (beginning, true) => TextRange::Prefix(beginning.to_owned()),
        },
        TextTest::ILike(_) | TextTest::NotEqual(_) | TextTest::In(_) | TextTest::NotIn(_) => TextRange::ANY,
    }
}

fn terms(asked: &TextTest) -> Vec<Term> {
    match asked {
        TextTest::Equal(text) => tokens::text_terms(text),
        TextTest::Like(pattern) | TextTest::ILike(pattern) => tokens::pattern_terms(pattern.as_str()),
        TextTest::NotEqual(_) | TextTest::In(_) | TextTest::NotIn(_) => Vec::new(),
    }
}

/// The terms that narrow a search down the most: the longest words; without words, trigrams far apart, since neighbours
/// are in the same texts; without those, the longest beginning of one.
fn chosen(terms: &[Term]) -> Vec<&Term> {
    let mut kinds: [Vec<&Term>; 3] = Default::default();
    let mut seen = HashSet::new();
    for term in terms {
        let kind = match (term.level, &term.token) {
            (Level::Word, _) => 0,
            (_, TextRange::Equal(_)) => 1,
            (_, TextRange::Prefix(_)) => 2,
        };
        if seen.insert(term) {
            kinds[kind].push(term);
        }
    }
    let [mut words, trigrams, beginnings] = kinds;
    if !words.is_empty() {
        words.sort_by_key(|term| std::cmp::Reverse(length(term)));
        words.truncate(TERMS);
        return words;
    }
    if let Some(last) = trigrams.len().checked_sub(1) {
        let mut places = vec![0, last / 2, last];
        places.dedup();
        return places.into_iter().filter_map(|place| trigrams.get(place).copied()).collect();
    }
    // Of several of one length, the first.
    beginnings.into_iter().rev().max_by_key(|term| length(term)).into_iter().collect()
}

fn length(term: &Term) -> usize {
    let (TextRange::Equal(text) | TextRange::Prefix(text)) = &term.token;
    text.len()
}

fn by_token(level: Level, field: &str, token: TextRange) -> RunList {
    RunList::ByToken { level, field: field.to_owned(), token }
}
