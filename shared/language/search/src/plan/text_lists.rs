//! Lists of runs for conditions on a text column: the list by value, and the lists by token. Each
//! contains every run that passes.

use super::column::RunColumn;
use super::conditions::PlanCondition;
use super::run_list::RunList;
use crate::fields::CommonFields;
use crate::filter::TextTest;
use crate::like;
use crate::range::TextRange;
use crate::trigram_tokens;

/// Returns lists that each contain every run that passes the test. Empty if no list would exclude
/// any run.
pub(super) fn lists(column: &RunColumn, test: Option<&TextTest>, fields: &CommonFields) -> Vec<RunList> {
    let range = test.map_or(TextRange::ANY, range_of);
    let by_value = |range| column.is_listed(fields).then(|| RunList::ByText { column: column.clone(), range });
    let of_range = if range == TextRange::ANY { None } else { by_value(range.clone()) };
    if of_range.is_some() && matches!(range, TextRange::Equal(_)) {
        return of_range.into_iter().collect();
    }
    let tokens = match (column.text_field(fields), test) {
        (Some(field), Some(test)) => {
            let list = |token| RunList::ByToken { field: field.clone(), token };
            chosen(tokens_of(test)).into_iter().map(list).collect()
        }
        _ => Vec::new(),
    };
    let lists: Vec<_> = of_range.into_iter().chain(tokens).collect();
    // The list of all values is useful even though it has no narrower range. It excludes runs
    // without a value, and its keys show which values pass.
    if lists.is_empty() && (column.may_be_missing() || column.values().is_empty() && test.is_some_and(is_selective)) {
        return by_value(TextRange::ANY).into_iter().collect();
    }
    lists
}

/// Checks whether a test may be selective enough to justify reading the keys of all values.
fn is_selective(test: &TextTest) -> bool {
    !matches!(test, TextTest::NotEqual(_) | TextTest::NotIn(_))
        && !matches!(test, TextTest::Like(pattern) | TextTest::ILike(pattern) if pattern.as_str().chars().all(|one| one == '%'))
}

/// Returns the narrowest single range that contains all values of a column that pass the
/// conditions. Returns `None` if runs without a value may pass.
pub(super) fn range(asks: &[PlanCondition<'_>], of: &RunColumn) -> Option<TextRange> {
    let ranges = asks.iter().filter_map(|ask| match ask {
        PlanCondition::Text { column, test } if column == of => Some(test.map_or(TextRange::ANY, range_of)),
        _ => None,
    });
    ranges.max_by_key(|range| match range {
        TextRange::Equal(_) => usize::MAX,
        TextRange::Prefix(beginning) => beginning.len(),
    })
}

/// Returns a range that contains all texts that may pass a test.
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

fn tokens_of(asked: &TextTest) -> Vec<String> {
    match asked {
        TextTest::Equal(text) => trigram_tokens::of_equal(text),
        TextTest::Like(pattern) | TextTest::ILike(pattern) => trigram_tokens::of_pattern(pattern),
        TextTest::NotEqual(_) | TextTest::In(_) | TextTest::NotIn(_) => Vec::new(),
    }
}

/// Selects the tokens that narrow down a search the most. These are tokens that are far apart,
/// because adjacent tokens tend to occur in the same texts.
fn chosen(tokens: Vec<String>) -> Vec<String> {
    let Some(last) = tokens.len().checked_sub(1) else { return tokens };
    let is_chosen = |place: usize| place == 0 || place == last / 2 || place == last;
    tokens.into_iter().enumerate().filter(|(place, _)| is_chosen(*place)).map(|(_, token)| token).collect()
}

/// Returns the tests that can be applied to the texts in the keys of a list, to exclude runs that
/// fail the filter.
///
/// If a run may have several texts in the column, each condition may be met by a different text.
/// The result is then empty unless there is exactly one condition.
#[must_use]
pub fn tests_of_keys<'a>(asks: &[PlanCondition<'a>], list: &RunList) -> Vec<&'a TextTest> {
    let RunList::ByText { column: of, range: TextRange::Prefix(_) } = list else { return Vec::new() };
    let asked = asks.iter().filter_map(|ask| match ask {
        PlanCondition::Text { column, test } if column == of => Some(*test),
        _ => None,
    });
    let asked: Vec<_> = asked.collect();
    if asked.len() > 1 && of.may_be_several() { Vec::new() } else { asked.into_iter().flatten().collect() }
}
