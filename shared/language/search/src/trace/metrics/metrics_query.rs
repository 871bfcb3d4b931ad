//! Queries of trace metrics, and their validation (`validate_query_trace_metrics_params`).

use std::collections::BTreeSet;

use mlflow_api::python::repr_list;
use mlflow_api::{Error, Result};

use super::super::related_entities::RelatedEntity;
use super::filter::{MetricFilter, parse_filter};
use super::measures::{Aggregation, Measure, MetricView};
use crate::range::TimeRange;

/// Maximum number of points in a response.
const MAX_POINTS: i32 = 100_000;
/// Maximum number of aggregations in a query. The same maximum applies to dimensions and to
/// filters.
const MAX_QUERY_ITEMS: usize = 100;
/// Maximum time, in ms, by which a trace is assumed to begin before its spans.
const MAX_SPAN_DELAY_MS: i64 = 86_400_000;

/// A query, as received.
#[derive(Clone, Debug)]
pub struct MetricsRequest<'a> {
    /// The kind of entity that the metric is about.
    pub view: MetricView,
    /// The name of the metric.
    pub metric: &'a str,
    /// The aggregations of its values.
    pub aggregations: Vec<Aggregation>,
    /// The dimensions by which the values are grouped.
    pub dimensions: &'a [String],
    /// The filters. An entity is only measured if it passes all of them.
    pub filters: &'a [String],
    /// The length of the time intervals by which the values are grouped, in seconds. 0 for no
    /// intervals.
    pub interval: i64,
    /// The range of times, in ms, inclusive at both ends.
    pub times: TimeRange,
    /// The maximum number of points to return. Negative for no limit.
    pub max_results: i32,
}

/// A validated query.
#[derive(Clone, Debug)]
pub struct MetricsQuery {
    pub(super) metric: String,
    pub(super) measure: Measure,
    pub(super) aggregations: Vec<Aggregation>,
    pub(super) dimensions: Vec<String>,
    pub(super) filters: Vec<MetricFilter>,
    /// The length of the time intervals, in ms.
    pub(super) interval: Option<i64>,
    pub(super) times: TimeRange,
    pub(super) most: usize,
}

impl MetricsQuery {
    /// Validates a query. The checks run in MLflow's order, so that the first error is MLflow's.
    pub fn of(asked: MetricsRequest) -> Result<Self> {
        let measures = asked.view.measures();
        let measure = measures.iter().find(|(name, _)| *name == asked.metric).map(|(_, measure)| *measure);
        let measure = measure.ok_or_else(|| {
            let names: Vec<_> = measures.iter().map(|(name, _)| *name).collect();
            Error::invalid(format!("metric_name must be one of {}, got '{}'", repr_list(&names), asked.metric))
        })?;
        let kinds: BTreeSet<_> = asked.aggregations.iter().map(|aggregation| aggregation.kind()).collect();
        let invalid: Vec<_> = kinds.into_iter().filter(|kind| !measure.aggregations().contains(kind)).collect();
        if !invalid.is_empty() {
            return Err(Error::invalid(format!(
                "Found invalid aggregation_type(s): {}. Supported aggregation types: {}",
                repr_list(&invalid),
                repr_list(measure.aggregations())
            )));
        }
        let names: BTreeSet<_> = asked.dimensions.iter().map(String::as_str).collect();
        let invalid: Vec<_> = names.into_iter().filter(|name| !measure.dimensions().contains(name)).collect();
        if !invalid.is_empty() {
            return Err(Error::invalid(format!(
                "Found invalid dimension(s): {}. Supported dimensions: {}",
                repr_list(&invalid),
                repr_list(measure.dimensions())
            )));
        }
        if asked.interval != 0 && (asked.times.from.is_none() || asked.times.until.is_none()) {
            let message = "start_time_ms and end_time_ms are required if time_interval_seconds is set";
            return Err(Error::invalid(message));
        }
        let longest = [asked.aggregations.len(), asked.dimensions.len(), asked.filters.len()].into_iter().max();
        if longest.is_some_and(|longest| longest > MAX_QUERY_ITEMS) {
            let message = format!("At most {MAX_QUERY_ITEMS} aggregations, dimensions and filters are allowed.");
            return Err(Error::invalid(message));
        }
        let filters = asked.filters.iter().map(|filter| parse_filter(filter, asked.view)).collect::<Result<_>>()?;
        let interval = asked.interval.checked_mul(1_000).filter(|interval| *interval >= 0);
        let interval = interval.ok_or_else(|| Error::invalid("`time_interval_seconds` is negative or too large."))?;
        // In SQL, a negative limit means that there is no limit.
        let most = if asked.max_results < 0 { MAX_POINTS } else { asked.max_results.min(MAX_POINTS) };
        Ok(Self {
            metric: asked.metric.to_owned(),
            measure,
            // Duplicate aggregations and dimensions are only returned once.
            aggregations: once(asked.aggregations),
            dimensions: once(asked.dimensions.to_vec()),
            filters,
            interval: Some(interval).filter(|interval| *interval > 0),
            times: asked.times,
            most: usize::try_from(most).unwrap_or_default(),
        })
    }

    /// Returns the kinds of entities, other than traces and their spans, that the query measures or
    /// that its filters use to select traces.
    pub fn related(&self) -> impl Iterator<Item = RelatedEntity> {
        let is_of_assessments = matches!(self.measure, Measure::Assessments | Measure::AssessmentValue);
        let counted = is_of_assessments.then_some(RelatedEntity::Assessment);
        counted.into_iter().chain(self.filters.iter().filter_map(MetricFilter::related))
    }

    /// Checks whether the query measures spans.
    #[must_use]
    pub fn asks_for_spans(&self) -> bool {
        matches!(self.measure, Measure::Spans | Measure::SpanDuration | Measure::Cost(_))
    }

    /// Checks whether the query only depends on the start times, durations, states, names, sessions
    /// and tokens of traces.
    #[must_use]
    pub fn is_about_columns(&self) -> bool {
        matches!(self.measure, Measure::Traces | Measure::Sessions | Measure::Duration | Measure::Tokens(_))
            && self.filters.iter().all(MetricFilter::is_about_columns)
    }

    /// Returns the range of request times of the traces to read. The cost of a model call is
    /// counted at the time of its span, and the trace may have begun up to a day before its span.
    #[must_use]
    pub fn request_times(&self) -> TimeRange {
        if self.is_by_span_time() {
            TimeRange { from: self.times.from.map(|from| from.saturating_sub(MAX_SPAN_DELAY_MS)), ..self.times }
        } else {
            self.times
        }
    }

    /// Checks whether values are counted at the time of their span instead of the time of the
    /// trace.
    pub(super) fn is_by_span_time(&self) -> bool {
        matches!(self.measure, Measure::Cost(_))
    }
}

fn once<T: PartialEq>(asked: Vec<T>) -> Vec<T> {
    asked.into_iter().fold(Vec::new(), |mut once, next| {
        if !once.contains(&next) {
            once.push(next);
        }
        once
    })
}
