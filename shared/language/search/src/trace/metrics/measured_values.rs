//! The values that a trace contributes to metrics.

use mlflow_api::json::read_value;
use serde_json::Value;

use super::super::evaluate::{AssessmentFields, SpanFields, TraceFields};
use super::super::identifier::keys;
use super::super::predicate::TraceText;
use super::measures::{Measure, SpanCost};
use super::metrics_collector::{MeasuredValue, MetricsCollector};

/// The fields of a span that trace metrics use, in addition to the fields that searches use.
pub trait SpanMetricFields: SpanFields {
    /// Returns the end time in nanoseconds, or `None` if the span has not ended.
    fn end(&self) -> Option<i64>;

    /// Returns the model that was called.
    fn model(&self) -> Option<&str>;

    /// Returns the provider that hosts the model.
    fn provider(&self) -> Option<&str>;

    /// Returns the cost of the call, in US dollars.
    fn cost(&self, kind: SpanCost) -> Option<f64>;
}

impl MetricsCollector {
    /// Adds the values of a trace. `spans` is only used if the query measures spans.
    pub fn add<S: SpanMetricFields>(&mut self, trace: &impl TraceFields, spans: impl IntoIterator<Item = S>) {
        let question = self.question();
        let is_asked = question.is_by_span_time() || question.times.contains(trace.request_time());
        if !is_asked || !question.filters.iter().all(|filter| filter.lets_trace(trace)) {
            return;
        }
        match question.measure {
            Measure::Assessments | Measure::AssessmentValue => {
                for assessment in trace.assessments() {
                    self.add_assessment(trace, &assessment);
                }
            }
            Measure::Spans | Measure::SpanDuration | Measure::Cost(_) => {
                for span in spans {
                    self.add_span(&span);
                }
            }
            measure => {
                let reading = match measure {
                    Measure::Traces => Some(MeasuredValue::One),
                    Measure::Sessions => {
                        trace.metadata(keys::SESSION).map(|session| MeasuredValue::Text(session.to_owned()))
                    }
                    Measure::Tokens(kind) => tokens(trace, kind).map(MeasuredValue::Number),
                    _ => trace.duration().map(number),
                };
                let dimension = |name: &str| match name {
                    "trace_name" => trace.tag(keys::NAME).map(str::to_owned),
                    _ => trace.text(TraceText::State).map(str::to_owned),
                };
                let bucket = |interval| bucket_of(trace.request_time(), interval);
                self.count(bucket, dimension, reading);
            }
        }
    }

    fn add_assessment(&mut self, trace: &impl TraceFields, assessment: &AssessmentFields) {
        let question = self.question();
        if !assessment.is_valid || !question.filters.iter().all(|filter| filter.lets_assessment(assessment)) {
            return;
        }
        let reading = match question.measure {
            Measure::Assessments => Some(MeasuredValue::One),
            _ => aggregate_value(&assessment.json).map(MeasuredValue::Number),
        };
        let dimension = |name: &str| match name {
            "assessment_name" => Some(assessment.name.to_owned()),
            _ => Some(assessment.json.clone().into_owned()),
        };
        let bucket = |interval| bucket_of(trace.request_time(), interval);
        self.count(bucket, dimension, reading);
    }

    fn add_span(&mut self, span: &impl SpanMetricFields) {
        let question = self.question();
        let start = span.start().div_euclid(1_000_000);
        let is_asked = !question.is_by_span_time() || question.times.contains(start);
        if !is_asked || !question.filters.iter().all(|filter| filter.lets_span(span)) {
            return;
        }
        let reading = match question.measure {
            Measure::Spans => Some(MeasuredValue::One),
            Measure::Cost(kind) => span.cost(kind).map(MeasuredValue::Number),
            _ => span.end().map(|end| number(end.saturating_sub(span.start()) / 1_000_000)),
        };
        let dimension = |name: &str| match name {
            "span_name" => span.name().map(str::to_owned),
            "span_type" => span.kind().map(str::to_owned),
            "span_status" => Some(span.status().to_owned()),
            "span_model_name" => span.model().map(str::to_owned),
            _ => span.provider().map(str::to_owned),
        };
        let bucket = |interval| bucket_of_nanos(span.start(), interval);
        self.count(bucket, dimension, reading);
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures are floats")]
fn number(value: i64) -> MeasuredValue {
    MeasuredValue::Number(value as f64)
}

fn tokens(trace: &impl TraceFields, kind: &str) -> Option<f64> {
    let usage = read_value(trace.metadata(keys::TOKEN_USAGE)?.as_bytes()).ok()?;
    usage.get(kind)?.as_f64()
}

/// Returns the start of the interval that contains a time. All arguments are in ms.
fn bucket_of(time: i64, interval: i64) -> i64 {
    time.div_euclid(interval).saturating_mul(interval)
}

/// Returns the start, in ms, of the interval that contains a time in nanoseconds. SQLite divides
/// such times as floats, so a time in the last hundred nanoseconds before an interval is counted as
/// part of that interval.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "as SQLite does it")]
fn bucket_of_nanos(time: i64, interval: i64) -> i64 {
    ((time as f64 / 1e6 / interval as f64).floor() as i64).saturating_mul(interval)
}

/// Returns the number that represents the value of an assessment in aggregations
/// (`assessment_aggregate`).
fn aggregate_value(json: &str) -> Option<f64> {
    match read_value(json.as_bytes()).ok()? {
        Value::Bool(value) => Some(f64::from(u8::from(value))),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "yes" => Some(1.0),
            "no" => Some(0.0),
            _ => None,
        },
        _ => None,
    }
}
