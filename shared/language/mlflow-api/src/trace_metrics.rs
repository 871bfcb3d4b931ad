//! Figures about traces (`QueryTraceMetrics`, `CalculateTraceFilterCorrelation` in `service.proto`).

use serde::{Serialize, Serializer};

/// The kind of entity that is counted, by MLflow's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewOfMetrics {
    /// Traces.
    Traces,
    /// Spans.
    Spans,
    /// Assessments.
    Assessments,
}

crate::enum_field!(ViewOfMetrics {
    "TRACES" = 1 => ViewOfMetrics::Traces,
    "SPANS" = 2 => ViewOfMetrics::Spans,
    "ASSESSMENTS" = 3 => ViewOfMetrics::Assessments,
});

/// How values are put together, by MLflow's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregationType {
    /// How many.
    Count,
    /// All added.
    Sum,
    /// The mean.
    Average,
    /// A percentile.
    Percentile,
    /// The least.
    Least,
    /// The greatest.
    Greatest,
}

crate::enum_field!(AggregationType {
    "COUNT" = 1 => AggregationType::Count,
    "SUM" = 2 => AggregationType::Sum,
    "AVG" = 3 => AggregationType::Average,
    "PERCENTILE" = 4 => AggregationType::Percentile,
    "MIN" = 5 => AggregationType::Least,
    "MAX" = 6 => AggregationType::Greatest,
});

/// `traces/metrics`
#[derive(Debug, Serialize)]
pub struct TraceMetrics {
    /// The points.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub data_points: Vec<MetricDataPoint>,
}

/// A point of a figure.
#[derive(Debug, Serialize)]
pub struct MetricDataPoint {
    /// The name of the metric.
    pub metric_name: String,
    /// Its dimensions.
    #[serde(serialize_with = "map", skip_serializing_if = "Vec::is_empty")]
    pub dimensions: Vec<(String, String)>,
    /// Its values.
    #[serde(serialize_with = "map", skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<(String, f64)>,
}

fn map<V: Serialize, S: Serializer>(entries: &[(String, V)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(entries.iter().map(|(key, value)| (key, value)))
}

/// `traces/calculate-filter-correlation`
#[derive(Debug, Serialize)]
pub struct TraceCorrelation {
    /// Normalized pointwise mutual information, where it is defined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npmi: Option<f64>,
    /// The same smoothed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npmi_smoothed: Option<f64>,
    /// How many pass the first filter.
    pub filter1_count: u64,
    /// How many pass the second.
    pub filter2_count: u64,
    /// How many pass both.
    pub joint_count: u64,
    /// How many there are.
    pub total_count: u64,
}
