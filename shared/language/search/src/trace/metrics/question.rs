//! The question of a request (`validate_query_trace_metrics_params`).

use std::collections::BTreeSet;

use mlflow_api::python::repr_list;
use mlflow_api::{Error, Result};

use super::super::related::Related;
use super::filter::{MetricFilter, parse_filter};
use super::kinds::{Aggregation, Measure, MetricView};
use crate::range::TimeRange;

/// Points of one answer at most.
const MOST: i32 = 100_000;
/// Aggregations, dimensions and filters of one question, each.
const MOST_OF_EACH: usize = 100;
/// Before a range of spans' times, their traces may have begun so long ago, in ms.
const DAY: i64 = 86_400_000;

/// The question, as it was sent.
#[derive(Clone, Debug)]
pub struct AskedMetrics<'a> {
    /// The kind of entity that is counted.
    pub view: MetricView,
    /// The name of the metric.
    pub metric: &'a str,
    /// How it is put together.
    pub aggregations: Vec<Aggregation>,
    /// The dimensions that it is split by.
    pub dimensions: &'a [String],
    /// Filters; all of them have to pass.
    pub filters: &'a [String],
    /// Length of the intervals of time by which it is split, in seconds; 0 for none.
    pub interval: i64,
    /// Which times count, in ms, both ends included.
    pub times: TimeRange,
    /// How many points are wanted.
    pub max_results: i32,
}

/// A question that can be answered.
#[derive(Clone, Debug)]
pub struct MetricsQuestion {
    pub(super) metric: String,
    pub(super) measure: Measure,
    pub(super) aggregations: Vec<Aggregation>,
    pub(super) dimensions: Vec<String>,
    pub(super) filters: Vec<MetricFilter>,
    /// In ms.
    pub(super) interval: Option<i64>,
    pub(super) times: TimeRange,
    pub(super) most: usize,
}

impl MetricsQuestion {
    /// Checks a question, in MLflow's order.
    pub fn of(asked: AskedMetrics) -> Result<Self> {
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
        if longest.is_some_and(|longest| longest > MOST_OF_EACH) {
            let message = format!("At most {MOST_OF_EACH} aggregations, dimensions and filters are allowed.");
            return Err(Error::invalid(message));
        }
        let filters = asked.filters.iter().map(|filter| parse_filter(filter, asked.view)).collect::<Result<_>>()?;
        let interval = asked.interval.checked_mul(1_000).filter(|interval| *interval >= 0);
        let interval = interval.ok_or_else(|| Error::invalid("`time_interval_seconds` has to be a length of time."))?;
        // SQL takes less than none for all.
        let most = if asked.max_results < 0 { MOST } else { asked.max_results.min(MOST) };
        Ok(Self {
            metric: asked.metric.to_owned(),
            measure,
            // Repeated aggregations and dimensions are answered once.
            aggregations: once(asked.aggregations),
            dimensions: once(asked.dimensions.to_vec()),
            filters,
            interval: Some(interval).filter(|interval| *interval > 0),
            times: asked.times,
            most: usize::try_from(most).unwrap_or_default(),
        })
    }

    /// The entities other than traces and their spans that are counted, or that traces are selected
    /// by.
    pub fn related(&self) -> impl Iterator<Item = Related> {
        let is_of_assessments = matches!(self.measure, Measure::Assessments | Measure::AssessmentValue);
        let counted = is_of_assessments.then_some(Related::Assessment);
        counted.into_iter().chain(self.filters.iter().filter_map(MetricFilter::related))
    }

    /// Whether spans are counted.
    #[must_use]
    pub fn asks_for_spans(&self) -> bool {
        matches!(self.measure, Measure::Spans | Measure::SpanDuration | Measure::Cost(_))
    }

    /// Whether no more is asked of traces than when they began, how long they took, their states, names, sessions and tokens.
    #[must_use]
    pub fn is_about_columns(&self) -> bool {
        matches!(self.measure, Measure::Traces | Measure::Sessions | Measure::Duration | Measure::Tokens(_))
            && self.filters.iter().all(MetricFilter::is_about_columns)
    }

    /// The times of traces that have a part in it. The cost of a call counts at the time of its
    /// span, whose trace may have begun a day before.
    #[must_use]
    pub fn request_times(&self) -> TimeRange {
        if self.is_by_span_time() {
            TimeRange { from: self.times.from.map(|from| from.saturating_sub(DAY)), ..self.times }
        } else {
            self.times
        }
    }

    /// Whether the time of a span decides, and not that of its trace.
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
