//! The comparisons of a filter. This is the outermost level of MLflow's parser, which is shared by
//! all kinds of entities.

use std::collections::VecDeque;

use mlflow_api::python::repr;
use mlflow_api::{Error, Result};

use crate::bounds;
use crate::filter::Comparator;
use crate::print::join;
use crate::syntax::{self, Kind, Node};

/// A comparison: a left side, a comparator, and a value.
pub(crate) struct Comparison<'a> {
    /// The identifier, as written.
    pub(crate) left: &'a str,
    /// The comparator as written, except that `NOT IN`, `IS NULL` and `IS NOT NULL` are normalized.
    pub(crate) comparator: &'a str,
    /// The value. `None` for `IS NULL` and `IS NOT NULL`.
    pub(crate) right: Option<Node<'a>>,
}

/// The format in which a message lists the parts of a filter that are not comparisons. MLflow
/// quotes them for runs, but not for experiments.
#[derive(Clone, Copy)]
pub(crate) enum Naming {
    Quoted,
    Bare,
}

/// Splits a filter into comparisons (`SearchUtils.parse_search_filter` and `_process_statement`).
/// Each comparison is only checked when the iterator reaches it, so the first mistake in the text
/// is reported.
pub(crate) fn comparisons(filter: &str, naming: Naming) -> Result<impl Iterator<Item = Result<Comparison<'_>>>> {
    among(filter, naming, Left::Identifier)
}

/// Splits a filter of traces into comparisons. A left side may also be `timestamp`, which is the
/// name of a type in SQL.
pub(crate) fn trace_comparisons(filter: &str) -> Result<impl Iterator<Item = Result<Comparison<'_>>>> {
    among(filter, Naming::Quoted, Left::IdentifierOrTimestamp)
}

/// Splits a filter that may contain only one comparison. Neither AND nor comparisons that are
/// spelled with keywords, such as IN, are supported.
pub(crate) fn single_comparisons(filter: &str) -> Result<impl Iterator<Item = Result<Comparison<'_>>>> {
    bounds::filter(filter)?;
    let solid = only_statement(filter)?.into_iter().filter(|node| !node.is_blank());
    let mut clauses = Vec::new();
    let mut others = Vec::new();
    for piece in solid.map(whole) {
        match piece {
            Piece::Clause { members, .. } => clauses.push(members),
            Piece::Other(node) => others.push(node.text.to_owned()),
        }
    }
    if others.is_empty() {
        return Ok(clauses.into_iter().map(checked));
    }
    Err(Error::invalid(format!("Invalid clause(s) in filter string: {}", join(others))))
}

fn among(filter: &str, naming: Naming, left: Left) -> Result<impl Iterator<Item = Result<Comparison<'_>>>> {
    bounds::filter(filter)?;
    let mut clauses = Vec::new();
    let mut others = Vec::new();
    for piece in pieces(only_statement(filter)?, left) {
        match piece {
            Piece::Clause { members, .. } => clauses.push(members),
            // MLflow does not check the positions of the ANDs.
            Piece::Other(node) if node.is_keyword("AND") => {}
            Piece::Other(node) => others.push(node.text),
        }
    }
    if !others.is_empty() {
        let named = others.into_iter().map(|text| match naming {
            Naming::Quoted => format!("'{text}'"),
            Naming::Bare => text.to_owned(),
        });
        return Err(Error::invalid(format!("Invalid clause(s) in filter string: {}", join(named))));
    }
    bounds::comparisons(clauses.len())?;
    Ok(clauses.into_iter().map(checked))
}

/// Returns the grouped tokens of a filter, which must be empty or a single statement.
fn only_statement(filter: &str) -> Result<Vec<Node<'_>>> {
    if filter.is_empty() {
        return Ok(Vec::new());
    }
    let Some(mut statements) = syntax::statements(filter) else {
        return Err(Error::invalid(format!("Error on parsing filter '{filter}'")));
    };
    if statements.len() > 1 {
        return Err(Error::invalid(format!(
            "Search filter contained multiple expression {}. Provide AND-ed expression list.",
            repr(filter)
        )));
    }
    statements.pop().ok_or_else(|| Error::invalid(format!("Invalid filter '{filter}'. Could not be parsed.")))
}

/// A part of a statement.
pub(crate) enum Piece<'a> {
    /// A comparison.
    Clause {
        /// The members, without white space.
        members: Vec<Node<'a>>,
        /// The text as written. `None` for comparisons that are spelled with keywords.
        text: Option<&'a str>,
    },
    Other(Node<'a>),
}

/// The left sides that comparisons of several tokens may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Identifier,
    IdentifierOrTimestamp,
}

/// Finds the comparisons that are spelled with keywords: IN, NOT IN, IS NULL and IS NOT NULL.
pub(crate) fn join_keywords(nodes: Vec<Node<'_>>) -> Vec<Piece<'_>> {
    pieces(nodes, Left::Identifier)
}

/// Finds the comparisons that `sqlparse` does not recognize (`_join_in_comparison_tokens`). Nodes
/// that were part of a failed match are not examined again.
fn pieces(nodes: Vec<Node<'_>>, left: Left) -> Vec<Piece<'_>> {
    let mut rest: VecDeque<_> = nodes.into_iter().filter(|node| !node.is_blank()).collect();
    let mut joined = Vec::new();
    while rest.len() >= 3 {
        if left == Left::IdentifierOrTimestamp && is_timestamp(&rest[0]) {
            let taken: Vec<_> = rest.drain(..3).collect();
            let compares = taken[1].kind == Kind::Comparator && Comparator::parse(taken[1].text).is_some();
            if compares && taken[2].kind == Kind::Integer {
                joined.push(Piece::Clause { members: taken, text: None });
            } else {
                // MLflow lists the first token twice.
                let first = taken[0].clone();
                joined.extend(taken.into_iter().chain([first]).map(whole));
            }
            continue;
        }
        if rest[0].kind != Kind::Identifier {
            joined.extend(rest.pop_front().map(whole));
            continue;
        }
        let is_list = |node: Option<&Node>| node.is_some_and(|node| node.kind == Kind::Parenthesis);
        let found = if rest[1].is_keyword("IN") && is_list(rest.get(2)) {
            Some((rest[1].text, 3))
        } else if rest[1].is_keyword("IS") && rest[2].is_keyword("NULL") {
            Some(("IS NULL", 3))
        } else if rest[1].is_keyword("IS") && rest[2].is_keyword("NOT NULL") {
            Some(("IS NOT NULL", 3))
        } else if rest[1].is_keyword("NOT") && rest[2].is_keyword("IN") && is_list(rest.get(3)) {
            Some(("NOT IN", 4))
        } else {
            None
        };
        let length = found.map_or(4, |(_, length)| length).min(rest.len());
        let mut taken: Vec<_> = rest.drain(..length).collect();
        if let Some((comparator, _)) = found {
            let list = taken.pop().filter(|last| last.kind == Kind::Parenthesis);
            taken.truncate(1);
            taken.push(Node::keyword(comparator));
            taken.extend(list);
            joined.push(Piece::Clause { members: taken, text: None });
        } else {
            joined.extend(taken.into_iter().map(whole));
        }
    }
    joined.extend(rest.into_iter().map(whole));
    joined
}

/// Checks whether a node is `timestamp`. The word is a type in SQL and not an identifier, so
/// `sqlparse` does not build a comparison around it. MLflow compares the word case-sensitively.
fn is_timestamp(node: &Node) -> bool {
    node.kind == Kind::TypeName && node.text == "timestamp"
}

fn whole(node: Node<'_>) -> Piece<'_> {
    if node.kind == Kind::Comparison {
        let members = node.members.into_iter().filter(|member| !member.is_blank()).collect();
        Piece::Clause { members, text: Some(node.text) }
    } else {
        Piece::Other(node)
    }
}

/// Checks that a comparison is complete (`SearchUtils._validate_comparison`).
fn checked(members: Vec<Node<'_>>) -> Result<Comparison<'_>> {
    let count = members.len();
    let mut members = members.into_iter();
    let (left, comparator, right) = match (members.next(), members.next(), members.next()) {
        (Some(left), Some(comparator), right) if count == 3 || (count == 2 && comparator.text.starts_with("IS ")) => {
            (left, comparator, right)
        }
        _ => return Err(Error::invalid(format!("Invalid comparison clause. Expected 3 tokens found {count}"))),
    };
    if left.kind == Kind::Identifier || is_timestamp(&left) {
        Ok(Comparison { left: left.text, comparator: comparator.text, right })
    } else {
        Err(Error::invalid(format!("Invalid comparison clause. Expected 'Identifier' found '{}'", left.text)))
    }
}
