//! Tests of metrics over a few traces.

use super::super::evaluate::{AssessmentFields, SpanFields, TraceFields};
use super::super::predicate::TraceText;
use super::*;
use crate::range::TimeRange;
use mlflow_api::ExperimentId;
use std::borrow::Cow;

struct Trace(i64, Option<i64>, &'static str);
struct Span;

impl TraceFields for Trace {
    fn experiment(&self) -> ExperimentId {
        ExperimentId::from_number(0).unwrap()
    }

    fn text(&self, _: TraceText) -> Option<&str> {
        Some("OK")
    }

    fn request_time(&self) -> i64 {
        self.0
    }

    fn duration(&self) -> Option<i64> {
        self.1
    }

    fn tag(&self, _: &str) -> Option<&str> {
        Some(self.2).filter(|name| !name.is_empty())
    }

    fn metadata(&self, key: &str) -> Option<&str> {
        (key == "mlflow.trace.session").then_some("s")
    }

    fn assessments(&self) -> impl Iterator<Item = AssessmentFields<'_>> {
        std::iter::empty()
    }

    fn is_linked_to_run(&self, _: &str) -> bool {
        false
    }

    fn is_linked_to_prompt(&self, _: &str) -> bool {
        false
    }
}

impl SpanFields for Span {
    fn name(&self) -> Option<&str> {
        None
    }

    fn kind(&self) -> Option<&str> {
        None
    }

    fn status(&self) -> &'static str {
        "OK"
    }

    fn start(&self) -> i64 {
        0
    }

    fn content(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }
}

impl SpanMetricFields for Span {
    fn end(&self) -> Option<i64> {
        None
    }

    fn model(&self) -> Option<&str> {
        None
    }

    fn provider(&self) -> Option<&str> {
        None
    }

    fn cost(&self, _: SpanCost) -> Option<f64> {
        None
    }
}

fn asked(metric: &'static str, aggregations: Vec<Aggregation>) -> MetricsRequest<'static> {
    MetricsRequest {
        view: MetricView::Traces,
        metric,
        aggregations,
        dimensions: &[],
        filters: &[],
        interval: 0,
        times: TimeRange::default(),
        max_results: 1_000,
    }
}

fn points(asked: MetricsRequest) -> Vec<MetricPoint> {
    let mut metrics = MetricsCollector::of(MetricsQuery::of(asked).unwrap());
    for trace in [
        Trace(0, Some(10), "a"),
        Trace(3_600_000, Some(20), "b"),
        Trace(3_600_001, None, "a"),
        Trace(7_200_000, Some(40), ""),
    ] {
        metrics.add(&trace, std::iter::empty::<Span>());
    }
    metrics.finish()
}

fn values(point: &MetricPoint) -> Vec<(&str, f64)> {
    point.values.iter().map(|(name, value)| (name.as_str(), *value)).collect()
}

#[test]
fn values_are_put_together() {
    let all = vec![Aggregation::Average, Aggregation::Minimum, Aggregation::Maximum, Aggregation::Percentile(75.0)];
    let found = points(asked("latency", all));
    assert_eq!(values(&found[0]), [("AVG", 70.0 / 3.0), ("MIN", 10.0), ("MAX", 40.0), ("P75.0", 30.0)]);
    assert_eq!(values(&points(asked("session_count", vec![Aggregation::Count]))[0]), [("COUNT", 1.0)]);
    // If there are no traces, the count is zero, and there is no mean.
    let none = TimeRange { from: Some(9), until: Some(8) };
    let found = points(MetricsRequest { times: none, ..asked("trace_count", vec![Aggregation::Count]) });
    assert_eq!(values(&found[0]), [("COUNT", 0.0)]);
    assert_eq!(points(MetricsRequest { times: none, ..asked("latency", vec![Aggregation::Average]) }), []);
}

#[test]
fn points_are_split_by_time_and_by_dimensions() {
    let names = ["trace_name".to_owned()];
    let times = TimeRange { from: Some(0), until: Some(7_200_000) };
    let by_hour =
        MetricsRequest { interval: 3_600, times, dimensions: &names, ..asked("trace_count", vec![Aggregation::Count]) };
    let found = points(by_hour.clone());
    let told: Vec<_> =
        found.iter().map(|point| (point.dimensions[0].1.as_str(), point.dimensions[1].1.as_str())).collect();
    let hours = ["1970-01-01T00:00:00+00:00", "1970-01-01T01:00:00+00:00"];
    // A trace without a name is not in any group.
    assert_eq!(told, [(hours[0], "a"), (hours[1], "a"), (hours[1], "b")]);
    assert_eq!(points(MetricsRequest { max_results: 2, ..by_hour }), found[..2]);
}

fn refused(asked: MetricsRequest) -> String {
    MetricsQuery::of(asked).unwrap_err().message
}

#[test]
fn what_cannot_be_asked_is_refused_as_mlflow_refuses_it() {
    let count = || vec![Aggregation::Count];
    assert_eq!(
        refused(asked("latency", count())),
        "Found invalid aggregation_type(s): ['COUNT']. Supported aggregation types: ['AVG', 'MAX', 'MIN', 'PERCENTILE']"
    );
    assert!(
        refused(asked("x", count()))
            .starts_with("metric_name must be one of ['trace_count', 'session_count', 'latency',")
    );
    let dimensions = ["span_name".to_owned()];
    assert_eq!(
        refused(MetricsRequest { dimensions: &dimensions, ..asked("trace_count", count()) }),
        "Found invalid dimension(s): ['span_name']. Supported dimensions: ['trace_name', 'trace_status']"
    );
    for (filter, message) in [
        ("trace.status != 'OK'", "Invalid comparator: '!=', only '=' operator is supported"),
        ("trace.tag = 'x'", "Filtering by tag requires a key, e.g. 'trace.tag.<key> = <value>'"),
        ("trace.status.x = 'x'", "Filtering by status does not require a key, use 'trace.status' instead"),
        (
            "trace.x = 'x'",
            "Invalid entity 'x' specified for view type 'trace'. Valid entities are ['status', 'tag', 'metadata']",
        ),
        ("x.y = 'x'", "Invalid view type 'x'. Valid values are dict_keys(['trace', 'span', 'assessment'])"),
        ("span.name = 'x'", "Filtering by span is only supported for SPANS view type, got TRACES"),
        ("trace.status = 'a' AND trace.status = 'b'", "Invalid clause(s) in filter string: AND"),
        ("trace.status = 5", "Expected a quoted string value for status value (e.g. 'my-value'). Got value 5"),
        ("", "Invalid filter: ''. Expected one filter clause."),
    ] {
        let filters = [filter.to_owned()];
        assert_eq!(refused(MetricsRequest { filters: &filters, ..asked("trace_count", count()) }), message, "{filter}");
    }
}
