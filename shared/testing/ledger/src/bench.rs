//! The processes whose calls are metered.

use table::{Meter, Table};

/// A table, and processes over it.
pub struct Bench<S> {
    /// A process whose requests no row counts. It makes the entities that calls act on.
    pub store: S,
    table: Table,
    process: Box<dyn Fn(Table) -> S + Send + Sync>,
}

impl<S> Bench<S> {
    /// A bench over a table; `process` makes the store of a process that has just begun.
    #[must_use]
    pub fn new(table: Table, process: impl Fn(Table) -> S + Send + Sync + 'static) -> Self {
        Self { store: process(table.clone()), table, process: Box::new(process) }
    }

    /// The table, its requests uncounted.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// A process that has just begun, its requests counted.
    pub(crate) fn process(&self, meter: &Meter) -> S {
        (self.process)(self.table.metered(meter.clone()))
    }

    /// Two equal things: one for the cold call, one for the warm.
    pub async fn two<T>(&self, make: impl AsyncFn(&S) -> T) -> [T; 2] {
        [make(&self.store).await, make(&self.store).await]
    }
}
