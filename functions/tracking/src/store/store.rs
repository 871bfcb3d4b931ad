//! The store.

use std::sync::Arc;
use std::time::Duration;

use access::Along;
use artifact_store::Artifacts;
use experiments::Experiments;
use run_index::IndexedFieldsCache;
use table::Table;

use crate::store::run::{LoggedRuns, POINTS_IN_DOCUMENT};
use crate::store::run_search::SearchBounds;

/// The tracking store. Cheap to clone; one a process.
#[derive(Clone)]
pub struct Store {
    pub(super) table: Table,
    pub(super) artifact_root: Arc<str>,
    pub(super) artifacts: Artifacts,
    pub(super) working_directory: Option<Arc<str>>,
    pub(super) experiments: Experiments,
    pub(super) logged_runs: LoggedRuns,
    pub(super) points_in_document: usize,
    pub(super) indexed_fields: IndexedFieldsCache,
    pub(super) search_bounds: SearchBounds,
    pub(super) along: Along,
    pub(super) has_workspaces: bool,
}

impl Store {
    /// A store over the table. Experiments without a location of their own keep their artifacts below `artifact_root`.
    #[must_use]
    pub fn new(table: Table, artifact_root: &str) -> Self {
        Self::with_lease(table, artifact_root, experiments::LEASE)
    }

    /// A store whose leases are of another length; every process on one table needs the same.
    #[must_use]
    pub fn with_lease(table: Table, artifact_root: &str, lease: Duration) -> Self {
        Self {
            experiments: Experiments::new(table.clone(), lease),
            logged_runs: LoggedRuns::new(lease),
            points_in_document: POINTS_IN_DOCUMENT,
            indexed_fields: IndexedFieldsCache::new(table.clone()),
            table,
            artifact_root: artifact_root.into(),
            artifacts: Artifacts::below(artifact_root),
            working_directory: None,
            search_bounds: SearchBounds::default(),
            along: Along::nothing(),
            has_workspaces: false,
        }
    }

    /// The same store, where relative artifact locations are meant against this directory. Without one, they are refused.
    #[must_use]
    pub fn in_directory(self, directory: &str) -> Self {
        Self { working_directory: Some(directory.into()), ..self }
    }

    /// The same store for one request. Its authorizer adds writes of its own to those that create
    /// or delete entities.
    #[must_use]
    pub fn along(&self, along: &Along) -> Self {
        Self { along: along.clone(), ..self.clone() }
    }

    /// The same store, where the server keeps artifacts here, whatever its artifact root is.
    #[must_use]
    pub fn with_artifacts(self, artifacts: Artifacts) -> Self {
        Self { artifacts, ..self }
    }

    /// The same store of a server that has workspaces.
    #[must_use]
    pub fn in_workspaces(self) -> Self {
        Self { has_workspaces: true, ..self }
    }

    /// Whether the server has workspaces other than the default one.
    #[must_use]
    pub fn has_workspaces(&self) -> bool {
        self.has_workspaces
    }

    /// The same store, where a run's document takes so many bytes of points before further ones go into its journal: for tests of that.
    #[must_use]
    pub fn with_points_in_document(self, bytes: usize) -> Self {
        Self { points_in_document: bytes, ..self }
    }

    /// The same store, where other experiments count as long: for tests of searches.
    #[must_use]
    pub fn with_search_bounds(self, bounds: SearchBounds) -> Self {
        Self { search_bounds: bounds, ..self }
    }

    /// The directory that relative locations are resolved against, if clients may know it.
    #[must_use]
    pub fn working_directory(&self) -> Option<&str> {
        self.working_directory.as_deref()
    }

    /// The artifacts that the server keeps itself.
    #[must_use]
    pub fn artifacts(&self) -> &Artifacts {
        &self.artifacts
    }

    /// The server's artifact root.
    #[must_use]
    pub fn artifact_root(&self) -> &str {
        &self.artifact_root
    }
}

impl service::Store for Store {
    fn table(&self) -> &Table {
        &self.table
    }
}
