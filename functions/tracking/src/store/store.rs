//! The store, and how it is configured.

use std::sync::Arc;
use std::time::Duration;

use access::{AuthorizerWrites, Scope};
use artifact_store::{Archive, ArtifactStore};
use entities::SegmentEncoding;
use entities::experiments::ExperimentLeases;
use entities::trace_archival::TraceArchivalCache;
use mlflow_api::skills::ContentLimits;
use run_index::IndexedFieldsCache;
use table::Table;

use crate::store::run::{MAX_DOCUMENT_POINT_BYTES, RunCache};
use crate::store::run_search::SearchBounds;
use crate::store::shown_archival::ShownArchival;

/// The tracking store. Cheap to clone. A process has one.
#[derive(Clone)]
pub struct Store {
    pub(super) table: Table,
    pub(super) artifact_root: Arc<str>,
    pub(super) artifacts: ArtifactStore,
    pub(super) archive: Archive,
    pub(super) working_directory: Option<Arc<str>>,
    pub(super) experiments: ExperimentLeases,
    pub(super) logged_runs: RunCache,
    pub(super) points_in_document: usize,
    pub(super) segments: SegmentEncoding,
    pub(super) indexed_fields: IndexedFieldsCache,
    pub(super) search_bounds: SearchBounds,
    pub(super) authorizer_writes: AuthorizerWrites,
    pub(super) has_workspaces: bool,
    pub(super) skill_limits: ContentLimits,
    pub(super) trace_archival: TraceArchivalCache,
    pub(super) shown_archival: Option<ShownArchival>,
}

impl Store {
    /// Creates a store over the table. The artifacts of experiments that have no separate artifact
    /// location are stored below `artifact_root`.
    #[must_use]
    pub fn new(table: Table, artifact_root: &str) -> Self {
        Self::with_lease(table, artifact_root, entities::experiments::LEASE_DURATION)
    }

    /// Creates a store with leases of the given length. All processes that share a table must use
    /// the same length.
    #[must_use]
    pub fn with_lease(table: Table, artifact_root: &str, lease: Duration) -> Self {
        Self {
            experiments: ExperimentLeases::new(table.clone(), lease),
            logged_runs: RunCache::new(lease),
            points_in_document: MAX_DOCUMENT_POINT_BYTES,
            segments: SegmentEncoding::default(),
            indexed_fields: IndexedFieldsCache::new(table.clone()),
            trace_archival: TraceArchivalCache::new(table.clone()),
            shown_archival: None,
            table,
            artifact_root: artifact_root.into(),
            artifacts: ArtifactStore::below(artifact_root),
            archive: Archive::new(ArtifactStore::below(artifact_root)),
            working_directory: None,
            search_bounds: SearchBounds::default(),
            authorizer_writes: AuthorizerWrites::nothing(),
            has_workspaces: false,
            skill_limits: ContentLimits::MLFLOW,
        }
    }

    /// Returns the store, resolving relative artifact locations against this directory. Without a
    /// directory, relative locations are rejected.
    #[must_use]
    pub fn in_directory(self, directory: &str) -> Self {
        Self { working_directory: Some(directory.into()), ..self }
    }

    /// Returns the store with this artifact storage, independent of its artifact root. The archive
    /// is in the same place.
    #[must_use]
    pub fn with_artifacts(self, artifacts: ArtifactStore) -> Self {
        Self { archive: Archive::new(artifacts.clone()), artifacts, ..self }
    }

    /// Returns the store with another archive. For tests of archived histories.
    #[must_use]
    pub fn with_archive(self, archive: Archive) -> Self {
        Self { archive, ..self }
    }

    /// Returns the store, configured for a server that has workspaces.
    #[must_use]
    pub fn in_workspaces(self) -> Self {
        Self { has_workspaces: true, ..self }
    }

    /// Returns the store of a server that has these limits on the content of skills. The store does
    /// not enforce them; `server-info` reports them.
    #[must_use]
    pub fn with_skill_limits(self, skill_limits: ContentLimits) -> Self {
        Self { skill_limits, ..self }
    }

    /// Returns the limits on the content of skills that `server-info` reports.
    #[must_use]
    pub fn skill_limits(&self) -> ContentLimits {
        self.skill_limits
    }

    /// Checks whether the server has workspaces other than the default one.
    #[must_use]
    pub fn has_workspaces(&self) -> bool {
        self.has_workspaces
    }

    /// Returns the store with the given limit, in bytes, on the points in a run's document. Points
    /// beyond it go into the run's journal. For tests of the journal.
    #[must_use]
    pub fn with_points_in_document(self, bytes: usize) -> Self {
        Self { points_in_document: bytes, ..self }
    }

    /// Returns the store for a table with this layout, which is the current one by default.
    #[must_use]
    pub fn with_layout(self, layout: i64) -> Self {
        Self { segments: SegmentEncoding::of_layout(layout), ..self }
    }

    /// Returns the store with other bounds, which decide when an experiment is considered long. For
    /// tests of searches.
    #[must_use]
    pub fn with_search_bounds(self, bounds: SearchBounds) -> Self {
        Self { search_bounds: bounds, ..self }
    }

    /// Returns the directory that relative locations are resolved against, if it may be revealed to
    /// clients.
    #[must_use]
    pub fn working_directory(&self) -> Option<&str> {
        self.working_directory.as_deref()
    }

    /// Returns the artifact storage that this server manages.
    #[must_use]
    pub fn artifacts(&self) -> &ArtifactStore {
        &self.artifacts
    }

    /// Returns the server's artifact root.
    #[must_use]
    pub fn artifact_root(&self) -> &str {
        &self.artifact_root
    }
}

impl service::DomainStore for Store {
    fn table(&self) -> &Table {
        &self.table
    }

    fn for_request(&self, scope: &Scope) -> Self {
        Self { authorizer_writes: scope.authorizer_writes().clone(), ..self.clone() }
    }
}
