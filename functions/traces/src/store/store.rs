//! The traces store, and how it is configured.

use std::time::Duration;

use access::Scope;
use artifact_store::{Archive, ArtifactStore};
use entities::experiments::ExperimentLeases;
use entities::layout::POINTER_LAYOUT;
use entities::trace_retention::TraceRetentionCache;
use mlflow_api::Result;
use table::Table;

use super::trace_cache::TraceCache;

/// The store of the traces domain. Cheap to clone. Each process has one.
#[derive(Clone)]
pub struct Store {
    pub(super) table: Table,
    pub(super) experiments: ExperimentLeases,
    pub(super) trace_cache: TraceCache,
    pub(super) retention_cache: TraceRetentionCache,
    artifacts: ArtifactStore,
    /// Where the spans of archived traces are stored.
    pub(super) archive: Archive,
    /// Whether marks record the size of the spans that are written with them. The sizes are used
    /// for counting usage.
    pub(super) counts_bytes: bool,
    /// Whether the spans of a new trace may be stored in its mark, which earlier layouts do not have.
    pub(super) writes_marked_spans: bool,
}

impl Store {
    /// Returns a store over the table. `artifacts` is where the files of traces are stored.
    #[must_use]
    pub fn new(table: Table, artifacts: ArtifactStore) -> Self {
        Self::with_lease(table, artifacts, entities::experiments::LEASE_DURATION)
    }

    /// Returns a store whose leases on experiments have the given length. All processes that share
    /// a table must use the same length.
    #[must_use]
    pub fn with_lease(table: Table, artifacts: ArtifactStore, lease: Duration) -> Self {
        Self {
            experiments: ExperimentLeases::new(table.clone(), lease),
            retention_cache: TraceRetentionCache::new(table.clone()),
            table,
            trace_cache: TraceCache::default(),
            archive: Archive::new(artifacts.clone()),
            artifacts,
            counts_bytes: false,
            writes_marked_spans: true,
        }
    }

    /// Replaces the archive, which is next to the artifacts by default. For tests.
    #[must_use]
    pub fn with_archive(self, archive: Archive) -> Self {
        Self { archive, ..self }
    }

    /// Returns the store for a table with this layout, which is the current one by default.
    #[must_use]
    pub fn with_layout(self, layout: i64) -> Self {
        Self { writes_marked_spans: layout >= POINTER_LAYOUT, ..self }
    }

    /// Makes the store record the sizes of spans, because usage is counted per workspace.
    #[must_use]
    pub fn in_workspaces(self) -> Self {
        Self { counts_bytes: true, ..self }
    }

    /// Reads the retention policies of traces into the cache. Takes one request.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn prepared(self) -> Result<Self> {
        self.retention_cache.since([]).await?;
        Ok(self)
    }

    /// Shares another store's cache of retention policies.
    #[must_use]
    pub fn with_retention_cache_of(self, other: &Self) -> Self {
        Self { retention_cache: other.retention_cache.clone(), ..self }
    }

    /// Returns a copy of the store that accesses the table through a handle that counts its reads.
    pub(super) fn with_table(&self, table: Table) -> Self {
        Self { table, ..self.clone() }
    }

    /// Returns the location of artifacts.
    #[must_use]
    pub fn artifacts(&self) -> &ArtifactStore {
        &self.artifacts
    }
}

impl service::DomainStore for Store {
    fn table(&self) -> &Table {
        &self.table
    }

    fn for_request(&self, _: &Scope) -> Self {
        self.clone()
    }

    /// Removes expired traces from the scope, even if they have not been deleted yet. Takes at most
    /// one request per minute.
    async fn hide_expired(&self, scope: Scope) -> Result<Scope> {
        let experiments: Vec<_> = scope.traces().map(entities::LocatedTrace::experiment).collect();
        if experiments.is_empty() {
            return Ok(scope);
        }
        let kept = self.retention_cache.since(experiments).await?;
        Ok(scope.retain_traces(|trace| kept.has_located(trace)))
    }
}
