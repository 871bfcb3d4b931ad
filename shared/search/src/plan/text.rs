//! The lists in which the entities stand that pass what is asked of a text: its list by value, and those by words and trigrams.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::column::{Columns, TextColumn};
use super::list::List;
use super::question::Ask;
use crate::fields::IndexedFields;
use crate::filter::TextTest;
use crate::like;
use crate::range::TextRange;
use crate::tokens::{self, Level, Term};

/// How many terms of one condition are looked up: three trigrams narrow a search down about as far as ten.
const TERMS: usize = 3;

/// Lists in each of which every entity that passes stands; none if no list leaves out one.
pub(super) fn lists<C: Columns>(column: &C::Text, test: Option<&TextTest>, fields: &IndexedFields) -> Vec<List<C>> {
    let range = test.map_or(TextRange::ANY, range_of);
    let by_value = |range| column.is_listed(fields).then(|| List::ByText { column: column.clone(), range });
    let of_range = if range == TextRange::ANY { None } else { by_value(range.clone()) };
    if of_range.is_some() && matches!(range, TextRange::Equal(_)) {
        return of_range.into_iter().collect();
    }
    let by_terms = match (column.text_field(fields), test) {
        (Some(field), Some(test)) => {
            let terms = terms_of(test);
            let mut terms = chosen(&terms);
            // The list by value says as much of a beginning, and more.
            terms.retain(|term| of_range.is_none() || matches!(term.token, TextRange::Equal(_)));
            let list =
                |term: &Term| List::ByToken { level: term.level, field: field.clone(), token: term.token.clone() };
            terms.into_iter().map(list).collect()
        }
        _ => Vec::new(),
    };
    let lists: Vec<_> = of_range.into_iter().chain(by_terms).collect();
    if lists.is_empty() && column.may_be_missing() {
        return by_value(TextRange::ANY).into_iter().collect();
    }
    lists
}

/// The values of a column that the conditions leave, as far as one range can say; `None` if they let entities pass that have
/// none.
pub(super) fn range<C: Columns>(asks: &[Ask<'_, C>], of: &C::Text) -> Option<TextRange> {
    let ranges = asks.iter().filter_map(|ask| match ask {
        Ask::Text { column, test } if column == of => Some(test.map_or(TextRange::ANY, range_of)),
        _ => None,
    });
    ranges.max_by_key(|range| match range {
        TextRange::Equal(_) => usize::MAX,
        TextRange::Prefix(beginning) => beginning.len(),
    })
}

/// The texts that may pass a test.
pub(crate) fn range_of(asked: &TextTest) -> TextRange {
    match asked {
        TextTest::Equal(text) => TextRange::Equal(text.clone()),
        TextTest::Like(pattern) => match like::beginning(pattern.as_str()) {
            (text, false) => TextRange::Equal(text.to_owned()),
            (beginning, true) => TextRange::Prefix(beginning.to_owned()),
        },
        TextTest::ILike(_) | TextTest::NotEqual(_) | TextTest::In(_) | TextTest::NotIn(_) => TextRange::ANY,
    }
}

fn terms_of(asked: &TextTest) -> Vec<Term> {
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
        words.sort_by_key(|term| Reverse(length(term)));
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
