//! A table, and the ways to it.

use std::time::Duration;

use embedded_engine::Engine;
use embedded_engine::faults::FaultInjector;
use serde_json::Value;
use table::{Retry, Table};

use crate::dump::{self, Changes, Dump};

/// Where the functions of tests keep artifacts.
pub const ROOT: &str = "s3://bucket/artifacts";
/// The name of every site's table.
pub const TABLE: &str = "mlflow";

/// A table of its own in memory.
#[derive(Clone, Debug)]
pub struct Site {
    /// The engine with the table.
    pub engine: Engine,
    /// Faults for requests by [`faulty`](Self::faulty) and [`impatient`](Self::impatient).
    pub faults: FaultInjector,
    /// The table without faults.
    pub table: Table,
}

impl Site {
    /// A site with an empty table that has no stream.
    pub async fn new() -> Self {
        let site = Self::with_stream().await;
        site.engine.end_stream(TABLE).await.unwrap();
        site
    }

    /// A site with an empty table, and a stream that can be read.
    pub async fn with_stream() -> Self {
        let engine = Engine::memory().unwrap();
        let table = Table::new(engine.client(), TABLE);
        table.create_if_missing().await.unwrap();
        let faults = FaultInjector::new(engine.http_client());
        Self { engine, faults, table }
    }

    /// A copy as it is now, which meets no fault yet.
    #[must_use]
    pub fn copy(&self) -> Self {
        let engine = self.engine.snapshot().unwrap();
        let faults = FaultInjector::new(engine.http_client());
        Self { table: Table::new(engine.client(), TABLE), engine, faults }
    }

    /// The table; requests meet the faults. Throttled ones are tried as often as others: of many that are sent at once, one may meet a
    /// fault that comes every so many calls several times in a row.
    pub fn faulty(&self) -> Table {
        let retry = Retry { first_throttled_pause: Retry::default().first_pause, ..Retry::default().in_background() };
        Table::new(self.faults.client(), TABLE).with_retry(retry)
    }

    /// The same for those who give up after two attempts.
    pub fn impatient(&self) -> Table {
        let pause = Duration::from_millis(1);
        self.faulty().with_retry(Retry {
            attempts: 2,
            first_pause: pause,
            longest_pause: pause,
            ..self.faulty().retry()
        })
    }

    /// All items, as DynamoDB writes them. None has an attribute that its row does not declare.
    pub async fn items(&self) -> Vec<Value> {
        let items = self.engine.items(TABLE).await.unwrap();
        dump::check_declared(&items);
        items
    }

    /// The same by their keys, without values that differ where a write was repeated.
    pub async fn dump(&self) -> Dump {
        dump::dump(self.items().await)
    }

    /// The changes since this state.
    pub async fn changes(&self, before: &Dump) -> Changes {
        dump::changes(self.engine.items(TABLE).await.unwrap(), before)
    }
}
