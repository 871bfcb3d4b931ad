//! The right side of a comparison of traces (`SearchTraceUtils._get_value`).

use mlflow_api::{Error, Result};

use super::identifier::{TraceFieldFamily, TraceIdentifier};
use crate::literal_list;
use crate::literals::{FilterLiteral, FilterNumber, text};
use crate::python_repr;
use crate::syntax::{NodeKind, SyntaxNode};

const NUMERIC_ATTRIBUTES: [&str; 6] =
    ["end_time", "end_time_ms", "execution_time", "execution_time_ms", "timestamp", "timestamp_ms"];
const LISTED_ATTRIBUTES: [&str; 5] = ["client_request_id", "name", "request_id", "run_id", "status"];
const NUMERIC_COMPARATORS: [&str; 4] = [">", ">=", "<", "<="];

/// Parses the value that an identifier is compared with. The identifier has not been resolved yet.
pub(super) fn read(identifier: &TraceIdentifier, comparator: &str, node: &SyntaxNode) -> Result<FilterLiteral> {
    let TraceIdentifier { family, key } = identifier;
    if matches!(family, TraceFieldFamily::Feedback | TraceFieldFamily::Expectation) {
        check_of_assessment(*family, comparator, node)?;
    }
    if let Some(text) = text(node) {
        return text.map(FilterLiteral::Text);
    }
    let is_list = node.kind == NodeKind::Parenthesis;
    match family {
        TraceFieldFamily::Attribute if is_list && !LISTED_ATTRIBUTES.contains(&key.as_str()) => {
            let listed = python_repr::set(&LISTED_ATTRIBUTES);
            let message =
                format!("Only attributes in {listed} supports comparison with a list of quoted string values.");
            Err(Error::invalid(message))
        }
        TraceFieldFamily::Tag | TraceFieldFamily::Span | TraceFieldFamily::Attribute if is_list => {
            literal_list::strings(node.text).map(FilterLiteral::List)
        }
        TraceFieldFamily::Attribute if node.kind.is_number() && !NUMERIC_ATTRIBUTES.contains(&key.as_str()) => {
            let numeric = python_repr::set(&NUMERIC_ATTRIBUTES);
            Err(Error::invalid(format!("Only the '{numeric}' attributes support comparison with numeric values.")))
        }
        TraceFieldFamily::Attribute | TraceFieldFamily::Feedback | TraceFieldFamily::Expectation
            if node.kind.is_number() =>
        {
            number(identifier, node)
        }
        TraceFieldFamily::Attribute => Err(Error::invalid(format!(
            "Expected a quoted string value or a list of quoted string values for attributes. Got value {}",
            node.text
        ))),
        _ => Err(not_quoted(*family, node)),
    }
}

/// Checks that comparators that require a number are used with a number, and others with a text
/// (`_validate_assessment_comparison_value`).
fn check_of_assessment(family: TraceFieldFamily, comparator: &str, node: &SyntaxNode) -> Result<()> {
    let wants_number = NUMERIC_COMPARATORS.contains(&comparator);
    let is_text = matches!(node.kind, NodeKind::SingleQuoted | NodeKind::Identifier);
    if wants_number && !node.kind.is_number() {
        return Err(Error::invalid(format!(
            "Expected a numeric value for {family} when using comparator '{comparator}'. Got value {}",
            node.text
        )));
    }
    if wants_number || is_text { Ok(()) } else { Err(not_quoted(family, node)) }
}

fn not_quoted(family: TraceFieldFamily, node: &SyntaxNode) -> Error {
    let written = node.text;
    Error::invalid(format!("Expected a quoted string value for {family} (e.g. 'my-value'). Got value {written}"))
}

fn number(identifier: &TraceIdentifier, node: &SyntaxNode) -> Result<FilterLiteral> {
    let number = match node.kind {
        NodeKind::Integer => node.text.parse().ok().map(FilterNumber::Integer),
        _ => node.text.parse().ok().map(FilterNumber::Float),
    };
    // MLflow passes a number that is too large on to the database, which fails.
    let too_large =
        || Error::invalid(format!("The value {} of {} does not fit into 64 bits.", node.text, identifier.key));
    number.map(FilterLiteral::Number).ok_or_else(too_large)
}
