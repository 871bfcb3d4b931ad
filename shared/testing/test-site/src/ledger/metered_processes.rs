//! The processes whose calls are metered.

use embedded_engine::Engine;
use table::{Table, UsageMeter};

/// A table, and the processes that use it.
pub struct MeteredProcesses<S> {
    /// A process whose requests are not counted. It creates the entities that calls act on.
    pub store: S,
    table: Table,
    process: Box<dyn Fn(Table) -> S + Send + Sync>,
}

impl<S> MeteredProcesses<S> {
    /// Creates the processes of a table. `process` creates the store of a newly started process.
    #[must_use]
    pub fn new(table: Table, process: impl Fn(Table) -> S + Send + Sync + 'static) -> Self {
        Self { store: process(table.clone()), table, process: Box::new(process) }
    }

    /// Creates the processes of an empty table in memory, like [`new`](Self::new).
    pub async fn in_memory(process: impl Fn(Table) -> S + Send + Sync + 'static) -> Self {
        let engine = Engine::memory().unwrap();
        let table = Table::new(engine.client(), "capacity");
        table.create_if_missing().await.unwrap();
        engine.end_stream("capacity").await.unwrap();
        Self::new(table, process)
    }

    /// Returns the table, without counting its requests.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Starts a process whose requests are counted.
    pub(crate) fn process(&self, meter: &UsageMeter) -> S {
        (self.process)(self.table.metered(meter.clone()))
    }

    /// Creates two equal entities: one for the cold call, and one for the warm call.
    pub async fn two<T>(&self, make: impl AsyncFn(&S) -> T) -> [T; 2] {
        [make(&self.store).await, make(&self.store).await]
    }
}
