//! The dependencies of a removal.

use artifact_store::ArtifactStore;
use run_index::RunIndex;
use table::Table;

use crate::history_scan::HistoryScans;

/// Permanent deletion of deleted entities. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Retention {
    pub(crate) table: Table,
    /// The index, which deletes the rows that deleted entities leave behind.
    pub(crate) index: RunIndex,
    pub(crate) artifacts: ArtifactStore,
    pub(crate) leaves_artifacts: bool,
    pub(crate) looks: HistoryScans,
}

impl Retention {
    /// Creates a `Retention` for a table and for the artifacts that this server stores.
    #[must_use]
    pub fn new(table: Table, artifacts: ArtifactStore) -> Self {
        let index = RunIndex::new(table.clone());
        Self { table, index, artifacts, leaves_artifacts: false, looks: HistoryScans::AtAll }
    }

    /// Makes removals also delete entities whose artifacts this server cannot access. Their
    /// artifacts are left in place.
    #[must_use]
    pub fn leaving_artifacts(self, leaves_artifacts: bool) -> Self {
        Self { leaves_artifacts, ..self }
    }

    /// Limits which runs are scanned for expired histories.
    #[must_use]
    pub fn looking(self, looks: HistoryScans) -> Self {
        Self { looks, ..self }
    }
}
