//! The right side of a comparison of traces (`SearchTraceUtils._get_value`).

use mlflow_api::{Error, Result};

use super::identifier::{Family, Identifier};
use crate::list;
use crate::print;
use crate::syntax::{Kind, Node};
use crate::value::{Literal, Number, text};

const NUMERIC_ATTRIBUTES: [&str; 6] =
    ["end_time", "end_time_ms", "execution_time", "execution_time_ms", "timestamp", "timestamp_ms"];
const LISTED_ATTRIBUTES: [&str; 5] = ["client_request_id", "name", "request_id", "run_id", "status"];
const NUMERIC_COMPARATORS: [&str; 4] = [">", ">=", "<", "<="];

/// Parses the value that an identifier is compared with. The identifier has not been resolved yet.
pub(super) fn read(identifier: &Identifier, comparator: &str, node: &Node) -> Result<Literal> {
    let Identifier { family, key } = identifier;
    if matches!(family, Family::Feedback | Family::Expectation) {
        check_of_assessment(*family, comparator, node)?;
    }
    if let Some(text) = text(node) {
        return text.map(Literal::Text);
    }
    let is_list = node.kind == Kind::Parenthesis;
    match family {
        Family::Attribute if is_list && !LISTED_ATTRIBUTES.contains(&key.as_str()) => {
            let listed = print::set(&LISTED_ATTRIBUTES);
            let message =
                format!("Only attributes in {listed} supports comparison with a list of quoted string values.");
            Err(Error::invalid(message))
        }
        Family::Tag | Family::Span | Family::Attribute if is_list => list::strings(node.text).map(Literal::List),
        Family::Attribute if node.kind.is_number() && !NUMERIC_ATTRIBUTES.contains(&key.as_str()) => {
            let numeric = print::set(&NUMERIC_ATTRIBUTES);
            Err(Error::invalid(format!("Only the '{numeric}' attributes support comparison with numeric values.")))
        }
        Family::Attribute | Family::Feedback | Family::Expectation if node.kind.is_number() => number(identifier, node),
        Family::Attribute => Err(Error::invalid(format!(
            "Expected a quoted string value or a list of quoted string values for attributes. Got value {}",
            node.text
        ))),
        _ => Err(not_quoted(*family, node)),
    }
}

/// Checks that comparators that require a number are used with a number, and others with a text
/// (`_validate_assessment_comparison_value`).
fn check_of_assessment(family: Family, comparator: &str, node: &Node) -> Result<()> {
    let wants_number = NUMERIC_COMPARATORS.contains(&comparator);
    let is_text = matches!(node.kind, Kind::SingleQuoted | Kind::Identifier);
    if wants_number && !node.kind.is_number() {
        return Err(Error::invalid(format!(
            "Expected a numeric value for {family} when using comparator '{comparator}'. Got value {}",
            node.text
        )));
    }
    if wants_number || is_text { Ok(()) } else { Err(not_quoted(family, node)) }
}

fn not_quoted(family: Family, node: &Node) -> Error {
    let written = node.text;
    Error::invalid(format!("Expected a quoted string value for {family} (e.g. 'my-value'). Got value {written}"))
}

fn number(identifier: &Identifier, node: &Node) -> Result<Literal> {
    let number = match node.kind {
        Kind::Integer => node.text.parse().ok().map(Number::Integer),
        _ => node.text.parse().ok().map(Number::Float),
    };
    // MLflow passes such a number on to the database, which fails.
    let too_large =
        || Error::invalid(format!("The value {} of {} does not fit into 64 bits.", node.text, identifier.key));
    number.map(Literal::Number).ok_or_else(too_large)
}
