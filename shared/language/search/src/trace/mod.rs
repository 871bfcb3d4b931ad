//! Searches of traces: the filter, the ordering, and the fields that they use (`SearchTraceUtils`
//! in MLflow's `search_utils.py`, `search_traces` in its SQL store).
//!
//! This module does not depend on how traces are stored. A store calls
//! [`TraceFilter::request_times`] for the range of times to read, and
//! [`TraceFilter::client_requests`] to determine whether an index can find the traces that may
//! pass. [`TraceFilter::matches`] checks a trace. The store only reads the spans of traces that
//! pass, and only if [`TraceFilter::asks_for_spans`] returns `true`.

mod client_requests;
mod comparators;
mod correlation;
mod evaluate;
mod filter;
mod identifier;
pub mod metrics;
mod order;
mod predicate;
mod regular_expression;
mod related_entities;
mod time_range;
mod value;
mod value_tests;

pub use correlation::CorrelationCounts;
pub use evaluate::{AssessmentFields, MatchingSessions, SpanFields, TraceFields};
pub use filter::{TraceFilter, parse_trace_filter};
pub use order::{TraceOrder, TraceSortBy, parse_trace_order_by};
pub use predicate::{
    AssessmentKind, AssessmentPredicate, AssessmentTest, SpanField, SpanPredicate, TraceNumber, TracePredicate,
    TraceText,
};
pub use regular_expression::RegularExpression;
pub use related_entities::RelatedEntity;
pub use value_tests::{NumberTest, TraceKeyTest, TraceTextTest};

use mlflow_api::Result;

/// A parsed search of traces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceSearch {
    /// The filter.
    pub filter: TraceFilter,
    /// The order.
    pub order: TraceOrder,
}

impl TraceSearch {
    /// Returns the kinds of entities, other than the traces, that the filter or order depends on.
    pub fn related(&self) -> impl Iterator<Item = RelatedEntity> {
        self.filter.related().chain(self.order.related())
    }
}

/// Parses the filter and the ordering of a search of traces. MLflow parses the ordering first, so
/// if both contain mistakes, the one in the ordering is reported.
pub fn parse_trace_search(filter: &str, order_by: &[String]) -> Result<TraceSearch> {
    let order = parse_trace_order_by(order_by)?;
    Ok(TraceSearch { filter: parse_trace_filter(filter)?, order })
}
