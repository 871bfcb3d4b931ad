//! Searching traces: filter, ordering, and the fields of both (`SearchTraceUtils` in MLflow's
//! `search_utils.py`, `search_traces` in its SQL store).
//!
//! Nothing here knows where traces are kept. A store asks [`TraceFilter::request_times`] for the
//! times to read, and [`TraceFilter::client_requests`] whether an index knows the traces that may
//! pass. [`TraceFilter::matches`] says which traces pass. Only then, if
//! [`TraceFilter::asks_for_spans`], the store reads the spans of those.

mod comparators;
mod correlation;
mod evaluate;
mod expression;
mod filter;
mod identifier;
pub mod metrics;
mod order;
mod predicate;
mod related;
mod requests;
mod test;
mod times;
mod value;

pub use correlation::CorrelationCounts;
pub use evaluate::{AssessmentFields, Sessions, SpanFields, TraceFields};
pub use expression::Expression;
pub use filter::{TraceFilter, parse_trace_filter};
pub use order::{TraceOrder, TraceSortBy, parse_trace_order_by};
pub use predicate::{
    AssessmentKind, AssessmentPredicate, AssessmentTest, SpanField, SpanPredicate, TraceNumber, TracePredicate,
    TraceText,
};
pub use related::Related;
pub use test::{KeyTest, NumberTest, Test};

use mlflow_api::Result;

/// A search of traces as it was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceSearch {
    /// Which traces.
    pub filter: TraceFilter,
    /// In which order.
    pub order: TraceOrder,
}

impl TraceSearch {
    /// The other entities that it selects or sorts traces by.
    pub fn related(&self) -> impl Iterator<Item = Related> {
        self.filter.related().chain(self.order.related())
    }
}

/// Reads filter and ordering of a search of traces. MLflow reads the ordering first; of several mistakes the first is reported.
pub fn parse_trace_search(filter: &str, order_by: &[String]) -> Result<TraceSearch> {
    let order = parse_trace_order_by(order_by)?;
    Ok(TraceSearch { filter: parse_trace_filter(filter)?, order })
}
