//! Splitting filters into comparisons. This is the outermost level of MLflow's parser, and all
//! kinds of entities share it.

use std::collections::VecDeque;

use mlflow_api::python::repr;
use mlflow_api::{Error, Result};

use crate::filter::Comparator;
use crate::python_repr::join;
use crate::size_limits;
use crate::syntax::{self, NodeKind, SyntaxNode};

/// A comparison: a left side, a comparator, and a value.
pub(crate) struct Comparison<'a> {
    /// The identifier, as written.
    pub(crate) left: &'a str,
    /// The comparator as written, except that `NOT IN`, `IS NULL` and `IS NOT NULL` are normalized.
    pub(crate) comparator: &'a str,
    /// The value. `None` for `IS NULL` and `IS NOT NULL`.
    pub(crate) right: Option<SyntaxNode<'a>>,
}

/// The format in which a message lists the parts of a filter that are not comparisons. MLflow
/// quotes them for runs, but not for experiments.
#[derive(Clone, Copy)]
pub(crate) enum PartNaming {
    Quoted,
    Bare,
}

/// Splits a filter into comparisons (`SearchUtils.parse_search_filter` and `_process_statement`).
/// Each comparison is only checked when the iterator reaches it, so the error is about the first
/// mistake in the text.
pub(crate) fn comparisons(filter: &str, naming: PartNaming) -> Result<impl Iterator<Item = Result<Comparison<'_>>>> {
    among(filter, naming, LeftSides::Identifier)
}

/// Splits a filter of traces into comparisons. A left side may also be `timestamp`, which is the
/// name of a type in SQL.
pub(crate) fn trace_comparisons(filter: &str) -> Result<impl Iterator<Item = Result<Comparison<'_>>>> {
    among(filter, PartNaming::Quoted, LeftSides::IdentifierOrTimestamp)
}

/// Splits a filter that may contain only one comparison. It supports neither AND nor comparators
/// that are keywords, such as IN.
pub(crate) fn single_comparisons(filter: &str) -> Result<impl Iterator<Item = Result<Comparison<'_>>>> {
    size_limits::filter(filter)?;
    let solid = only_statement(filter)?.into_iter().filter(|node| !node.is_blank());
    let mut clauses = Vec::new();
    let mut others = Vec::new();
    for piece in solid.map(whole) {
        match piece {
            StatementPart::Clause { members, .. } => clauses.push(members),
            StatementPart::Other(node) => others.push(node.text.to_owned()),
        }
    }
    if others.is_empty() {
        return Ok(clauses.into_iter().map(checked));
    }
    Err(Error::invalid(format!("Invalid clause(s) in filter string: {}", join(others))))
}

fn among(filter: &str, naming: PartNaming, left: LeftSides) -> Result<impl Iterator<Item = Result<Comparison<'_>>>> {
    size_limits::filter(filter)?;
    let mut clauses = Vec::new();
    let mut others = Vec::new();
    for piece in pieces(only_statement(filter)?, left) {
        match piece {
            StatementPart::Clause { members, .. } => clauses.push(members),
            // MLflow does not check the positions of the ANDs.
            StatementPart::Other(node) if node.is_keyword("AND") => {}
            StatementPart::Other(node) => others.push(node.text),
        }
    }
    if !others.is_empty() {
        let named = others.into_iter().map(|text| match naming {
            PartNaming::Quoted => format!("'{text}'"),
            PartNaming::Bare => text.to_owned(),
        });
        return Err(Error::invalid(format!("Invalid clause(s) in filter string: {}", join(named))));
    }
    size_limits::comparisons(clauses.len())?;
    Ok(clauses.into_iter().map(checked))
}

/// Returns the grouped tokens of a filter, which must be empty or a single statement.
fn only_statement(filter: &str) -> Result<Vec<SyntaxNode<'_>>> {
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
pub(crate) enum StatementPart<'a> {
    /// A comparison.
    Clause {
        /// The members, without white space.
        members: Vec<SyntaxNode<'a>>,
        /// The text as written. `None` for comparisons that use keywords as comparators, such as
        /// IN.
        text: Option<&'a str>,
    },
    Other(SyntaxNode<'a>),
}

/// The nodes that are accepted on the left side of a comparison that is joined from several tokens,
/// such as `x IN (…)`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LeftSides {
    Identifier,
    IdentifierOrTimestamp,
}

/// Finds the comparisons that use keywords as comparators: IN, NOT IN, IS NULL and IS NOT NULL.
pub(crate) fn join_keywords(nodes: Vec<SyntaxNode<'_>>) -> Vec<StatementPart<'_>> {
    pieces(nodes, LeftSides::Identifier)
}

/// Finds the comparisons that `sqlparse` does not recognize (`_join_in_comparison_tokens`). After a
/// failed match, the nodes that it has consumed are not examined again.
fn pieces(nodes: Vec<SyntaxNode<'_>>, left: LeftSides) -> Vec<StatementPart<'_>> {
    let mut rest: VecDeque<_> = nodes.into_iter().filter(|node| !node.is_blank()).collect();
    let mut joined = Vec::new();
    while rest.len() >= 3 {
        if left == LeftSides::IdentifierOrTimestamp && is_timestamp(&rest[0]) {
            let taken: Vec<_> = rest.drain(..3).collect();
            let compares = taken[1].kind == NodeKind::Comparator && Comparator::parse(taken[1].text).is_some();
            if compares && taken[2].kind == NodeKind::Integer {
                joined.push(StatementPart::Clause { members: taken, text: None });
            } else {
                // In the message about parts that are not comparisons, MLflow lists the first of
                // the three tokens twice.
                let first = taken[0].clone();
                joined.extend(taken.into_iter().chain([first]).map(whole));
            }
            continue;
        }
        if rest[0].kind != NodeKind::Identifier {
            joined.extend(rest.pop_front().map(whole));
            continue;
        }
        let is_list = |node: Option<&SyntaxNode>| node.is_some_and(|node| node.kind == NodeKind::Parenthesis);
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
            let list = taken.pop().filter(|last| last.kind == NodeKind::Parenthesis);
            taken.truncate(1);
            taken.push(SyntaxNode::keyword(comparator));
            taken.extend(list);
            joined.push(StatementPart::Clause { members: taken, text: None });
        } else {
            joined.extend(taken.into_iter().map(whole));
        }
    }
    joined.extend(rest.into_iter().map(whole));
    joined
}

/// Checks whether a node is `timestamp`. The word is a type in SQL and not an identifier, so
/// `sqlparse` does not build a comparison around it. MLflow compares the word case-sensitively.
fn is_timestamp(node: &SyntaxNode) -> bool {
    node.kind == NodeKind::TypeName && node.text == "timestamp"
}

fn whole(node: SyntaxNode<'_>) -> StatementPart<'_> {
    if node.kind == NodeKind::Comparison {
        let members = node.members.into_iter().filter(|member| !member.is_blank()).collect();
        StatementPart::Clause { members, text: Some(node.text) }
    } else {
        StatementPart::Other(node)
    }
}

/// Checks that a comparison is complete (`SearchUtils._validate_comparison`).
fn checked(members: Vec<SyntaxNode<'_>>) -> Result<Comparison<'_>> {
    let count = members.len();
    let mut members = members.into_iter();
    let (left, comparator, right) = match (members.next(), members.next(), members.next()) {
        (Some(left), Some(comparator), right) if count == 3 || (count == 2 && comparator.text.starts_with("IS ")) => {
            (left, comparator, right)
        }
        _ => return Err(Error::invalid(format!("Invalid comparison clause. Expected 3 tokens found {count}"))),
    };
    if left.kind == NodeKind::Identifier || is_timestamp(&left) {
        Ok(Comparison { left: left.text, comparator: comparator.text, right })
    } else {
        Err(Error::invalid(format!("Invalid comparison clause. Expected 'Identifier' found '{}'", left.text)))
    }
}
