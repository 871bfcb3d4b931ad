//! The engine with its limits and counters, shared by all steps of a request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::{Value, json};

use super::in_flight::InFlight;
use super::partitions::Partitions;
use super::schema::TableKeys;
use super::throughput::CapacityKind;
use crate::Engine;
use crate::aws_json::EngineResponse;
use crate::connector::{InProcessEngine, failed};

/// A clock: the time since an arbitrary start.
type LimitClock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// A function that returns the maximum size of a collection in bytes, given its partition key, or
/// `None` for no limit.
pub(super) type CollectionLimit = Arc<dyn Fn(&str) -> Option<usize> + Send + Sync>;

/// An engine within limits. Clones share the same engine and limits.
#[derive(Clone)]
pub(super) struct LimitedEngine {
    engine: InProcessEngine,
    clock: LimitClock,
    state: Arc<Mutex<LimitState>>,
    pub(super) in_flight: InFlight,
    /// Another engine, where writes are tried in order to measure the resulting items. Used by one
    /// write at a time.
    pub(super) scratch: Arc<tokio::sync::Mutex<Option<LimitedEngine>>>,
}

/// The configured limits, and the counters.
#[derive(Default)]
pub(super) struct LimitState {
    schemas: BTreeMap<String, Arc<TableKeys>>,
    pub(super) partitions: Partitions,
    pub(super) collection_limit: Option<CollectionLimit>,
    pub(super) latency: Duration,
}

impl LimitedEngine {
    pub(super) fn new(engine: &Engine, clock: LimitClock) -> Self {
        Self {
            engine: engine.in_process(),
            clock,
            state: Arc::default(),
            in_flight: InFlight::default(),
            scratch: Arc::default(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, LimitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one operation, regardless of the limits.
    pub(super) async fn run(&self, operation: &str, body: &Value) -> Result<EngineResponse, ConnectorError> {
        let answer = self.engine.call(operation.to_owned(), body.to_string().into_bytes()).await;
        answer.ok_or_else(failed)
    }

    /// Runs one operation, regardless of the limits, and returns the JSON of its response.
    pub(super) async fn read(&self, operation: &str, body: &Value) -> Result<Value, ConnectorError> {
        read(&self.run(operation, body).await?)
    }

    /// Returns the current item. Null if it does not exist.
    pub(super) async fn item(&self, table: &str, key: &Value) -> Result<Value, ConnectorError> {
        let get = json!({ "TableName": table, "Key": key, "ConsistentRead": true });
        Ok(self.read("GetItem", &get).await?["Item"].take())
    }

    /// Returns the schema of a table. If there is no such table, the schema is empty, so that the
    /// engine reports the error.
    pub(super) async fn schema(&self, table: &str) -> Result<Arc<TableKeys>, ConnectorError> {
        if let Some(schema) = self.state().schemas.get(table) {
            return Ok(Arc::clone(schema));
        }
        let answer = self.run("DescribeTable", &json!({ "TableName": table })).await?;
        let schema = Arc::new(TableKeys::read(&read(&answer)?["Table"]));
        if answer.status == 200 {
            self.state().schemas.insert(table.to_owned(), Arc::clone(&schema));
        }
        Ok(schema)
    }

    /// Checks whether a partition admits another request now.
    pub(super) fn admits(&self, partition: &str, direction: CapacityKind) -> bool {
        let now = (self.clock)();
        self.state().partitions.admits(partition, direction, now)
    }

    /// Charges the units that a request has consumed.
    pub(super) fn charge(&self, partition: &str, direction: CapacityKind, units: f64) {
        self.state().partitions.charge(partition, direction, units);
    }

    /// Keeps `held` for the configured duration of a write, and then drops it.
    pub(super) async fn last<T>(&self, held: T) {
        let latency = self.state().latency;
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        drop(held);
    }
}

/// Parses the JSON of a response.
pub(super) fn read(answer: &EngineResponse) -> Result<Value, ConnectorError> {
    serde_json::from_str(&answer.body).map_err(|error| ConnectorError::other(error.into(), None))
}
