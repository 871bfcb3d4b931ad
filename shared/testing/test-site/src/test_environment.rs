//! A table for tests, with handles to it.

use std::time::Duration;

use embedded_engine::Engine;
use embedded_engine::faults::FaultInjector;
use serde_json::Value;
use table::{RetryPolicy, Table};

use crate::dump::{self, TableChanges, TableDump};

/// Artifact root of functions in tests.
pub const ROOT: &str = "s3://bucket/artifacts";
/// Name of the table in every test environment.
pub const TABLE: &str = "mlflow";

/// A private table in memory, with the means to inject faults into requests to it.
#[derive(Clone, Debug)]
pub struct TestEnvironment {
    /// The engine that stores the table.
    pub engine: Engine,
    /// Injects faults into requests through [`faulty`](Self::faulty) and
    /// [`impatient`](Self::impatient).
    pub faults: FaultInjector,
    /// A handle to the table that is not subject to faults.
    pub table: Table,
}

impl TestEnvironment {
    /// Creates an environment with an empty table that has no stream.
    pub async fn new() -> Self {
        let site = Self::with_stream().await;
        site.engine.end_stream(TABLE).await.unwrap();
        site
    }

    /// Creates an environment with an empty table and a readable stream.
    pub async fn with_stream() -> Self {
        let engine = Engine::memory().unwrap();
        let table = Table::new(engine.client(), TABLE);
        table.create_if_missing().await.unwrap();
        let faults = FaultInjector::new(engine.http_client());
        Self { engine, faults, table }
    }

    /// Returns a copy of the environment in its current state, without any faults.
    #[must_use]
    pub fn copy(&self) -> Self {
        let engine = self.engine.snapshot().unwrap();
        let faults = FaultInjector::new(engine.http_client());
        Self { table: Table::new(engine.client(), TABLE), engine, faults }
    }

    /// Returns a handle to the table whose requests are subject to the injected faults. Throttled
    /// requests are retried as often as requests with other failures. Otherwise, many concurrent
    /// requests could fail: if every `n`th request is throttled, one of them may be hit several
    /// times in a row.
    pub fn faulty(&self) -> Table {
        let retry = RetryPolicy {
            first_throttled_pause: RetryPolicy::default().first_pause,
            ..RetryPolicy::default().in_background()
        };
        Table::new(self.faults.client(), TABLE).with_retry(retry)
    }

    /// Returns a handle to the table whose requests are subject to the injected faults, and give up
    /// after two attempts.
    pub fn impatient(&self) -> Table {
        let pause = Duration::from_millis(1);
        self.faulty().with_retry(RetryPolicy {
            attempts: 2,
            first_pause: pause,
            longest_pause: pause,
            ..self.faulty().retry()
        })
    }

    /// Returns all items as DynamoDB's JSON. Checks that they only have attributes that their rows
    /// declare.
    pub async fn items(&self) -> Vec<Value> {
        let items = self.engine.items(TABLE).await.unwrap();
        dump::check_declared(&items);
        items
    }

    /// Returns all items by their keys, without values that differ if a write is repeated.
    pub async fn dump(&self) -> TableDump {
        dump::dump(self.items().await)
    }

    /// Returns the changes between a previous dump of the table and its current items.
    pub async fn changes(&self, before: &TableDump) -> TableChanges {
        dump::changes(self.engine.items(TABLE).await.unwrap(), before)
    }
}
