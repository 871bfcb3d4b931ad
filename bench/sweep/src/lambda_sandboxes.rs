//! The sandboxes of a function. As in Lambda, each sandbox serves one call at a time and holds its
//! own leases.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use access::{AllowAll, Authorizer};
use artifact_store::ArtifactStore;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use http::Request;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use rand::RngExt;
use runtime::clock::Moment;
use serde_json::Value;
use table::{ConsumedUnits, Table, UsageMeter};

use crate::Result;
use crate::compute::{CpuRule, measured};

/// Artifact root of the experiments. The model stores no artifacts there.
pub(crate) const ARTIFACT_ROOT: &str = "s3://bucket/artifacts";

/// Returns an authorizer that allows everything, because the load model has no users.
fn authorizer() -> Arc<dyn Authorizer> {
    Arc::new(AllowAll)
}

/// Returns the router of the tracking function.
pub(crate) fn tracking(table: Table) -> Router {
    ::tracking::router(&::tracking::store::Store::new(table, ARTIFACT_ROOT), authorizer())
}

/// Returns the router of the traces function.
pub(crate) fn traces(table: Table) -> Router {
    ::traces::router(&::traces::store::Store::new(table, ArtifactStore::below(ARTIFACT_ROOT)), authorizer())
}

/// A call by a client.
#[derive(Clone, Debug)]
pub(crate) struct ClientCall {
    /// Full path.
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    /// Id of the experiment, for calls that pass it in a header.
    pub(crate) experiment: Option<String>,
    pub(crate) body: Bytes,
}

impl ClientCall {
    /// Returns a call with a JSON body to a path below `/api/2.0/mlflow/`.
    pub(crate) fn json(path: &str, body: &Value) -> Self {
        let (path, body) = (format!("/api/2.0/mlflow/{path}"), Bytes::from(body.to_string()));
        Self { path, content_type: "application/json", experiment: None, body }
    }

    fn request(&self) -> Result<Request<Body>> {
        let request = Request::post(&self.path).header(CONTENT_TYPE, self.content_type);
        let named = self.experiment.iter();
        let request = named.fold(request, |request, name| request.header("x-mlflow-experiment-id", name));
        Ok(request.body(Body::from(self.body.clone()))?)
    }
}

/// All sandboxes of a function.
pub(crate) struct LambdaSandboxes {
    table: Table,
    function: fn(Table) -> Router,
    rule: CpuRule,
    /// Memory of the function, in MB.
    memory: u32,
    idle: RefCell<Vec<Sandbox>>,
    started: Cell<u32>,
}

struct Sandbox {
    router: Router,
    meter: UsageMeter,
}

/// A response, with the cost and duration of the call.
pub(crate) struct CallResponse {
    pub(crate) status: u16,
    pub(crate) body: Value,
    /// How long the response asks the client to wait before a retry.
    pub(crate) retry_after: Option<Duration>,
    /// Consumption of the call.
    pub(crate) usage: ConsumedUnits,
    /// Consumption of the start of the sandbox, if a new one was needed.
    pub(crate) cold_start: Option<ConsumedUnits>,
    pub(crate) lasted: Duration,
    /// Processor time that this machine spent on the call.
    pub(crate) computed: Duration,
}

impl LambdaSandboxes {
    pub(crate) fn new(table: Table, function: fn(Table) -> Router, rule: CpuRule, memory: u32) -> Self {
        Self { table, function, rule, memory, idle: RefCell::default(), started: Cell::default() }
    }

    /// Returns the number of sandboxes that were started.
    pub(crate) fn started(&self) -> u32 {
        self.started.get()
    }

    /// Calls any idle sandbox, or starts a new one.
    pub(crate) async fn call(&self, asked: &ClientCall) -> Result<CallResponse> {
        let begin = Moment::now();
        let (sandbox, cold_start) = match self.take_idle() {
            Some(sandbox) => (sandbox, None),
            None => self.start().await?,
        };
        let answered = tower::ServiceExt::oneshot(sandbox.router.clone(), asked.request()?);
        let (response, computed) = measured(answered).await;
        let response = response?;
        let status = response.status().as_u16();
        let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let is_json = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
        let body = to_bytes(response.into_body(), usize::MAX).await?;
        let body = if is_json { serde_json::from_slice(&body)? } else { Value::Null };
        let usage = sandbox.meter.take();
        runtime::clock::sleep(self.rule.slowed(self.rule.of_call(&usage), self.memory)).await;
        let lasted = begin.age();
        self.idle.borrow_mut().push(sandbox);
        let retry_after = seconds.map(Duration::from_secs);
        Ok(CallResponse { status, body, retry_after, usage, cold_start, lasted, computed })
    }

    fn take_idle(&self) -> Option<Sandbox> {
        let mut idle = self.idle.borrow_mut();
        if idle.is_empty() {
            return None;
        }
        let any = rand::rng().random_range(0..idle.len());
        Some(idle.swap_remove(any))
    }

    async fn start(&self) -> Result<(Sandbox, Option<ConsumedUnits>)> {
        self.started.set(self.started.get() + 1);
        let meter = UsageMeter::default();
        let table = self.table.metered(meter.clone());
        entities::layout::check(&table).await?;
        let router = (self.function)(table);
        let usage = meter.take();
        Ok((Sandbox { router, meter }, Some(usage)))
    }
}
