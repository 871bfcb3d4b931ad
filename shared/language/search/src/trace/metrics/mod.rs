//! Metrics of traces, spans and assessments: counts, sums and percentiles, grouped by dimensions
//! and by time (`query_metrics` in MLflow's `sql_trace_metrics_utils.py`). This module validates
//! queries and aggregates values. A store passes it the traces one by one.

mod collect;
mod filter;
mod kinds;
mod measure;
mod question;
#[cfg(test)]
mod tests;

pub use collect::{MetricPoint, Metrics};
pub use kinds::{Aggregation, MetricView, SpanCost};
pub use measure::SpanFigures;
pub use question::{AskedMetrics, MetricsQuestion};
