//! Orderings of traces (`_get_orderby_clauses_for_search_traces`).

use std::collections::HashSet;

use mlflow_api::python::repr_list;
use mlflow_api::{Error, ErrorCode, Result};

use super::comparators;
use super::evaluate::TraceFields;
use super::identifier::{ORDER_ATTRIBUTES, TraceFieldFamily, TraceIdentifier, keys};
use super::predicate::{TraceNumber, TraceText};
use crate::order_by::{OrderTerm, SortDirection, parse_clauses};
use crate::sort_key::{SortKey, SortKeyValue};

/// The values by which traces can be sorted. Traces without the value come last in either
/// direction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TraceSortBy {
    /// A text attribute.
    Text(TraceText),
    /// A numeric attribute.
    Number(TraceNumber),
    /// The id of the experiment, as a number.
    Experiment,
    /// A tag.
    Tag(String),
    /// An entry of the metadata.
    Metadata(String),
}

/// A total order of traces. It is total because the id is one of its terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOrder {
    /// The terms, in descending order of precedence.
    pub terms: Vec<OrderTerm<TraceSortBy>>,
}

impl Default for TraceOrder {
    fn default() -> Self {
        Self::completed(Vec::new())
    }
}

impl TraceOrder {
    /// Appends MLflow's tie-breakers.
    fn completed(mut terms: Vec<OrderTerm<TraceSortBy>>) -> Self {
        let breakers = [
            OrderTerm { by: TraceSortBy::Number(TraceNumber::RequestTime), direction: SortDirection::Descending },
            OrderTerm { by: TraceSortBy::Text(TraceText::Id), direction: SortDirection::Ascending },
        ];
        for last in breakers {
            if !terms.iter().any(|term| term.by == last.by) {
                terms.push(last);
            }
        }
        Self { terms }
    }

    /// Returns the direction of the request time if traces are sorted by request time and then by
    /// id in ascending order, which is the order in which they are stored.
    #[must_use]
    pub fn by_time(&self) -> Option<SortDirection> {
        match self.terms.as_slice() {
            [first, second]
                if first.by == TraceSortBy::Number(TraceNumber::RequestTime)
                    && second.by == TraceSortBy::Text(TraceText::Id)
                    && second.direction == SortDirection::Ascending =>
            {
                Some(first.direction)
            }
            _ => None,
        }
    }

    /// Returns the sort key of a trace.
    #[must_use]
    pub fn key(&self, trace: &impl TraceFields) -> SortKey {
        SortKey::of(self.terms.iter().map(|term| {
            let cell = match &term.by {
                TraceSortBy::Text(attribute) => SortKeyValue::text(trace.text(*attribute)),
                TraceSortBy::Number(attribute) => SortKeyValue::integer(attribute.of(trace)),
                TraceSortBy::Experiment => SortKeyValue::integer(Some(trace.experiment().number().cast_signed())),
                TraceSortBy::Tag(key) => SortKeyValue::text(trace.tag(key)),
                TraceSortBy::Metadata(key) => SortKeyValue::text(trace.metadata(key)),
            };
            (term.direction, cell)
        }))
    }
}

/// Parses the ordering of a search of traces. It may contain the end time, which is computed as in
/// filters. MLflow fails to sort by the end time, because its database has no such column.
pub fn parse_trace_order_by(clauses: &[String]) -> Result<TraceOrder> {
    let mut terms = Vec::with_capacity(clauses.len() + 2);
    let mut seen = HashSet::new();
    for clause in parse_clauses(clauses)? {
        let (written, direction) = clause?;
        let TraceIdentifier { family, key } = TraceIdentifier::read(&written, &ORDER_ATTRIBUTES)?.resolved();
        comparators::order(family)?;
        if family == TraceFieldFamily::Metadata && matches!(key.as_str(), keys::TOKEN_USAGE | keys::COST) {
            return Err(Error::invalid(format!(
                "Ordering by reserved metadata '{key}' is not supported because it is represented by multiple columns."
            )));
        }
        let by = match family {
            TraceFieldFamily::Tag => TraceSortBy::Tag(key),
            TraceFieldFamily::Metadata => TraceSortBy::Metadata(key),
            _ if key == "experiment_id" => TraceSortBy::Experiment,
            _ => TraceNumber::parse(&key)
                .map(TraceSortBy::Number)
                .or_else(|| TraceText::parse(&key).map(TraceSortBy::Text))
                .ok_or_else(|| Error::internal(format!("no such attribute: {key}")))?,
        };
        if !seen.insert(by.clone()) {
            // MLflow raises this error without a code, which makes it an internal error.
            let message = format!("`order_by` contains duplicate fields: {}", repr_list(clauses));
            return Err(Error::new(ErrorCode::InternalError, message));
        }
        terms.push(OrderTerm { by, direction });
    }
    Ok(TraceOrder::completed(terms))
}
