//! Searches in the registry of MCP servers: the filters and the orderings of servers, versions and
//! access endpoints (`SearchMCPServerUtils`, `SearchMCPServerVersionUtils`,
//! `SearchMCPAccessEndpointUtils`).

use std::borrow::Cow;
use std::cmp::Ordering;

use mlflow_api::{Error, McpVersion, Result};

use crate::comparison::{Comparison, PartNaming, comparisons};
use crate::filter::{Comparator, TextTest};
use crate::identifier::{self, Identifier, RunFieldFamily};
use crate::literal_list;
use crate::literals::{self, FilterLiteral, FilterNumber};
use crate::order_by::{OrderTerm, SortDirection, parse_clauses};
use crate::sort_key::{SortKey, SortKeyValue};
use crate::syntax::NodeKind;

/// The kinds of entities that are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpEntity {
    /// Servers.
    Server,
    /// Versions of a server.
    Version,
    /// Access endpoints.
    Endpoint,
}

/// A text field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpText {
    /// The name of the server.
    Name,
    /// The name that user interfaces display.
    DisplayName,
    /// The status of a version. A server has the status of its latest version, and an endpoint that
    /// of the version that it gives access to.
    Status,
    /// The version, as written.
    Version,
    /// The transport of an endpoint.
    TransportType,
    /// The id of an endpoint.
    Id,
}

/// A time, in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpTime {
    /// When the entity was created.
    Created,
    /// When the entity was last changed.
    Updated,
}

/// The fields of an entity that filters and orderings use.
pub trait McpFields {
    /// Returns a text field.
    fn text(&self, field: McpText) -> Option<&str>;
    /// Returns a time, in ms.
    fn time(&self, field: McpTime) -> i64;
    /// Returns the version number. Only versions of servers have one.
    fn version(&self) -> Option<&McpVersion> {
        None
    }
    /// Checks whether a server has access endpoints.
    fn has_endpoints(&self) -> bool {
        false
    }
    /// Returns the value of a server's tag.
    fn tag(&self, _key: &str) -> Option<&str> {
        None
    }
}

impl McpEntity {
    const fn attributes(self) -> &'static [&'static str] {
        match self {
            Self::Server => {
                &["name", "display_name", "status", "has_access_endpoints", "created_at", "last_updated_at"]
            }
            Self::Version => &["name", "version", "status", "created_at", "last_updated_at"],
            Self::Endpoint => &["status", "server_name", "transport_type", "created_at", "last_updated_at"],
        }
    }

    /// Returns the attributes that can be compared with lists.
    const fn lists(self) -> &'static [&'static str] {
        match self {
            Self::Server => &["name", "status"],
            Self::Version => &["status"],
            Self::Endpoint => &["server_name"],
        }
    }

    /// Returns the fields that entities can be sorted by, in alphabetical order.
    const fn order_keys(self) -> &'static [&'static str] {
        match self {
            Self::Server => &["created_at", "last_updated_at", "name"],
            Self::Version => &["created_at", "last_updated_at", "version"],
            Self::Endpoint => &["created_at", "id", "last_updated_at", "server_name"],
        }
    }

    /// Returns the attribute of this kind of entity that `sqlparse` mistakes for a keyword.
    const fn keyword(self) -> Option<&'static str> {
        match self {
            Self::Server => None,
            Self::Version => Some("version"),
            Self::Endpoint => Some("server_name"),
        }
    }
}

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

/// A total order of entities. It is total because the last term has a different value for each
/// entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpOrder {
    terms: Vec<OrderTerm<McpSortBy>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum McpSortBy {
    Text(McpText),
    Time(McpTime),
    Precedence,
}

/// Parses the filter and the ordering of a search. If there are several mistakes, returns the error
/// that MLflow would report.
pub fn parse_mcp_search(entity: McpEntity, filter: &str, order_by: &[String]) -> Result<(McpFilter, McpOrder)> {
    let filter = entity.keyword().map_or(Cow::Borrowed(filter), |keyword| with_quoted_keyword(filter, keyword));
    // MLflow parses every value before it checks the first comparator.
    let read: Vec<_> = comparisons(&filter, PartNaming::Quoted)?
        .map(|comparison| ParsedComparison::new(&comparison?, entity))
        .collect::<Result<_>>()?;
    let predicates = read.into_iter().map(|read| predicate(read, entity)).collect::<Result<_>>()?;
    Ok((McpFilter { predicates }, parse_order(entity, order_by)?))
}

/// Quotes an attribute that `sqlparse` takes for a keyword. Texts between quotes stay as they are.
pub(crate) fn with_quoted_keyword<'a>(filter: &'a str, keyword: &str) -> Cow<'a, str> {
    if !filter.contains(keyword) {
        return Cow::Borrowed(filter);
    }
    let (mut written, mut rest, mut quote, mut before) = (String::new(), filter, None, ' ');
    while let Some(character) = rest.chars().next() {
        let is_word = |character: char| character.is_alphanumeric() || "_.".contains(character);
        let after = rest.strip_prefix(keyword).filter(|after| !after.starts_with(is_word));
        if let Some(after) = after.filter(|_| quote.is_none() && !is_word(before)) {
            written.extend(["`", keyword, "`"]);
            (rest, before) = (after, '`');
            continue;
        }
        match quote {
            None if "'\"`".contains(character) => quote = Some(character),
            Some(open) if open == character => quote = None,
            _ => {}
        }
        written.push(character);
        before = character;
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
    }
    Cow::Owned(written)
}

struct ParsedComparison {
    family: RunFieldFamily,
    key: String,
    comparator: String,
    value: Option<FilterLiteral>,
}

impl ParsedComparison {
    fn new(comparison: &Comparison<'_>, entity: McpEntity) -> Result<Self> {
        let Identifier { family, key } = identifier::of_run(comparison.left, entity.attributes())?;
        let value = match (&comparison.right, family) {
            (None, RunFieldFamily::Tag | RunFieldFamily::Param) => None,
            (None, _) => {
                return Err(Error::invalid(format!(
                    "IS NULL / IS NOT NULL is only supported for tags and params, not for '{family}' '{key}'"
                )));
            }
            (Some(right), RunFieldFamily::Metric) => {
                literals::metric(right)?;
                None
            }
            (Some(right), RunFieldFamily::Tag | RunFieldFamily::Param) => {
                Some(FilterLiteral::Text(literals::keyed_text(family, right)?))
            }
            (Some(right), RunFieldFamily::Dataset) => Some(literals::dataset(right)?),
            (Some(right), RunFieldFamily::Attribute) if time(key).is_some() => {
                Some(FilterLiteral::Number(literals::attribute_number(key, right)?))
            }
            (Some(right), RunFieldFamily::Attribute) => Some(match literals::text(right) {
                Some(text) => FilterLiteral::Text(text?),
                None if right.kind != NodeKind::Parenthesis => {
                    return Err(Error::invalid(format!(
                        "Expected a quoted string value for attributes. Got value {}",
                        right.text
                    )));
                }
                None if !entity.lists().contains(&key) => {
                    return Err(Error::invalid(format!(
                        "Only {} attributes support comparison with a list of quoted string values.",
                        mlflow_api::python::repr_list(entity.lists())
                    )));
                }
                None => FilterLiteral::List(literal_list::strings(right.text)?),
            }),
        };
        Ok(Self { family, key: key.to_owned(), comparator: comparison.comparator.to_owned(), value })
    }
}

fn time(key: &str) -> Option<McpTime> {
    match key {
        "created_at" => Some(McpTime::Created),
        "last_updated_at" => Some(McpTime::Updated),
        _ => None,
    }
}

fn text(key: &str) -> Option<McpText> {
    match key {
        "name" | "server_name" => Some(McpText::Name),
        "display_name" => Some(McpText::DisplayName),
        "status" => Some(McpText::Status),
        "version" => Some(McpText::Version),
        "transport_type" => Some(McpText::TransportType),
        "id" => Some(McpText::Id),
        _ => None,
    }
}

/// Checks a comparator, and builds the condition. Comparators are case-sensitive, so `like` is not a
/// comparator.
fn predicate(read: ParsedComparison, entity: McpEntity) -> Result<McpPredicate> {
    let ParsedComparison { family, key, comparator, value } = read;
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

/// Parses an ordering (`_parse_search_mcp_servers_order_by` and its siblings).
fn parse_order(entity: McpEntity, clauses: &[String]) -> Result<McpOrder> {
    let mut terms: Vec<OrderTerm<McpSortBy>> = Vec::new();
    let mut observed = Vec::new();
    for clause in parse_clauses(clauses)? {
        let (written, direction) = clause?;
        let key = entity.order_keys().iter().copied().find(|known| *known == written).ok_or_else(|| {
            let valid = mlflow_api::python::repr_list(entity.order_keys());
            Error::invalid(format!("Invalid order_by key '{written}'. Valid keys: {valid}"))
        })?;
        if observed.contains(&key) {
            return Err(Error::invalid(format!("Duplicate order_by field: '{key}'")));
        }
        observed.push(key);
        let by = match (time(key), text(key)) {
            (Some(time), _) => McpSortBy::Time(time),
            (None, Some(McpText::Version)) => McpSortBy::Precedence,
            (None, Some(text)) => McpSortBy::Text(text),
            (None, None) => continue,
        };
        terms.push(OrderTerm { by, direction });
    }
    let ascending = |by| OrderTerm { by, direction: SortDirection::Ascending };
    match entity {
        McpEntity::Server if observed.contains(&"name") => {}
        McpEntity::Server => terms.push(ascending(McpSortBy::Text(McpText::Name))),
        McpEntity::Version => {
            if !observed.contains(&"created_at") {
                terms.push(ascending(McpSortBy::Time(McpTime::Created)));
            }
            terms.push(ascending(McpSortBy::Text(McpText::Version)));
        }
        McpEntity::Endpoint if observed.contains(&"id") => {}
        McpEntity::Endpoint => terms.push(ascending(McpSortBy::Text(McpText::Id))),
    }
    Ok(McpOrder { terms })
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

impl McpOrder {
    /// Returns the sort key of an entity. Sorting entities by these keys results in this order.
    #[must_use]
    pub fn key(&self, entity: &impl McpFields) -> SortKey {
        SortKey::of(self.terms.iter().map(|term| {
            let value = match term.by {
                McpSortBy::Text(field) => SortKeyValue::text(entity.text(field)),
                McpSortBy::Time(field) => SortKeyValue::Integer(entity.time(field)),
                McpSortBy::Precedence => {
                    let key = entity.version().map(McpVersion::precedence_key);
                    SortKeyValue::text(key.as_deref())
                }
            };
            (term.direction, value)
        }))
    }

    /// Checks whether servers are sorted by name alone, in ascending order, which is the order of
    /// their rows.
    #[must_use]
    pub fn is_by_name(&self) -> bool {
        let by_name = OrderTerm { by: McpSortBy::Text(McpText::Name), direction: SortDirection::Ascending };
        self.terms.first() == Some(&by_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Version(McpVersion, i64);

    impl McpFields for Version {
        fn text(&self, field: McpText) -> Option<&str> {
            match field {
                McpText::Name => Some("com.example/a1"),
                McpText::Status => Some("active"),
                McpText::Version => Some(self.0.as_str()),
                _ => None,
            }
        }

        fn time(&self, _: McpTime) -> i64 {
            self.1
        }

        fn version(&self) -> Option<&McpVersion> {
            Some(&self.0)
        }

        fn has_endpoints(&self) -> bool {
            true
        }

        fn tag(&self, key: &str) -> Option<&str> {
            (key == "team").then_some("search")
        }
    }

    fn version(text: &str) -> Version {
        Version(McpVersion::of(text).unwrap(), 5)
    }

    fn message(entity: McpEntity, filter: &str, order_by: &[&str]) -> String {
        let order_by: Vec<_> = order_by.iter().map(|&clause| clause.to_owned()).collect();
        parse_mcp_search(entity, filter, &order_by).unwrap_err().message
    }

    #[test]
    fn conditions_are_all_to_be_met() {
        for (entity, filter, expected) in [
            (McpEntity::Server, "", true),
            (McpEntity::Server, "name > 'com' AND status != 'x'", true),
            (McpEntity::Server, "display_name != 'x'", false),
            (McpEntity::Server, "tags.team = 'search' AND tag.team LIKE 's%'", true),
            (McpEntity::Server, "tags.other != 'x'", false),
            (McpEntity::Server, "has_access_endpoints = 'TRUE'", true),
            (McpEntity::Server, "created_at >= 5 AND last_updated_at < 5.5", true),
            (McpEntity::Version, "version > '1.0.0-rc.1' AND version <= '1.0.0+other'", true),
            (McpEntity::Version, "version = '1.0.0+other'", false),
            (McpEntity::Version, "`version` != '1.0.0-version'", true),
            (McpEntity::Version, "status IN ('active', 'draft')", true),
            (McpEntity::Endpoint, "server_name = 'com.example/a1' AND status = 'active'", true),
        ] {
            let (filter_of, _) = parse_mcp_search(entity, filter, &[]).unwrap();
            assert_eq!(filter_of.matches(&version("1.0.0")), expected, "{filter}");
        }
    }

    #[test]
    fn mistakes_are_named_as_in_mlflow() {
        for (entity, filter, expected) in [
            (McpEntity::Server, "name like 'a'", "Invalid comparator 'like' for attribute 'name'."),
            (McpEntity::Server, "metrics.a > 1", "Invalid filter type 'metric'."),
            (McpEntity::Server, "tags.a IS NULL", "Invalid comparator 'IS NULL' for tag 'a'."),
            (
                McpEntity::Server,
                "name IS NULL",
                "IS NULL / IS NOT NULL is only supported for tags and params, not for 'attribute' 'name'",
            ),
            (
                McpEntity::Server,
                "display_name IN ('a')",
                "Only ['name', 'status'] attributes support comparison with a list of quoted string values.",
            ),
            (
                McpEntity::Server,
                "created_at > 'x'",
                "Expected numeric value type for numeric attribute: created_at. Found 'x'",
            ),
            (McpEntity::Server, "OR name = 'a'", "Invalid clause(s) in filter string: 'OR'"),
            (
                McpEntity::Server,
                "has_access_endpoints = 'yes'",
                "has_access_endpoints only supports '= true' or '= false'",
            ),
            (
                McpEntity::Version,
                "version LIKE '1'",
                "version only supports semantic comparators '=', '!=', '<', '<=', '>', and '>='",
            ),
            (McpEntity::Version, "version > 'x'", "Invalid semantic version for filter_string version: 'x'"),
            (McpEntity::Version, "tags.a='b'", "Invalid filter type 'tag'."),
            (McpEntity::Version, "VERSION = '1.0.0'", "Invalid clause(s) in filter string: 'VERSION', '=', ''1.0.0''"),
        ] {
            assert_eq!(message(entity, filter, &[]), expected, "{filter}");
        }
        for (entity, order, expected) in [
            (McpEntity::Server, &["name", "name DESC"][..], "Duplicate order_by field: 'name'"),
            (McpEntity::Version, &["version"], "Invalid order_by clause 'version'. Could not be parsed."),
            // MLflow only removes the quotes if a direction follows.
            (
                McpEntity::Version,
                &["`version`"],
                "Invalid order_by key '`version`'. Valid keys: ['created_at', 'last_updated_at', 'version']",
            ),
            (
                McpEntity::Version,
                &["name"],
                "Invalid order_by key 'name'. Valid keys: ['created_at', 'last_updated_at', 'version']",
            ),
        ] {
            assert_eq!(message(entity, "", order), expected);
        }
    }

    #[test]
    fn versions_sort_by_precedence_if_that_is_requested() {
        let sorted = |clauses: &[&str]| {
            let clauses: Vec<_> = clauses.iter().map(|&clause| clause.to_owned()).collect();
            let (_, order) = parse_mcp_search(McpEntity::Version, "", &clauses).unwrap();
            let mut versions = ["10.0.0", "2.0.0", "2.0.0-rc.10", "2.0.0-rc.9"].map(version);
            versions.sort_by_cached_key(|version| order.key(version));
            versions.map(|version| version.0.to_string())
        };
        assert_eq!(sorted(&["`version` DESC"]), ["10.0.0", "2.0.0", "2.0.0-rc.10", "2.0.0-rc.9"]);
        assert_eq!(sorted(&[]), ["10.0.0", "2.0.0", "2.0.0-rc.10", "2.0.0-rc.9"]);
        assert_eq!(sorted(&["`version` asc"]), ["2.0.0-rc.9", "2.0.0-rc.10", "2.0.0", "10.0.0"]);
    }
}
