//! The store.

use std::time::Duration;

use access::Along;
use experiments::Experiments;
use table::Table;

/// The evaluation domain's store. Cheap to clone; one a process.
#[derive(Clone)]
pub struct Store {
    pub(super) table: Table,
    pub(super) experiments: Experiments,
    pub(super) along: Along,
}

impl Store {
    /// A store over the table.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self::with_lease(table, experiments::LEASE)
    }

    /// A store whose leases on experiments are of another length; every process on one table needs the same.
    #[must_use]
    pub fn with_lease(table: Table, lease: Duration) -> Self {
        Self { experiments: Experiments::new(table.clone(), lease), table, along: Along::nothing() }
    }

    /// The same store for one request. Its authorizer adds writes of its own to those that create
    /// or delete entities.
    #[must_use]
    pub fn along(&self, along: &Along) -> Self {
        Self { along: along.clone(), ..self.clone() }
    }
}

impl service::Store for Store {
    fn table(&self) -> &Table {
        &self.table
    }
}
