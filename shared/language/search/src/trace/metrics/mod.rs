//! Figures about traces, spans and assessments: counts, sums, percentiles, by dimensions and by
//! time (`query_metrics` in MLflow's `sql_trace_metrics_utils.py`). Questions are checked here, and
//! readings are counted here. A store hands over traces one by one.

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
