//! Filters of searches in the registry of MCP servers.

use std::borrow::Cow;
use std::cmp::Ordering;

use mlflow_api::{Error, McpVersion, Result};

use super::{McpEntity, McpFields, McpText, McpTime, text, time};
use crate::comparison::{PartNaming, comparisons};
use crate::filter::{Comparator, TextTest};
use crate::identifier::RunFieldFamily;
use crate::literals::{FilterLiteral, FilterNumber};
use crate::unchecked_comparison::{ComparedAttributes, UncheckedComparison, with_quoted_keyword};

/// The conditions of a search, all of which must be met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct McpFilter {
    predicates: Vec<McpPredicate>,
}

/// A condition on an entity. A missing value meets no condition, not even `!=`.
#[derive(Clone, Debug, PartialEq)]
enum McpPredicate {
    Text(McpText, McpTextTest),
    Time(McpTime, Comparator, FilterNumber),
    /// Compares the precedence of versions.
    Precedence(Comparator, McpVersion),
    HasEndpoints(bool),
    Tag(String, McpTextTest),
}

#[derive(Clone, Debug, PartialEq)]
enum McpTextTest {
    Test(TextTest),
    Order(Comparator, String),
}

impl McpTextTest {
    fn passes(&self, text: &str) -> bool {
        match self {
            Self::Test(wanted) => wanted.passes(text),
            Self::Order(comparator, value) => comparator.holds(text.cmp(value)),
        }
    }
}

/// Parses a filter.
pub(super) fn parse(entity: McpEntity, filter: &str) -> Result<McpFilter> {
    let filter = entity.keyword().map_or(Cow::Borrowed(filter), |keyword| with_quoted_keyword(filter, keyword));
    // MLflow parses every value before it checks the first comparator.
    let check_list = |key: &str| {
        let message = "attributes support comparison with a list of quoted string values.";
        let refused = || Error::invalid(format!("Only {} {message}", mlflow_api::python::repr_list(entity.lists())));
        entity.lists().contains(&key).then_some(()).ok_or_else(refused)
    };
    let attributes =
        ComparedAttributes { names: entity.attributes(), is_number: |key: &str| time(key).is_some(), check_list };
    let read: Vec<_> = comparisons(&filter, PartNaming::Quoted)?
        .map(|comparison| attributes.parse(&comparison?))
        .collect::<Result<_>>()?;
    let predicates = read.into_iter().map(|read| predicate(read, entity)).collect::<Result<_>>()?;
    Ok(McpFilter { predicates })
}

/// Checks a comparator, and builds the condition. Comparators are case-sensitive, so `like` is not a
/// comparator.
fn predicate(read: UncheckedComparison, entity: McpEntity) -> Result<McpPredicate> {
    let UncheckedComparison { family, key, comparator, value } = read;
    let kind = match family {
        RunFieldFamily::Attribute => "attribute",
        RunFieldFamily::Tag if entity == McpEntity::Server => "tag",
        other => return Err(Error::invalid(format!("Invalid filter type '{other}'."))),
    };
    let symbol = Comparator::parse(&comparator);
    let refused = || Error::invalid(format!("Invalid comparator '{comparator}' for {kind} '{key}'."));
    if symbol.is_none() && !["LIKE", "ILIKE", "IN", "NOT IN"].contains(&comparator.as_str()) {
        return Err(refused());
    }
    if family == RunFieldFamily::Tag {
        let test = text_test(symbol, &comparator, value, refused)?;
        return Ok(McpPredicate::Tag(key, test));
    }
    if key == "has_access_endpoints" {
        let wanted = match value {
            Some(FilterLiteral::Text(text)) if comparator == "=" => text.to_lowercase().parse().ok(),
            _ => None,
        };
        let refused = || Error::invalid("has_access_endpoints only supports '= true' or '= false'");
        return wanted.map(McpPredicate::HasEndpoints).ok_or_else(refused);
    }
    if let Some(time) = time(&key) {
        return match (symbol, value) {
            (Some(symbol), Some(FilterLiteral::Number(number))) => Ok(McpPredicate::Time(time, symbol, number)),
            _ => Err(refused()),
        };
    }
    if key == "version" {
        let Some(symbol) = symbol else {
            return Err(Error::invalid(
                "version only supports semantic comparators '=', '!=', '<', '<=', '>', and '>='",
            ));
        };
        if let (Some(FilterLiteral::Text(text)), false) =
            (&value, matches!(symbol, Comparator::Equal | Comparator::NotEqual))
        {
            return Ok(McpPredicate::Precedence(symbol, McpVersion::parse("filter_string version", text)?));
        }
    }
    let field = text(&key).ok_or_else(|| Error::internal("an attribute is neither a text nor a time"))?;
    Ok(McpPredicate::Text(field, text_test(symbol, &comparator, value, refused)?))
}

fn text_test(
    symbol: Option<Comparator>,
    comparator: &str,
    value: Option<FilterLiteral>,
    refused: impl Fn() -> Error,
) -> Result<McpTextTest> {
    match (symbol, value) {
        (Some(symbol), Some(FilterLiteral::Text(value)))
            if !matches!(symbol, Comparator::Equal | Comparator::NotEqual) =>
        {
            Ok(McpTextTest::Order(symbol, value))
        }
        // MLflow passes a list with another comparator than IN on to the database, which fails.
        (_, value) => {
            let test = value.map(|value| TextTest::new(comparator, value)).transpose()?.flatten();
            test.map(McpTextTest::Test).ok_or_else(refused)
        }
    }
}

impl McpFilter {
    /// Checks whether an entity passes the filter.
    #[must_use]
    pub fn matches(&self, entity: &impl McpFields) -> bool {
        self.predicates.iter().all(|predicate| match predicate {
            McpPredicate::Text(field, test) => entity.text(*field).is_some_and(|text| test.passes(text)),
            McpPredicate::Time(field, comparator, value) => comparator.holds(value.compare_stored(entity.time(*field))),
            McpPredicate::Precedence(comparator, version) => {
                let order = entity.version().map(|own| own.cmp_precedence(version));
                order.is_some_and(|order: Ordering| comparator.holds(order))
            }
            McpPredicate::HasEndpoints(wanted) => entity.has_endpoints() == *wanted,
            McpPredicate::Tag(key, test) => entity.tag(key).is_some_and(|value| test.passes(value)),
        })
    }

    /// Checks whether all entities pass.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.predicates.is_empty()
    }
}
