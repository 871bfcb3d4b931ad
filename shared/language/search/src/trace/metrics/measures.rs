//! The measures, their aggregations, and the dimensions by which they can be grouped.

use mlflow_api::python::float;

/// The kind of entity that a metric is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricView {
    /// Traces.
    Traces,
    /// Spans.
    Spans,
    /// Assessments.
    Assessments,
}

impl MetricView {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Traces => "TRACES",
            Self::Spans => "SPANS",
            Self::Assessments => "ASSESSMENTS",
        }
    }

    /// Returns the measures of this kind of entity, in MLflow's order.
    pub(super) const fn measures(self) -> &'static [(&'static str, Measure)] {
        match self {
            Self::Traces => &[
                ("trace_count", Measure::Traces),
                ("session_count", Measure::Sessions),
                ("latency", Measure::Duration),
                ("input_tokens", Measure::Tokens("input_tokens")),
                ("output_tokens", Measure::Tokens("output_tokens")),
                ("total_tokens", Measure::Tokens("total_tokens")),
                ("cache_read_input_tokens", Measure::Tokens("cache_read_input_tokens")),
                ("cache_creation_input_tokens", Measure::Tokens("cache_creation_input_tokens")),
            ],
            Self::Spans => &[
                ("span_count", Measure::Spans),
                ("latency", Measure::SpanDuration),
                ("input_cost", Measure::Cost(SpanCost::Input)),
                ("output_cost", Measure::Cost(SpanCost::Output)),
                ("total_cost", Measure::Cost(SpanCost::Total)),
            ],
            Self::Assessments => {
                &[("assessment_count", Measure::Assessments), ("assessment_value", Measure::AssessmentValue)]
            }
        }
    }
}

/// A part of the cost of a model call, or the whole cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanCost {
    /// The cost of the model's input.
    Input,
    /// The cost of the model's output.
    Output,
    /// The cost of the model's input and output together.
    Total,
}

/// A quantity that is measured for each entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    Traces,
    Sessions,
    Duration,
    Tokens(&'static str),
    Spans,
    SpanDuration,
    Cost(SpanCost),
    Assessments,
    AssessmentValue,
}

const VALUE_AGGREGATIONS: &[&str] = &["AVG", "MAX", "MIN", "PERCENTILE"];
const SUM_AGGREGATIONS: &[&str] = &["AVG", "MAX", "MIN", "PERCENTILE", "SUM"];

impl Measure {
    /// Returns the supported aggregations, sorted by name.
    pub(super) const fn aggregations(self) -> &'static [&'static str] {
        match self {
            Self::Traces | Self::Sessions | Self::Spans | Self::Assessments => &["COUNT"],
            Self::Duration | Self::SpanDuration | Self::AssessmentValue => VALUE_AGGREGATIONS,
            Self::Tokens(_) | Self::Cost(_) => SUM_AGGREGATIONS,
        }
    }

    /// Returns the supported dimensions, sorted by name.
    pub(super) const fn dimensions(self) -> &'static [&'static str] {
        match self {
            Self::Traces => &["trace_name", "trace_status"],
            Self::Sessions => &[],
            Self::Duration | Self::Tokens(_) => &["trace_name"],
            Self::Spans => &["span_model_name", "span_model_provider", "span_name", "span_status", "span_type"],
            Self::SpanDuration => &["span_name", "span_status"],
            Self::Cost(_) => &["span_model_name", "span_model_provider"],
            Self::Assessments => &["assessment_name", "assessment_value"],
            Self::AssessmentValue => &["assessment_name"],
        }
    }
}

/// The way in which values are aggregated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregation {
    /// The number of values.
    Count,
    /// The sum.
    Sum,
    /// The mean.
    Average,
    /// A percentile between 0 and 100, with linear interpolation between values.
    Percentile(f64),
    /// The minimum.
    Minimum,
    /// The maximum.
    Maximum,
}

impl Aggregation {
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::Count => "COUNT",
            Self::Sum => "SUM",
            Self::Average => "AVG",
            Self::Percentile(_) => "PERCENTILE",
            Self::Minimum => "MIN",
            Self::Maximum => "MAX",
        }
    }

    /// Returns the name of the aggregated value in the response.
    pub(super) fn label(self) -> String {
        match self {
            Self::Percentile(percent) => format!("P{}", float(percent)),
            other => other.kind().to_owned(),
        }
    }
}
