//! Aggregation of measured values into points.

use std::collections::{BTreeMap, HashSet};

use super::measures::Aggregation;
use super::metrics_query::MetricsQuery;

/// Maximum number of distinct texts that are remembered for one point. Only counts of sessions need
/// texts, which are the sessions.
const MAX_DISTINCT_TEXTS: usize = 1_000_000;

/// A point of the response.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricPoint {
    /// The name of the metric.
    pub metric: String,
    /// The names and values of the point's dimensions. The time is in ISO 8601 format.
    pub dimensions: Vec<(String, String)>,
    /// The aggregated values, by the name of the aggregation.
    pub values: Vec<(String, f64)>,
}

/// A measured value.
pub(super) enum MeasuredValue {
    One,
    Number(f64),
    Text(String),
}

/// An accumulator for the points of a query. It only keeps the points that come first in the
/// response, up to the requested number.
pub struct MetricsCollector {
    question: MetricsQuery,
    groups: BTreeMap<(i64, Vec<String>), MetricGroup>,
    keeps_values: bool,
}

#[derive(Default)]
struct MetricGroup {
    count: u64,
    sum: CompensatedSum,
    least: Option<f64>,
    greatest: Option<f64>,
    values: Vec<f64>,
    texts: HashSet<String>,
}

/// A sum that compensates for rounding errors, as in SQLite (Kahan, Babuška, Neumaier).
#[derive(Default)]
struct CompensatedSum {
    sum: f64,
    lost: f64,
}

impl CompensatedSum {
    fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        self.lost += if self.sum.abs() > value.abs() { (self.sum - sum) + value } else { (value - sum) + self.sum };
        self.sum = sum;
    }

    fn total(&self) -> f64 {
        self.sum + self.lost
    }
}

impl MetricsCollector {
    /// Creates an accumulator without any values.
    #[must_use]
    pub fn of(question: MetricsQuery) -> Self {
        let keeps_values = question.aggregations.iter().any(|kind| matches!(kind, Aggregation::Percentile(_)));
        Self { question, groups: BTreeMap::new(), keeps_values }
    }

    /// Returns the query.
    #[must_use]
    pub fn question(&self) -> &MetricsQuery {
        &self.question
    }

    /// Adds a value to the point of its interval and dimensions. Does nothing if there is no value,
    /// or if a dimension is missing.
    pub(super) fn count(
        &mut self,
        bucket: impl Fn(i64) -> i64,
        dimension: impl Fn(&str) -> Option<String>,
        reading: Option<MeasuredValue>,
    ) {
        let Some(reading) = reading else { return };
        let dimensions: Option<Vec<_>> = self.question.dimensions.iter().map(|name| dimension(name)).collect();
        let Some(dimensions) = dimensions else { return };
        let bucket = self.question.interval.map_or(0, bucket);
        let group = self.groups.entry((bucket, dimensions)).or_default();
        group.add(reading, self.keeps_values);
        // A group that sorts after the requested points can never become part of the response, so
        // it is dropped.
        if self.groups.len() > self.question.most {
            self.groups.pop_last();
        }
    }

    /// Returns the points, sorted by time and then by dimensions.
    #[must_use]
    pub fn finish(mut self) -> Vec<MetricPoint> {
        let is_split = self.question.interval.is_some() || !self.question.dimensions.is_empty();
        if self.groups.is_empty() && !is_split && self.question.most > 0 {
            // An SQL query without GROUP BY returns a row even if there are no values.
            self.groups.insert((0, Vec::new()), MetricGroup::default());
        }
        let groups = std::mem::take(&mut self.groups);
        groups.into_iter().filter_map(|((bucket, dimensions), group)| self.point(bucket, dimensions, group)).collect()
    }

    fn point(&self, bucket: i64, dimensions: Vec<String>, mut group: MetricGroup) -> Option<MetricPoint> {
        let question = &self.question;
        group.values.sort_unstable_by(f64::total_cmp);
        let values: Vec<_> = question
            .aggregations
            .iter()
            .filter_map(|aggregation| Some((aggregation.label(), group.value(*aggregation)?)))
            .collect();
        let time = question.interval.map(|_| ("time_bucket".to_owned(), iso(bucket)));
        let dimensions = time.into_iter().chain(question.dimensions.iter().cloned().zip(dimensions)).collect();
        (!values.is_empty()).then(|| MetricPoint { metric: question.metric.clone(), dimensions, values })
    }
}

impl MetricGroup {
    fn add(&mut self, reading: MeasuredValue, keeps_values: bool) {
        match reading {
            MeasuredValue::One => self.count += 1,
            MeasuredValue::Text(text) => {
                if self.texts.len() < MAX_DISTINCT_TEXTS && self.texts.insert(text) {
                    self.count += 1;
                }
            }
            MeasuredValue::Number(number) => {
                self.count += 1;
                self.sum.add(number);
                self.least = Some(self.least.map_or(number, |least| least.min(number)));
                self.greatest = Some(self.greatest.map_or(number, |greatest| greatest.max(number)));
                if keeps_values {
                    self.values.push(number);
                }
            }
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are answered as floats")]
    fn value(&self, aggregation: Aggregation) -> Option<f64> {
        let any = self.count > 0;
        match aggregation {
            Aggregation::Count => Some(self.count as f64),
            Aggregation::Sum => any.then(|| self.sum.total()),
            Aggregation::Average => any.then(|| self.sum.total() / self.count as f64),
            Aggregation::Minimum => self.least,
            Aggregation::Maximum => self.greatest,
            Aggregation::Percentile(percent) => percentile(&self.values, percent),
        }
    }
}

/// Returns a percentile of sorted values, with linear interpolation between adjacent values.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place among values in memory, never negative"
)]
fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    let place = percent / 100.0 * (sorted.len().checked_sub(1)? as f64);
    let below = place as usize;
    let (low, high) = (sorted.get(below)?, sorted.get(below + 1).or_else(|| sorted.get(below))?);
    Some(low + (place - below as f64) * (high - low))
}

/// Formats a time in whole seconds like Python's `isoformat`.
fn iso(ms: i64) -> String {
    let time = mlflow_api::proto_json::time_text(ms);
    format!("{}+00:00", time.trim_end_matches('Z'))
}
