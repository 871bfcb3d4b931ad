//! Searches in the registry of skills: the filters and the orderings of skills and versions
//! (`SearchSkillUtils`, `SearchSkillVersionUtils`).

use mlflow_api::python::{repr, repr_list};
use mlflow_api::{Error, Result};

use crate::comparison::{PartNaming, comparisons};
use crate::filter::{Comparator, TextTest};
use crate::identifier::{self, RunFieldFamily};
use crate::literals::{FilterLiteral, FilterNumber};
use crate::order_by::{OrderTerm, SortDirection, parse_clauses};
use crate::sort_key::{SortKey, SortKeyValue};
use crate::unchecked_comparison::{ComparedAttributes, UncheckedComparison, with_quoted_keyword};

/// Names of fields that are keywords for `sqlparse`, the parser that MLflow uses. They are quoted
/// before a filter or an ordering is parsed.
const KEYWORDS: [&str; 2] = ["organization", "version"];
const NUMBER_COMPARATORS: [&str; 6] = ["!=", "<", "<=", "=", ">", ">="];
const TEXT_COMPARATORS: [&str; 6] = ["!=", "=", "ILIKE", "IN", "LIKE", "NOT IN"];
const TAG_COMPARATORS: [&str; 4] = ["!=", "=", "ILIKE", "LIKE"];

/// The kinds of entities that are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkillEntity {
    /// Skills.
    Skill,
    /// Versions of a skill.
    Version,
}

/// A text field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkillText {
    /// The name of a skill.
    Name,
    /// The organization, which may be empty.
    Organization,
    /// The description of a skill.
    Description,
    /// The name and the description of a skill.
    SearchText,
    /// The status of a version. For a skill, that of its latest version.
    Status,
    /// The type of a version's source. For a skill, that of its latest version.
    SourceType,
    /// The digest of a version's content.
    Digest,
}

/// A number field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkillNumber {
    /// When the entity was created, in ms.
    Created,
    /// When the entity was last changed, in ms.
    Updated,
    /// The number of a version.
    Version,
}

/// The fields of an entity that filters and orderings use.
pub trait SkillFields {
    /// Returns a text field.
    fn text(&self, field: SkillText) -> Option<String>;
    /// Returns a number.
    fn number(&self, field: SkillNumber) -> i64;
    /// Returns the value of a tag.
    fn tag(&self, key: &str) -> Option<&str>;
    /// Returns a text that is unique among the entities of a search. Its byte order is the default
    /// order of the search.
    fn identity(&self) -> String;
}

impl SkillEntity {
    /// Returns the names of all fields, in alphabetical order, as error messages list them.
    const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Skill => &[
                "created_at",
                "description",
                "last_updated_at",
                "name",
                "organization",
                "search_text",
                "source_type",
                "status",
            ],
            Self::Version => {
                &["created_at", "digest", "last_updated_at", "organization", "source_type", "status", "version"]
            }
        }
    }
}

/// The conditions of a search, all of which must be met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SkillFilter {
    predicates: Vec<SkillPredicate>,
}

/// A condition. An entity without the value never meets it, not even with `!=`.
#[derive(Clone, Debug, PartialEq)]
enum SkillPredicate {
    Text(SkillText, TextTest),
    Number(SkillNumber, Comparator, FilterNumber),
    Tag(String, TextTest),
}

/// A total order, because its last term is the identity, which is unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillOrder {
    terms: Vec<OrderTerm<SkillSortBy>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SkillSortBy {
    Text(SkillText),
    Number(SkillNumber),
    Identity,
}

/// Parses the filter and the ordering of a search. If there are several mistakes, returns the error
/// that MLflow would report.
pub fn parse_skill_search(entity: SkillEntity, filter: &str, order_by: &[String]) -> Result<(SkillFilter, SkillOrder)> {
    let filter = with_quoted_keywords(filter);
    // MLflow parses every value before it checks the first comparator.
    let check_list = |key: &str| match key {
        "status" => Ok(()),
        _ => Err(Error::invalid(format!("Only 'status' supports IN and NOT IN comparisons, got '{key}'."))),
    };
    let attributes =
        ComparedAttributes { names: entity.fields(), is_number: |key: &str| number(key).is_some(), check_list };
    let read: Vec<_> = comparisons(&filter, PartNaming::Quoted)?
        .map(|comparison| attributes.parse(&comparison?))
        .collect::<Result<_>>()?;
    let predicates = read.into_iter().map(predicate).collect::<Result<_>>()?;
    Ok((SkillFilter { predicates }, parse_order(entity, order_by)?))
}

fn with_quoted_keywords(text: &str) -> String {
    KEYWORDS.iter().fold(text.to_owned(), |text, keyword| with_quoted_keyword(&text, keyword).into_owned())
}

fn number(key: &str) -> Option<SkillNumber> {
    match key {
        "created_at" => Some(SkillNumber::Created),
        "last_updated_at" => Some(SkillNumber::Updated),
        "version" => Some(SkillNumber::Version),
        _ => None,
    }
}

fn text(key: &str) -> Option<SkillText> {
    match key {
        "name" => Some(SkillText::Name),
        "organization" => Some(SkillText::Organization),
        "description" => Some(SkillText::Description),
        "search_text" => Some(SkillText::SearchText),
        "status" => Some(SkillText::Status),
        "source_type" => Some(SkillText::SourceType),
        "digest" => Some(SkillText::Digest),
        _ => None,
    }
}

/// Checks a comparator and its value, and builds the condition (`_validate_registry_comparison`).
fn predicate(read: UncheckedComparison) -> Result<SkillPredicate> {
    let UncheckedComparison { family, key, comparator, value } = read;
    let number = number(&key);
    let (kind, allowed): (_, &[&str]) = match family {
        RunFieldFamily::Attribute if number.is_some() => ("attribute", &NUMBER_COMPARATORS),
        RunFieldFamily::Attribute => ("attribute", &TEXT_COMPARATORS),
        RunFieldFamily::Tag => ("tag", &TAG_COMPARATORS),
        other => {
            return Err(Error::invalid(format!(
                "Invalid filter type '{other}' for '{key}'. Only attributes and tags.<key> are supported."
            )));
        }
    };
    let upper = comparator.to_uppercase();
    if !allowed.contains(&upper.as_str()) {
        return Err(Error::invalid(format!(
            "Invalid comparator '{comparator}' for {kind} '{key}'. Supported comparators: {}",
            repr_list(allowed)
        )));
    }
    let refused = |expected: &str, value: &str| {
        Error::invalid(format!("Comparator '{upper}' for {kind} '{key}' requires {expected}, got {value}."))
    };
    let takes_list = matches!(upper.as_str(), "IN" | "NOT IN");
    match &value {
        Some(FilterLiteral::List(texts)) if !takes_list => {
            let texts: Vec<_> = texts.iter().map(|text| repr(text)).collect();
            let comma = if texts.len() == 1 { "," } else { "" };
            return Err(refused("a single value", &format!("({}{comma})", texts.join(", "))));
        }
        Some(FilterLiteral::Text(text)) if takes_list => {
            return Err(refused("a parenthesized list of values", &repr(text)));
        }
        _ => {}
    }
    let unsupported = || Error::invalid(format!("Invalid comparator '{upper}' for {kind} '{key}'."));
    if let (RunFieldFamily::Attribute, Some(field)) = (family, number) {
        return match (Comparator::parse(&upper), value) {
            (Some(comparator), Some(FilterLiteral::Number(number))) => {
                Ok(SkillPredicate::Number(field, comparator, number))
            }
            _ => Err(unsupported()),
        };
    }
    let test = value.map(|value| TextTest::new(&upper, value)).transpose()?.flatten().ok_or_else(unsupported)?;
    if family == RunFieldFamily::Tag {
        return Ok(SkillPredicate::Tag(key, test));
    }
    let field = text(&key).ok_or_else(|| Error::internal("an attribute is neither a text nor a number"))?;
    Ok(SkillPredicate::Text(field, test))
}

/// Parses an ordering (`parse_skill_registry_order_by`).
fn parse_order(entity: SkillEntity, clauses: &[String]) -> Result<SkillOrder> {
    let mut terms: Vec<OrderTerm<SkillSortBy>> = Vec::new();
    let mut observed = Vec::new();
    let quoted: Vec<_> = clauses.iter().map(|clause| with_quoted_keywords(clause)).collect();
    for clause in parse_clauses(&quoted)? {
        let (written, direction) = clause?;
        let written = identifier::unquoted_key(written.trim());
        let key = entity.fields().iter().copied().find(|known| *known == written).ok_or_else(|| {
            Error::invalid(format!("Invalid order_by key '{written}'. Valid keys: {}", repr_list(entity.fields())))
        })?;
        if observed.contains(&key) {
            return Err(Error::invalid(format!("Duplicate order_by field: '{key}'")));
        }
        observed.push(key);
        let by = number(key).map(SkillSortBy::Number).or_else(|| text(key).map(SkillSortBy::Text));
        terms.extend(by.map(|by| OrderTerm { by, direction }));
    }
    terms.push(OrderTerm { by: SkillSortBy::Identity, direction: SortDirection::Ascending });
    Ok(SkillOrder { terms })
}

impl SkillFilter {
    /// Checks whether an entity passes the filter.
    #[must_use]
    pub fn matches(&self, entity: &impl SkillFields) -> bool {
        self.predicates.iter().all(|predicate| match predicate {
            SkillPredicate::Text(field, test) => entity.text(*field).is_some_and(|text| test.passes(&text)),
            SkillPredicate::Number(field, comparator, value) => {
                comparator.holds(value.compare_stored(entity.number(*field)))
            }
            SkillPredicate::Tag(key, test) => entity.tag(key).is_some_and(|value| test.passes(value)),
        })
    }

    /// Checks whether the filter has no conditions, so that every entity passes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.predicates.is_empty()
    }
}

impl SkillOrder {
    /// Returns the sort key of an entity. Sorting entities by these keys results in this order. A
    /// missing text is smaller than all others.
    #[must_use]
    pub fn key(&self, entity: &impl SkillFields) -> SortKey {
        SortKey::of(self.terms.iter().flat_map(|OrderTerm { by, direction }| {
            let values = match by {
                SkillSortBy::Number(field) => vec![SortKeyValue::Integer(entity.number(*field))],
                SkillSortBy::Identity => vec![SortKeyValue::text(Some(&entity.identity()))],
                SkillSortBy::Text(field) => {
                    let text = entity.text(*field);
                    let is_present = SortKeyValue::Integer(text.is_some().into());
                    vec![is_present, SortKeyValue::text(Some(&text.unwrap_or_default()))]
                }
            };
            values.into_iter().map(|value| (*direction, value))
        }))
    }

    /// Checks whether this is the default order, in which the rows are stored.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.terms.len() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Version(i64);

    impl SkillFields for Version {
        fn text(&self, field: SkillText) -> Option<String> {
            match field {
                SkillText::Status => Some("active".to_owned()),
                SkillText::Organization => Some("acme".to_owned()),
                SkillText::Name => Some("review".to_owned()),
                _ => None,
            }
        }

        fn number(&self, _: SkillNumber) -> i64 {
            self.0
        }

        fn tag(&self, key: &str) -> Option<&str> {
            (key == "team").then_some("search")
        }

        fn identity(&self) -> String {
            format!("{:010}", self.0)
        }
    }

    #[test]
    fn conditions_are_all_to_be_met() {
        for (entity, filter, expected) in [
            (SkillEntity::Skill, "", true),
            (SkillEntity::Skill, "organization = 'acme' AND name like 'rev%'", true),
            (SkillEntity::Skill, "description != 'x'", false),
            (SkillEntity::Skill, "tags.team ILIKE 'S%' AND status IN ('active')", true),
            (SkillEntity::Version, "version >= 5 AND version < 6", true),
            (SkillEntity::Version, "`version` = 4", false),
        ] {
            let (filter_of, _) = parse_skill_search(entity, filter, &[]).unwrap();
            assert_eq!(filter_of.matches(&Version(5)), expected, "{filter}");
        }
    }

    #[test]
    fn mistakes_are_named_as_in_mlflow() {
        let message = |entity, filter: &str, order: &[&str]| {
            let order: Vec<_> = order.iter().map(|&clause| clause.to_owned()).collect();
            parse_skill_search(entity, filter, &order).unwrap_err().message
        };
        for (filter, expected) in [
            (
                "name > 'a'",
                "Invalid comparator '>' for attribute 'name'. Supported comparators: ['!=', '=', 'ILIKE', 'IN', 'LIKE', 'NOT IN']",
            ),
            (
                "tags.a IS NULL",
                "Invalid comparator 'IS NULL' for tag 'a'. Supported comparators: ['!=', '=', 'ILIKE', 'LIKE']",
            ),
            ("name IN ('a')", "Only 'status' supports IN and NOT IN comparisons, got 'name'."),
            ("status = ('a')", "Comparator '=' for attribute 'status' requires a single value, got ('a',)."),
            ("status IN 'a'", "Invalid clause(s) in filter string: 'status', 'IN', ''a''"),
        ] {
            assert_eq!(message(SkillEntity::Skill, filter, &[]), expected, "{filter}");
        }
        assert_eq!(
            message(SkillEntity::Version, "", &["version", "version DESC"]),
            "Duplicate order_by field: 'version'"
        );
        assert!(
            message(SkillEntity::Skill, "", &["version"])
                .starts_with("Invalid order_by key 'version'. Valid keys: ['created_at'")
        );
    }
}
