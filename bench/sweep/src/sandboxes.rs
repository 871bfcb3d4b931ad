//! Sandboxes of the tracking function, as Lambda runs them: each answers one call at a time, and keeps what it has leased for itself.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use clock::Moment;
use http::Request;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use rand::RngExt;
use serde_json::Value;
use table::{Meter, Table, Usage};
use tracking::store::Store;

use crate::Result;

/// Where experiments keep artifacts; nothing is kept there.
pub(crate) const ROOT: &str = "s3://bucket/artifacts";

/// All sandboxes there are.
pub(crate) struct Sandboxes {
    table: Table,
    idle: RefCell<Vec<Sandbox>>,
    started: Cell<u32>,
}

struct Sandbox {
    router: Router,
    meter: Meter,
}

/// An answer, and what it took.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    /// When the client is to come back.
    pub(crate) retry_after: Option<Duration>,
    /// What the call consumed.
    pub(crate) usage: Usage,
    /// What the start of its sandbox consumed, if it needed one.
    pub(crate) cold_start: Option<Usage>,
    pub(crate) lasted: Duration,
}

impl Sandboxes {
    pub(crate) fn new(table: Table) -> Self {
        Self { table, idle: RefCell::default(), started: Cell::default() }
    }

    /// How many there are.
    pub(crate) fn started(&self) -> u32 {
        self.started.get()
    }

    /// Posts to a path below `/api/2.0/mlflow/`: any sandbox that is idle answers, or a new one.
    pub(crate) async fn call(&self, path: &str, body: &Value) -> Result<Answer> {
        let begin = Moment::now();
        let (sandbox, cold_start) = match self.take_idle() {
            Some(sandbox) => (sandbox, None),
            None => self.start().await?,
        };
        let request = Request::post(format!("/api/2.0/mlflow/{path}")).header(CONTENT_TYPE, "application/json");
        let request = request.body(Body::from(body.to_string()))?;
        let response = tower::ServiceExt::oneshot(sandbox.router.clone(), request).await?;
        let status = response.status().as_u16();
        let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let body = serde_json::from_slice(&to_bytes(response.into_body(), usize::MAX).await?)?;
        let (usage, lasted) = (sandbox.meter.take(), begin.age());
        self.idle.borrow_mut().push(sandbox);
        let retry_after = seconds.map(Duration::from_secs);
        Ok(Answer { status, body, retry_after, usage, cold_start, lasted })
    }

    fn take_idle(&self) -> Option<Sandbox> {
        let mut idle = self.idle.borrow_mut();
        if idle.is_empty() {
            return None;
        }
        let any = rand::rng().random_range(0..idle.len());
        Some(idle.swap_remove(any))
    }

    async fn start(&self) -> Result<(Sandbox, Option<Usage>)> {
        self.started.set(self.started.get() + 1);
        let meter = Meter::default();
        let table = self.table.metered(meter.clone());
        entities::layout::check(&table).await?;
        let router = tracking::router(&Store::new(table, ROOT));
        let usage = meter.take();
        Ok((Sandbox { router, meter }, Some(usage)))
    }
}
