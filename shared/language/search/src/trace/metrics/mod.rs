//! Metrics of traces, spans and assessments: counts, sums and percentiles, grouped by dimensions
//! and by time (`query_metrics` in MLflow's `sql_trace_metrics_utils.py`). This module validates
//! queries and aggregates values. A store passes it the traces one by one.

mod filter;
mod measured_values;
mod measures;
mod metrics_collector;
mod metrics_query;
#[cfg(test)]
mod tests;

pub use measured_values::SpanMetricFields;
pub use measures::{Aggregation, MetricView, SpanCost};
pub use metrics_collector::{MetricPoint, MetricsCollector};
pub use metrics_query::{MetricsQuery, MetricsRequest};
