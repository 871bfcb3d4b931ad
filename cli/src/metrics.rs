//! `GET /metrics` of `serve`: counters of requests, in the text format of Prometheus.
//!
//! The counters contain nothing from the content of requests. On AWS, every request is logged
//! instead.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use access::Resource::User;
use access::{Action, Authorizer, Needs, Permission, Scope, Target};
use axum::Router;
use http::StatusCode;
use mlflow_api::{Error, Request, Result};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use service::{Endpoint, EndpointResponse, FunctionContext, Paths, RequestLine, Route};
use table::Table;

const METRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds of the histogram's buckets, in seconds.
const DURATION_BUCKETS: [f64; 10] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0, 10.0];

/// Value of a label for a request that matched no route or got no response.
const MISSING_LABEL: &str = "none";

/// Counters of this process since its start.
#[derive(Clone)]
pub(crate) struct RequestMetrics {
    requests: Family<ResponseLabels, Counter>,
    seconds: Family<RouteLabels, Histogram, fn() -> Histogram>,
    table_requests: Family<RouteLabels, Counter>,
    read_units: Family<RouteLabels, Counter<f64, AtomicU64>>,
    write_units: Family<RouteLabels, Counter<f64, AtomicU64>>,
    // A `std` mutex suffices, because the lock is never held across an `await`.
    registry: Arc<Mutex<Registry>>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResponseLabels {
    route: String,
    status: String,
}

impl RequestMetrics {
    /// Creates counters at zero.
    pub(crate) fn new() -> Self {
        let metrics = Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(DURATION_BUCKETS)),
            table_requests: Family::default(),
            read_units: Family::default(),
            write_units: Family::default(),
            registry: Arc::default(),
        };
        let mut registry = Registry::with_prefix("mlflow");
        registry.register("requests", "Requests by route and status", metrics.requests.clone());
        let seconds = metrics.seconds.clone();
        registry.register_with_unit("request_duration", "Time until the response", Unit::Seconds, seconds);
        registry.register("dynamodb_requests", "Requests to DynamoDB", metrics.table_requests.clone());
        registry.register("dynamodb_read_units", "Read capacity units", metrics.read_units.clone());
        registry.register("dynamodb_write_units", "Write capacity units", metrics.write_units.clone());
        *metrics.registry.lock().unwrap_or_else(PoisonError::into_inner) = registry;
        metrics
    }

    /// Counts a request.
    pub(crate) fn count(&self, line: &RequestLine) {
        let route = line.route.as_deref().unwrap_or(MISSING_LABEL).to_owned();
        let status = line.status.map_or_else(|| MISSING_LABEL.to_owned(), |status| status.as_u16().to_string());
        self.requests.get_or_create(&ResponseLabels { route: route.clone(), status }).inc();
        let of_route = RouteLabels { route };
        self.seconds.get_or_create(&of_route).observe(line.time.as_secs_f64());
        self.table_requests.get_or_create(&of_route).inc_by(u64::from(line.usage.requests));
        self.read_units.get_or_create(&of_route).inc_by(line.usage.read_units);
        self.write_units.get_or_create(&of_route).inc_by(line.usage.write_units);
    }

    /// Returns a router with a single path, which serves the counters to administrators.
    pub(crate) fn router(&self, table: Table, authorizer: Arc<dyn Authorizer>) -> Router {
        let route = Route::to::<GetMetrics>("GET", "/metrics", Permission::Manage(User)).under(Paths::Bare);
        service::router(vec![route], &FunctionContext::new(MetricsStore { metrics: self.clone(), table }, authorizer))
    }
}

#[derive(Clone)]
struct MetricsStore {
    metrics: RequestMetrics,
    table: Table,
}

impl service::DomainStore for MetricsStore {
    fn table(&self) -> &Table {
        &self.table
    }

    fn for_request(&self, _: &Scope) -> Self {
        self.clone()
    }
}

struct GetMetrics;

impl Endpoint for GetMetrics {
    type Store = MetricsStore;
    type Answer = EndpointResponse;

    fn read(_: &Request) -> Result<Self> {
        Ok(Self)
    }

    fn needs(&self) -> Needs {
        Needs::of(Action::Manage, [Target::Any(User)])
    }

    async fn act(self, _: &Scope, store: &MetricsStore) -> Result<EndpointResponse> {
        let mut text = String::new();
        let registry = store.metrics.registry.lock().unwrap_or_else(PoisonError::into_inner);
        encode(&mut text, &registry).map_err(Error::internal)?;
        Ok(EndpointResponse::OtherProtocol {
            status: StatusCode::OK,
            content_type: METRICS_CONTENT_TYPE,
            body: text.into(),
        })
    }
}
