//! The engine, the set limits, and the counts, which all steps of a request share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::{Value, json};

use super::in_flight::InFlight;
use super::partitions::Partitions;
use super::schema::Schema;
use super::throughput::Direction;
use crate::Engine;
use crate::connector::{InProcess, failed};
use crate::wire::Answer;

/// Time since some beginning.
type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// How many bytes a collection may have, by its partition key.
pub(super) type LimitOf = Arc<dyn Fn(&str) -> Option<usize> + Send + Sync>;

/// An engine within limits. A clone is the same one.
#[derive(Clone)]
pub(super) struct Limited {
    engine: InProcess,
    clock: Clock,
    state: Arc<Mutex<State>>,
    pub(super) in_flight: InFlight,
    /// Another engine, on which it is tried how much a write makes of an item. One write at a time.
    pub(super) scratch: Arc<tokio::sync::Mutex<Option<Limited>>>,
}

/// The set limits, and the counts.
#[derive(Default)]
pub(super) struct State {
    schemas: BTreeMap<String, Arc<Schema>>,
    pub(super) partitions: Partitions,
    pub(super) collection_limit: Option<LimitOf>,
    pub(super) latency: Duration,
}

impl Limited {
    pub(super) fn new(engine: &Engine, clock: Clock) -> Self {
        Self {
            engine: engine.in_process(),
            clock,
            state: Arc::default(),
            in_flight: InFlight::default(),
            scratch: Arc::default(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one operation, whatever the limits say.
    pub(super) async fn run(&self, operation: &str, body: &Value) -> Result<Answer, ConnectorError> {
        let answer = self.engine.call(operation.to_owned(), body.to_string().into_bytes()).await;
        answer.ok_or_else(failed)
    }

    /// The same; the JSON of its answer.
    pub(super) async fn read(&self, operation: &str, body: &Value) -> Result<Value, ConnectorError> {
        read(&self.run(operation, body).await?)
    }

    /// An item as it is; null where there is none.
    pub(super) async fn item(&self, table: &str, key: &Value) -> Result<Value, ConnectorError> {
        let get = json!({ "TableName": table, "Key": key, "ConsistentRead": true });
        Ok(self.read("GetItem", &get).await?["Item"].take())
    }

    /// The schema of a table; an empty one where there is no such table, which the engine then says.
    pub(super) async fn schema(&self, table: &str) -> Result<Arc<Schema>, ConnectorError> {
        if let Some(schema) = self.state().schemas.get(table) {
            return Ok(Arc::clone(schema));
        }
        let answer = self.run("DescribeTable", &json!({ "TableName": table })).await?;
        let schema = Arc::new(Schema::read(&read(&answer)?["Table"]));
        if answer.status == 200 {
            self.state().schemas.insert(table.to_owned(), Arc::clone(&schema));
        }
        Ok(schema)
    }

    /// Whether a partition takes one more request now.
    pub(super) fn admits(&self, partition: &str, direction: Direction) -> bool {
        let now = (self.clock)();
        self.state().partitions.admits(partition, direction, now)
    }

    /// Charges the units that a request consumed.
    pub(super) fn charge(&self, partition: &str, direction: Direction, units: f64) {
        self.state().partitions.charge(partition, direction, units);
    }

    /// Lets a request that holds something last as long as requests do; then it is held no longer.
    pub(super) async fn last<T>(&self, held: T) {
        let latency = self.state().latency;
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        drop(held);
    }
}

/// The JSON of an answer.
pub(super) fn read(answer: &Answer) -> Result<Value, ConnectorError> {
    serde_json::from_str(&answer.body).map_err(|error| ConnectorError::other(error.into(), None))
}
