//! The dependencies of a removal.

use artifact_store::{Archive, ArtifactStore};
use run_index::RunIndex;
use table::Table;

use crate::history_scan::HistoryScans;
use crate::trace_archive::DEFAULT_ARCHIVE_AGE_MS;

/// Permanent deletion of deleted entities. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Retention {
    pub(crate) table: Table,
    /// The index, which deletes the rows that deleted entities leave behind.
    pub(crate) index: RunIndex,
    pub(crate) artifacts: ArtifactStore,
    pub(crate) leaves_artifacts: bool,
    pub(crate) looks: HistoryScans,
    pub(crate) archive: Archive,
    /// Age in ms from which spans are archived. `None` if they are not archived.
    pub(crate) archive_age: Option<i64>,
    pub(crate) archives_histories: bool,
}

impl Retention {
    /// Creates a `Retention` for a table and for the artifacts that this server stores.
    #[must_use]
    pub fn new(table: Table, artifacts: ArtifactStore) -> Self {
        let index = RunIndex::new(table.clone());
        let archive = Archive::new(artifacts.clone());
        let archive_age = Some(DEFAULT_ARCHIVE_AGE_MS);
        Self {
            table,
            index,
            artifacts,
            leaves_artifacts: false,
            looks: HistoryScans::AtAll,
            archive,
            archive_age,
            archives_histories: false,
        }
    }

    /// Makes removals also delete entities whose artifacts this server cannot access. Their
    /// artifacts are left in place.
    #[must_use]
    pub fn leaving_artifacts(self, leaves_artifacts: bool) -> Self {
        Self { leaves_artifacts, ..self }
    }

    /// Makes the removal archive long metric histories, and delete archived ones that expire. Must
    /// only be used for a table whose layout supports it, because earlier versions cannot read
    /// archived histories.
    #[must_use]
    pub fn archiving_histories(self, archives_histories: bool) -> Self {
        Self { archives_histories, ..self }
    }

    /// Replaces the archive, which is next to the artifacts by default. For tests.
    #[must_use]
    pub fn with_archive(self, archive: Archive) -> Self {
        Self { archive, ..self }
    }

    /// Sets the age, in ms, from which the spans of traces are archived. With `None`, they are not
    /// archived.
    #[must_use]
    pub fn archiving_after(self, archive_age: Option<i64>) -> Self {
        Self { archive_age, ..self }
    }

    /// Limits which experiments are checked at a time for traces to be archived, and which runs are
    /// scanned for expired histories.
    #[must_use]
    pub fn looking(self, looks: HistoryScans) -> Self {
        Self { looks, ..self }
    }
}
