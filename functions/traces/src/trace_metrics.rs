//! Endpoints for aggregated metrics of traces, and for the correlation of two filters.

use access::{Needs, Scope};
use mlflow_api::requests::traces as message;
use mlflow_api::trace_metrics::{AggregationType, TraceCorrelationResponse, TraceMetricsResponse, ViewOfMetrics};
use mlflow_api::{Error, ErrorCode, ExperimentId, Request, Result, python};
use search::TimeRange;
use search::trace::metrics::{Aggregation, MetricView, MetricsQuery, MetricsRequest};
use search::trace::parse_trace_filter;
use service::Endpoint;

use crate::response_visibility::search_needs;
use crate::store::{Correlation, Store, known_experiments};

/// Default number of points per page (`MAX_RESULTS_QUERY_TRACE_METRICS`).
const DEFAULT_POINTS: i32 = 1_000;

fn experiments(ids: &[String]) -> Result<Vec<ExperimentId>> {
    known_experiments(&ids.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Validates an aggregation like MLflow's `MetricAggregation`.
fn aggregation(sent: &message::MetricAggregation) -> Result<Aggregation> {
    // As in MLflow, a missing aggregation type means the first one.
    let (plain, name) = match sent.aggregation_type.unwrap_or(AggregationType::Count) {
        AggregationType::Percentile => {
            return match sent.percentile_value {
                None => Err(Error::invalid("Percentile value is required for PERCENTILE aggregation")),
                Some(percent) if (0.0..=100.0).contains(&percent) => Ok(Aggregation::Percentile(percent)),
                Some(percent) => Err(Error::invalid(format!(
                    "Percentile value must be between 0 and 100, got {}",
                    python::float(percent)
                ))),
            };
        }
        AggregationType::Count => (Aggregation::Count, "COUNT"),
        AggregationType::Sum => (Aggregation::Sum, "SUM"),
        AggregationType::Average => (Aggregation::Average, "AVG"),
        AggregationType::Least => (Aggregation::Minimum, "MIN"),
        AggregationType::Greatest => (Aggregation::Maximum, "MAX"),
    };
    if sent.percentile_value.is_some() {
        let message = format!("Percentile value is only allowed for PERCENTILE aggregation type, got {name}");
        return Err(Error::invalid(message));
    }
    Ok(plain)
}

pub(crate) struct Query {
    experiments: Vec<ExperimentId>,
    question: MetricsQuery,
}

impl Endpoint for Query {
    type Store = Store;
    type Answer = TraceMetricsResponse;

    fn read(request: &Request) -> Result<Self> {
        let asked: message::QueryTraceMetrics = request.read()?;
        let view = match asked.view_type {
            Some(ViewOfMetrics::Spans) => MetricView::Spans,
            Some(ViewOfMetrics::Assessments) => MetricView::Assessments,
            // As in MLflow, a missing view means the first one.
            Some(ViewOfMetrics::Traces) | None => MetricView::Traces,
        };
        let is_split =
            !asked.dimensions.is_empty() || asked.time_interval_seconds.is_some_and(|interval| interval != 0);
        if asked.aggregations.is_empty() && !is_split {
            let message = "Query contains no columns with which to SELECT from.";
            return Err(Error::new(ErrorCode::BadRequest, message));
        }
        let question = MetricsQuery::of(MetricsRequest {
            view,
            metric: &asked.metric_name,
            aggregations: asked.aggregations.iter().map(aggregation).collect::<Result<_>>()?,
            dimensions: &asked.dimensions,
            filters: &asked.filters,
            interval: asked.time_interval_seconds.unwrap_or_default(),
            times: TimeRange { from: asked.start_time_ms, until: asked.end_time_ms },
            max_results: asked.max_results.unwrap_or(DEFAULT_POINTS),
        })?;
        Ok(Self { experiments: experiments(&asked.experiment_ids)?, question })
    }

    fn needs(&self) -> Needs {
        search_needs(&self.experiments, self.question.related())
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<TraceMetricsResponse> {
        store.trace_metrics(&scope.listed_experiments(&self.experiments)?, self.question).await
    }
}

pub(crate) struct Correlate {
    experiments: Vec<ExperimentId>,
    correlation: Correlation,
}

impl Endpoint for Correlate {
    type Store = Store;
    type Answer = TraceCorrelationResponse;

    fn read(request: &Request) -> Result<Self> {
        let asked: message::CalculateCorrelation = request.read()?;
        let experiments = experiments(&asked.experiment_ids)?;
        let base = asked.base_filter.filter(|base| !base.is_empty());
        // The two filters are combined into one text, because MLflow parses the combined filter and
        // quotes it in its error messages.
        let with_base = |filter: &str| match &base {
            Some(base) => parse_trace_filter(&format!("{base} and {filter}")),
            None => parse_trace_filter(filter),
        };
        let (first, second) = (with_base(&asked.filter_string1)?, with_base(&asked.filter_string2)?);
        let base = base.as_deref().map(parse_trace_filter).transpose()?;
        Ok(Self { experiments, correlation: Correlation { base, first, second } })
    }

    fn needs(&self) -> Needs {
        search_needs(&self.experiments, self.correlation.related())
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<TraceCorrelationResponse> {
        store.trace_correlation(&scope.listed_experiments(&self.experiments)?, &self.correlation).await
    }
}
