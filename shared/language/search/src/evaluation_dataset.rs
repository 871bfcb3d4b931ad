//! Searches of evaluation datasets: the filter, the ordering, and the fields that they use
//! (`SearchEvaluationDatasetsUtils` in MLflow's `search_utils.py`,
//! `_get_search_datasets_filter_clauses` in its SQL store).

use std::cmp::Ordering;

use mlflow_api::python::float;
use mlflow_api::{Error, Result};

use crate::comparison::{Comparison, PartNaming, comparisons};
use crate::filter::{Comparator, TextTest};
use crate::identifier::RunFieldFamily;
use crate::literals::{self, FilterLiteral, FilterNumber};
use crate::order_by::{OrderTerm, SortDirection, parse_clauses};
use crate::python_repr;
use crate::sort_key::{SortKey, SortKeyPart, SortKeyValue};

const ATTRIBUTES: [&str; 5] = ["created_by", "created_time", "last_update_time", "last_updated_by", "name"];
const ORDER_ATTRIBUTES: [&str; 3] = ["created_time", "last_update_time", "name"];

/// The conditions of a search of evaluation datasets, all of which must be met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DatasetFilter {
    /// The conditions, in the order of the filter string.
    pub predicates: Vec<DatasetPredicate>,
}

/// A condition on an evaluation dataset. A missing value does not meet any condition, not even
/// `!=`.
#[derive(Clone, Debug, PartialEq)]
pub enum DatasetPredicate {
    /// A condition on a text attribute.
    Text {
        /// The attribute.
        attribute: DatasetText,
        /// The test of its value.
        test: TextTest,
    },
    /// A lexicographic comparison (such as `<`) of a text attribute. MLflow leaves it to the
    /// database.
    TextOrder {
        /// The attribute.
        attribute: DatasetText,
        /// The comparator.
        comparator: Comparator,
        /// The value to compare with.
        value: String,
    },
    /// A condition on a numeric attribute.
    Number {
        /// The attribute.
        attribute: DatasetNumber,
        /// The comparator.
        comparator: Comparator,
        /// The value to compare with.
        value: i64,
    },
    /// A condition on a tag.
    Tag {
        /// The name of the tag.
        key: String,
        /// The test of its value.
        test: TextTest,
    },
}

/// The text attributes of an evaluation dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatasetText {
    /// The name.
    Name,
    /// The user who created the dataset.
    CreatedBy,
    /// The user whose records were merged last.
    LastUpdatedBy,
}

/// The numeric attributes of an evaluation dataset, which are times in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatasetNumber {
    /// The creation time.
    CreatedTime,
    /// The time of the last change.
    LastUpdateTime,
}

/// The fields that evaluation datasets can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatasetSortBy {
    /// The name.
    Name,
    /// A numeric attribute.
    Number(DatasetNumber),
}

/// An order of evaluation datasets. Ties are broken by id, in descending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatasetOrder {
    /// The terms, in descending order of precedence.
    pub terms: Vec<OrderTerm<DatasetSortBy>>,
}

/// The fields of an evaluation dataset that filters and orderings use.
pub trait DatasetFields {
    /// Returns the id.
    fn id(&self) -> &str;

    /// Returns a text attribute.
    fn text(&self, attribute: DatasetText) -> Option<&str>;

    /// Returns a numeric attribute.
    fn number(&self, attribute: DatasetNumber) -> i64;

    /// Returns the value of a tag.
    fn tag(&self, key: &str) -> Option<&str>;
}

/// Parses the filter and the ordering of a search of evaluation datasets. If there are several
/// mistakes, returns the error that MLflow would report.
pub fn parse_dataset_search(filter: &str, order_by: &[String]) -> Result<(DatasetFilter, DatasetOrder)> {
    Ok((parse_dataset_filter(filter)?, parse_dataset_order_by(order_by)?))
}

/// Parses a filter. Every dataset passes the empty filter.
pub fn parse_dataset_filter(filter: &str) -> Result<DatasetFilter> {
    // MLflow parses every value before it checks the first comparator.
    let drafts: Vec<_> =
        comparisons(filter, PartNaming::Bare)?.map(|comparison| read(&comparison?)).collect::<Result<_>>()?;
    let predicates = drafts.into_iter().map(|(identifier, comparator, value)| build(identifier, comparator, value));
    Ok(DatasetFilter { predicates: predicates.collect::<Result<_>>()? })
}

/// The field that a comparison or an ordering refers to.
#[derive(Clone, Copy)]
enum Identifier<'a> {
    Attribute(&'a str),
    Tag(&'a str),
}

/// Parses an identifier. Quotes are part of the key, unlike in searches of runs.
fn identifier<'a>(text: &'a str, attributes: &[&str]) -> Result<Identifier<'a>> {
    match text.split_once('.') {
        None if attributes.contains(&text) => Ok(Identifier::Attribute(text)),
        None => Err(Error::invalid(format!(
            "Invalid attribute key '{text}' specified. Valid keys are: {}",
            python_repr::set(attributes)
        ))),
        Some(("tags", key)) => Ok(Identifier::Tag(key)),
        Some((family, _)) => Err(Error::invalid(format!("Invalid identifier token '{family}' specified"))),
    }
}

/// Parses the identifier and the value. Comparators are case-sensitive, so `like` is not a
/// comparator.
fn read<'a>(comparison: &Comparison<'a>) -> Result<(Identifier<'a>, &'a str, Option<FilterLiteral>)> {
    let identifier = identifier(comparison.left, &ATTRIBUTES)?;
    let value = match (identifier, &comparison.right) {
        (Identifier::Tag(_), None) => None,
        (Identifier::Attribute(key), None) => {
            return Err(Error::invalid(format!(
                "IS NULL / IS NOT NULL is only supported for tags and params, not for 'attribute' '{key}'"
            )));
        }
        (Identifier::Tag(_), Some(right)) => {
            Some(FilterLiteral::Text(literals::keyed_text(RunFieldFamily::Tag, right)?))
        }
        (Identifier::Attribute(key), Some(right)) if DatasetNumber::parse(key).is_some() => {
            Some(FilterLiteral::Number(literals::attribute_number(key, right)?))
        }
        (Identifier::Attribute(key), Some(right)) => Some(literals::attribute_text(key, right, "name")?),
    };
    if matches!(value, Some(FilterLiteral::List(_))) && comparison.comparator != "IN" {
        return Err(Error::invalid("List values for 'name' are only supported with the IN comparator."));
    }
    Ok((identifier, comparison.comparator, value))
}

/// Checks the comparator and the value, and builds the predicate.
fn build(identifier: Identifier, comparator: &str, value: Option<FilterLiteral>) -> Result<DatasetPredicate> {
    match identifier {
        Identifier::Tag(key) => match value.map(|value| TextTest::new(comparator, value)).transpose()?.flatten() {
            Some(test) => Ok(DatasetPredicate::Tag { key: key.to_owned(), test }),
            None => Err(Error::invalid(format!("Invalid comparator for tag: {comparator}"))),
        },
        Identifier::Attribute(key) => {
            if let Some(FilterLiteral::Number(value)) = value {
                return number(key, comparator, value);
            }
            let not_of_texts = || Error::invalid(format!("Invalid comparator for string attribute: {comparator}"));
            let (Some(attribute), Some(value)) = (DatasetText::parse(key), value) else { return Err(not_of_texts()) };
            match (Comparator::parse(comparator), value) {
                (Some(comparator), FilterLiteral::Text(value))
                    if !matches!(comparator, Comparator::Equal | Comparator::NotEqual) =>
                {
                    Ok(DatasetPredicate::TextOrder { attribute, comparator, value })
                }
                (_, value) => {
                    let test = TextTest::new(comparator, value)?.ok_or_else(not_of_texts)?;
                    Ok(DatasetPredicate::Text { attribute, test })
                }
            }
        }
    }
}

fn number(key: &str, comparator: &str, value: FilterNumber) -> Result<DatasetPredicate> {
    let (Some(attribute), Some(comparator)) = (DatasetNumber::parse(key), Comparator::parse(comparator)) else {
        return Err(Error::invalid(format!("Invalid comparator for numeric attribute: {comparator}")));
    };
    match value {
        FilterNumber::Integer(value) => Ok(DatasetPredicate::Number { attribute, comparator, value }),
        FilterNumber::Float(value) => {
            Err(Error::invalid(format!("Invalid value for numeric attribute '{key}': '{}'", float(value))))
        }
    }
}

/// Parses an ordering (`_get_search_datasets_order_by_clauses`).
pub fn parse_dataset_order_by(clauses: &[String]) -> Result<DatasetOrder> {
    let newest =
        OrderTerm { by: DatasetSortBy::Number(DatasetNumber::CreatedTime), direction: SortDirection::Descending };
    if clauses.is_empty() {
        return Ok(DatasetOrder { terms: vec![newest] });
    }
    let terms = parse_clauses(clauses)?.map(|clause| {
        let (written, direction) = clause?;
        match identifier(&written, &ORDER_ATTRIBUTES)? {
            Identifier::Attribute(key) => {
                let by = DatasetNumber::parse(key).map_or(DatasetSortBy::Name, DatasetSortBy::Number);
                Ok(OrderTerm { by, direction })
            }
            Identifier::Tag(_) => Err(Error::invalid("Invalid order_by entity: tag")),
        }
    });
    Ok(DatasetOrder { terms: terms.collect::<Result<_>>()? })
}

impl DatasetText {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "name" => Some(Self::Name),
            "created_by" => Some(Self::CreatedBy),
            "last_updated_by" => Some(Self::LastUpdatedBy),
            _ => None,
        }
    }
}

impl DatasetNumber {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "created_time" => Some(Self::CreatedTime),
            "last_update_time" => Some(Self::LastUpdateTime),
            _ => None,
        }
    }
}

impl DatasetFilter {
    /// Checks whether a dataset passes the filter.
    #[must_use]
    pub fn matches(&self, dataset: &impl DatasetFields) -> bool {
        self.predicates.iter().all(|predicate| predicate.matches(dataset))
    }
}

impl DatasetPredicate {
    /// Checks whether a dataset meets the condition.
    #[must_use]
    pub fn matches(&self, dataset: &impl DatasetFields) -> bool {
        match self {
            Self::Text { attribute, test } => dataset.text(*attribute).is_some_and(|text| test.passes(text)),
            Self::TextOrder { attribute, comparator, value } => {
                let order = dataset.text(*attribute).map(|text| text.cmp(value.as_str()));
                order.is_some_and(|order: Ordering| comparator.holds(order))
            }
            Self::Number { attribute, comparator, value } => comparator.holds(dataset.number(*attribute).cmp(value)),
            Self::Tag { key, test } => dataset.tag(key).is_some_and(|value| test.passes(value)),
        }
    }
}

impl DatasetOrder {
    /// Returns the sort key of a dataset. Sorting datasets by these keys results in this order.
    #[must_use]
    pub fn key(&self, dataset: &impl DatasetFields) -> SortKey {
        let part = |term: &OrderTerm<DatasetSortBy>| {
            let cell = match term.by {
                DatasetSortBy::Name => SortKeyValue::text(dataset.text(DatasetText::Name)),
                DatasetSortBy::Number(attribute) => SortKeyValue::Integer(dataset.number(attribute)),
            };
            SortKeyPart(term.direction, cell)
        };
        let id = SortKeyPart(SortDirection::Descending, SortKeyValue::Text(dataset.id().to_owned()));
        SortKey(self.terms.iter().map(part).chain([id]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Dataset;

    impl DatasetFields for Dataset {
        fn id(&self) -> &'static str {
            "d-1"
        }

        fn text(&self, attribute: DatasetText) -> Option<&str> {
            match attribute {
                DatasetText::Name => Some("Questions"),
                DatasetText::CreatedBy => Some("ann"),
                DatasetText::LastUpdatedBy => None,
            }
        }

        fn number(&self, attribute: DatasetNumber) -> i64 {
            match attribute {
                DatasetNumber::CreatedTime => 5,
                DatasetNumber::LastUpdateTime => 7,
            }
        }

        fn tag(&self, key: &str) -> Option<&str> {
            (key == "team").then_some("search")
        }
    }

    #[test]
    fn what_passes() {
        for (filter, passes) in [
            ("", true),
            ("name = 'Questions' AND tags.team != 'x'", true),
            ("name LIKE 'Q%' AND name ILIKE 'q%'", true),
            ("name LIKE 'q%'", false),
            ("name IN ('x', 'Questions')", true),
            ("name > 'Q' AND name <= 'Questions'", true),
            ("last_updated_by != 'x'", false),
            ("last_updated_by < 'x'", false),
            ("tags.missing != 'x'", false),
            ("created_time = 5 AND last_update_time > 6", true),
        ] {
            assert_eq!(parse_dataset_filter(filter).unwrap().matches(&Dataset), passes, "{filter}");
        }
    }

    #[test]
    fn mistakes_are_told_in_mlflows_words() {
        let keys = "{'created_by', 'created_time', 'last_update_time', 'last_updated_by', 'name'}";
        for (filter, message) in [
            ("digest = 'x'", &*format!("Invalid attribute key 'digest' specified. Valid keys are: {keys}")),
            ("attribute.name = 'x'", "Invalid identifier token 'attribute' specified"),
            ("tags.a > 'x'", "Invalid comparator for tag: >"),
            ("tags.a IS NULL", "Invalid comparator for tag: IS NULL"),
            ("name NOT IN ('x')", "List values for 'name' are only supported with the IN comparator."),
            ("created_time LIKE 1", "Invalid comparator for numeric attribute: LIKE"),
            ("created_time = 1.5", "Invalid value for numeric attribute 'created_time': '1.5'"),
            ("name like 'x'", "Invalid comparator for string attribute: like"),
        ] {
            assert_eq!(parse_dataset_filter(filter).unwrap_err().message, message, "{filter}");
        }
        for (clause, message) in [
            ("tags.a", "Invalid order_by entity: tag"),
            (
                "created_by",
                "Invalid attribute key 'created_by' specified. Valid keys are: {'created_time', 'last_update_time', 'name'}",
            ),
        ] {
            assert_eq!(parse_dataset_order_by(&[clause.to_owned()]).unwrap_err().message, message, "{clause}");
        }
    }
}
