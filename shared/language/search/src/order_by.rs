//! Orderings of runs and experiments.

use std::collections::HashSet;
use std::fmt;

use mlflow_api::python::repr_list;
use mlflow_api::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};

use crate::filter::{EXPERIMENT_ATTRIBUTES, ExperimentNumber, RunNumber, RunText};
use crate::identifier::{self, Identifier, RunFieldFamily};
use crate::shell_words;
use crate::size_limits;
use crate::syntax::{self, NodeKind};

const RUN_ATTRIBUTES: [&str; 9] =
    ["artifact_uri", "created", "Created", "end_time", "run_id", "run_name", "start_time", "status", "user_id"];

/// The direction of sorting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SortDirection {
    /// Smallest first.
    #[serde(rename = "a")]
    Ascending,
    /// Greatest first.
    #[serde(rename = "d")]
    Descending,
}

/// A field to sort by, and the direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderTerm<By> {
    /// The field to sort by.
    pub by: By,
    /// The direction.
    pub direction: SortDirection,
}

/// The fields that runs can be sorted by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RunSortBy {
    /// The latest value of a metric.
    Metric(String),
    /// A parameter.
    Param(String),
    /// A tag.
    Tag(String),
    /// A text attribute.
    Text(RunText),
    /// A numeric attribute.
    Number(RunNumber),
}

/// The fields that experiments can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExperimentSortBy {
    /// The name.
    Name,
    /// The id, as a number.
    Id,
    /// A numeric attribute.
    Number(ExperimentNumber),
}

/// A total order of runs. It is total because the last term is the run id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOrder {
    /// The terms, in descending order of precedence.
    pub terms: Vec<OrderTerm<RunSortBy>>,
}

/// A total order of experiments. It is total because the id is one of its terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentOrder {
    /// The terms, in descending order of precedence.
    pub terms: Vec<OrderTerm<ExperimentSortBy>>,
}

impl Default for RunOrder {
    /// Returns MLflow's default order: newest first. Ties are broken by id.
    fn default() -> Self {
        Self::completed(Vec::new())
    }
}

impl RunOrder {
    /// Appends MLflow's tie-breakers (`_get_orderby_clauses`).
    fn completed(mut terms: Vec<OrderTerm<RunSortBy>>) -> Self {
        let start_time = RunSortBy::Number(RunNumber::StartTime);
        if !terms.iter().any(|term| term.by == start_time) {
            terms.push(OrderTerm { by: start_time, direction: SortDirection::Descending });
        }
        terms.push(OrderTerm { by: RunSortBy::Text(RunText::RunId), direction: SortDirection::Ascending });
        Self { terms }
    }
}

impl Default for ExperimentOrder {
    /// Returns MLflow's default order: newest first. Ties are broken by id, in ascending order.
    fn default() -> Self {
        let newest = OrderTerm {
            by: ExperimentSortBy::Number(ExperimentNumber::CreationTime),
            direction: SortDirection::Descending,
        };
        Self { terms: vec![newest, OrderTerm { by: ExperimentSortBy::Id, direction: SortDirection::Ascending }] }
    }
}

/// Parses the ordering of a run search (`_get_orderby_clauses`).
pub fn parse_run_order_by(clauses: &[String]) -> Result<RunOrder> {
    let mut terms: Vec<OrderTerm<RunSortBy>> = Vec::with_capacity(clauses.len() + 2);
    let mut seen = HashSet::new();
    for clause in parse_clauses(clauses)? {
        let (written, direction) = clause?;
        let Identifier { family, key } = identifier::of_run(&written, &RUN_ATTRIBUTES)?;
        let by = match family {
            RunFieldFamily::Metric => Some(RunSortBy::Metric(key.to_owned())),
            RunFieldFamily::Param => Some(RunSortBy::Param(key.to_owned())),
            RunFieldFamily::Tag => Some(RunSortBy::Tag(key.to_owned())),
            RunFieldFamily::Attribute => {
                RunNumber::parse(key).map(RunSortBy::Number).or_else(|| RunText::parse(key).map(RunSortBy::Text))
            }
            RunFieldFamily::Dataset => None,
        };
        let by = by.ok_or_else(|| Error::invalid(format!("Invalid identifier type '{family}'")))?;
        if !seen.insert(by.clone()) {
            // MLflow raises this error without a code, which makes it an internal error.
            let message = format!("`order_by` contains duplicate fields: {}", repr_list(clauses));
            return Err(Error::new(ErrorCode::InternalError, message));
        }
        terms.push(OrderTerm { by, direction });
    }
    Ok(RunOrder::completed(terms))
}

/// Parses the ordering of an experiment search (`_get_search_experiments_order_by_clauses`).
pub fn parse_experiment_order_by(clauses: &[String]) -> Result<ExperimentOrder> {
    if clauses.is_empty() {
        return Ok(ExperimentOrder::default());
    }
    let parsed = parse_clauses(clauses)?.map(|clause| {
        let (written, direction) = clause?;
        let Identifier { family, key } = identifier::of_experiment(&written, &EXPERIMENT_ATTRIBUTES)?;
        let by = match (family, key) {
            (RunFieldFamily::Attribute, "name") => Some(ExperimentSortBy::Name),
            (RunFieldFamily::Attribute, "experiment_id") => Some(ExperimentSortBy::Id),
            (RunFieldFamily::Attribute, key) => ExperimentNumber::parse(key).map(ExperimentSortBy::Number),
            _ => None,
        };
        let by = by.ok_or_else(|| Error::invalid(format!("Invalid order_by entity: {family}")))?;
        Ok(OrderTerm { by, direction })
    });
    let mut terms = parsed.collect::<Result<Vec<_>>>()?;
    if !terms.iter().any(|term| term.by == ExperimentSortBy::Id) {
        terms.push(OrderTerm { by: ExperimentSortBy::Id, direction: SortDirection::Descending });
    }
    Ok(ExperimentOrder { terms })
}

/// Returns the identifier and the direction of each clause. Each clause is only parsed when the
/// iterator reaches it, so the error is about the first mistake.
pub(crate) fn parse_clauses(clauses: &[String]) -> Result<impl Iterator<Item = Result<(String, SortDirection)>>> {
    size_limits::ordering(clauses.iter().map(String::as_str))?;
    Ok(clauses.iter().map(|clause| parse_clause(clause)))
}

/// Parses the identifier and the direction of a clause (`SearchUtils._parse_order_by_string`).
fn parse_clause(clause: &str) -> Result<(String, SortDirection)> {
    let unparsed = || Error::invalid(format!("Invalid order_by clause '{clause}'. Could not be parsed."));
    let statements = syntax::statements(clause)
        .ok_or_else(|| Error::invalid(format!("Error on parsing order_by clause '{clause}'")))?;
    let [statement] = statements.as_slice() else { return Err(unparsed()) };
    let written = match statement.as_slice() {
        [only] if only.kind == NodeKind::Identifier => only.text.to_owned(),
        // `timestamp` is a field that other searches sort by. The word is a type in SQL and
        // therefore not an identifier.
        [first, rest @ ..] if first.kind == NodeKind::TypeName && first.text == "timestamp" => match rest {
            [] => first.text.to_owned(),
            [blanks @ .., last]
                if last.kind == NodeKind::Direction && blanks.iter().all(syntax::SyntaxNode::is_blank) =>
            {
                format!("timestamp {}", last.text)
            }
            _ => return Err(unparsed()),
        },
        _ => return Err(unparsed()),
    };
    let words = shell_words::split(&written.replace('`', "\"")).ok_or_else(unparsed)?;
    match words.as_slice() {
        [identifier, direction] => match direction.to_lowercase().as_str() {
            "asc" => Ok((identifier.trim().to_owned(), SortDirection::Ascending)),
            "desc" => Ok((identifier.trim().to_owned(), SortDirection::Descending)),
            _ => Err(Error::invalid(format!("Invalid ordering key in order_by clause '{clause}'."))),
        },
        [] | [_] => Ok((written.trim().to_owned(), SortDirection::Ascending)),
        _ => Err(unparsed()),
    }
}

impl fmt::Display for RunOrder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_joined(formatter, &self.terms)
    }
}

impl fmt::Display for ExperimentOrder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_joined(formatter, &self.terms)
    }
}

fn write_joined<By: fmt::Display>(formatter: &mut fmt::Formatter<'_>, terms: &[OrderTerm<By>]) -> fmt::Result {
    for (place, term) in terms.iter().enumerate() {
        let separator = if place == 0 { "" } else { ", " };
        write!(formatter, "{separator}{} {}", term.by, term.direction)?;
    }
    Ok(())
}

impl fmt::Display for SortDirection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Ascending => "ASC",
            Self::Descending => "DESC",
        })
    }
}

impl fmt::Display for RunSortBy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Metric(key) => write!(formatter, "metrics.`{key}`"),
            Self::Param(key) => write!(formatter, "params.`{key}`"),
            Self::Tag(key) => write!(formatter, "tags.`{key}`"),
            Self::Text(attribute) => formatter.write_str(attribute.name()),
            Self::Number(attribute) => formatter.write_str(attribute.name()),
        }
    }
}

impl fmt::Display for ExperimentSortBy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Name => "name",
            Self::Id => "experiment_id",
            Self::Number(attribute) => attribute.name(),
        })
    }
}
