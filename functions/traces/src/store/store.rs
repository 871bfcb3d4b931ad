//! The store.

use std::time::Duration;

use access::Scope;
use artifact_store::Artifacts;
use experiments::{Experiments, KeptTraces};
use mlflow_api::Result;
use table::Table;

use super::known::Known;

/// The traces domain's store. Cheap to clone; one a process.
#[derive(Clone)]
pub struct Store {
    pub(super) table: Table,
    pub(super) experiments: Experiments,
    pub(super) known: Known,
    pub(super) kept: KeptTraces,
    artifacts: Artifacts,
    /// Whether marks say how many bytes of spans came with them, for those who count that.
    pub(super) counts_bytes: bool,
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
        Self {
            experiments: Experiments::new(table.clone(), lease),
            kept: KeptTraces::new(table.clone()),
            table,
            known: Known::default(),
            artifacts,
            counts_bytes: false,
        }
    }

    /// The same store of a server that has workspaces, whose usage is counted.
    #[must_use]
    pub fn in_workspaces(self) -> Self {
        Self { counts_bytes: true, ..self }
    }

    /// The same store, which has read how long traces are kept. One request.
    ///
    /// # Errors
    /// Those of the table.
    pub async fn prepared(self) -> Result<Self> {
        self.kept.since([]).await?;
        Ok(self)
    }

    /// The same store, which shares another's cache of how long traces are kept.
    #[must_use]
    pub fn knowing(self, other: &Self) -> Self {
        Self { kept: other.kept.clone(), ..self }
    }

    /// The same over a table that counts its reads.
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

    fn for_request(&self, _: &Scope) -> Self {
        self.clone()
    }

    /// Leaves out traces that are kept no longer, whether or not they were removed. No request, or one a minute.
    async fn only_shown(&self, scope: Scope) -> Result<Scope> {
        let experiments: Vec<_> = scope.traces().map(entities::StoredTrace::experiment).collect();
        if experiments.is_empty() {
            return Ok(scope);
        }
        let kept = self.kept.since(experiments).await?;
        Ok(scope.only_traces(|trace| kept.has(trace)))
    }
}
