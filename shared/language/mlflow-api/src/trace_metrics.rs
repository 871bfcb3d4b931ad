//! Metrics of traces (`QueryTraceMetrics` and `CalculateTraceFilterCorrelation` in
//! `service.proto`).

use serde::{Serialize, Serializer};

/// The kind of entity that a metric is about, by MLflow's name.
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

/// The way in which values are aggregated, by MLflow's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregationType {
    /// The number of values.
    Count,
    /// The sum.
    Sum,
    /// The mean.
    Average,
    /// A percentile.
    Percentile,
    /// The minimum.
    Least,
    /// The maximum.
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

/// The response of `traces/metrics`.
#[derive(Debug, Serialize)]
pub struct TraceMetricsResponse {
    /// The points.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub data_points: Vec<MetricDataPoint>,
}

/// A point of a metric.
#[derive(Debug, Serialize)]
pub struct MetricDataPoint {
    /// The name of the metric.
    pub metric_name: String,
    /// The dimensions.
    #[serde(serialize_with = "map", skip_serializing_if = "Vec::is_empty")]
    pub dimensions: Vec<(String, String)>,
    /// The aggregated values.
    #[serde(serialize_with = "map", skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<(String, f64)>,
}

fn map<V: Serialize, S: Serializer>(entries: &[(String, V)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(entries.iter().map(|(key, value)| (key, value)))
}

/// The response of `traces/calculate-filter-correlation`.
#[derive(Debug, Serialize)]
pub struct TraceCorrelationResponse {
    /// The normalized pointwise mutual information, if it is defined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npmi: Option<f64>,
    /// The smoothed normalized pointwise mutual information, if it is defined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npmi_smoothed: Option<f64>,
    /// The number of traces that pass the first filter.
    pub filter1_count: u64,
    /// The number of traces that pass the second filter.
    pub filter2_count: u64,
    /// The number of traces that pass both filters.
    pub joint_count: u64,
    /// The number of all traces.
    pub total_count: u64,
}
