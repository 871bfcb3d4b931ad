//! The store.

use std::time::Duration;

use artifact_store::Artifacts;
use experiments::Experiments;
use table::Table;

use super::known::Known;

/// The traces domain's store. Cheap to clone; one a process.
#[derive(Clone)]
pub struct Store {
    pub(super) table: Table,
    pub(super) experiments: Experiments,
    pub(super) known: Known,
    artifacts: Artifacts,
}

impl Store {
    /// A store over the table, for traces whose artifacts are kept here.
    #[must_use]
    pub fn new(table: Table, artifacts: Artifacts) -> Self {
        Self::with_lease(table, artifacts, experiments::LEASE)
    }

    /// A store whose leases on experiments are of another length; every process on one table needs the same.
    #[must_use]
    pub fn with_lease(table: Table, artifacts: Artifacts, lease: Duration) -> Self {
        Self { experiments: Experiments::new(table.clone(), lease), table, known: Known::default(), artifacts }
    }

    /// The same over a table that counts what is read.
    pub(super) fn over(&self, table: Table) -> Self {
        Self { table, ..self.clone() }
    }

    /// Where artifacts are kept.
    #[must_use]
    pub fn artifacts(&self) -> &Artifacts {
        &self.artifacts
    }
}

impl service::Store for Store {
    fn table(&self) -> &Table {
        &self.table
    }
}
