//! The dependencies of a removal.

use artifact_store::{Archive, ArtifactStore};
use entities::layout::POINTER_LAYOUT;
use entities::trace_archival::TraceArchivalCache;
use run_index::RunIndex;
use table::Table;

use crate::history_scan::HistoryScans;

/// The age from which spans are archived.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ArchiveAge {
    /// The settings define the age.
    OfSettings,
    /// An age in ms, or `None` if spans are not archived.
    Fixed(Option<i64>),
}

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
    /// The settings for the archival of traces.
    pub(crate) trace_archival: TraceArchivalCache,
    pub(crate) archive_age: ArchiveAge,
    /// Whether the table's layout permits archived data.
    pub(crate) may_archive: bool,
    /// Whether long metric histories are archived.
    pub(crate) archives_histories: bool,
}

impl Retention {
    /// Creates a `Retention` for a table and for the artifacts that this server stores.
    #[must_use]
    pub fn new(table: Table, artifacts: ArtifactStore) -> Self {
        let index = RunIndex::new(table.clone());
        let archive = Archive::new(artifacts.clone());
        let trace_archival = TraceArchivalCache::new(table.clone());
        Self {
            table,
            index,
            artifacts,
            leaves_artifacts: false,
            looks: HistoryScans::AtAll,
            archive,
            trace_archival,
            archive_age: ArchiveAge::OfSettings,
            may_archive: true,
            archives_histories: false,
        }
    }

    /// Makes the process leave the archive alone: it archives nothing, and deletes no objects. Required if
    /// it may have another archive than the processes that serve the table.
    #[must_use]
    pub fn without_archive(self) -> Self {
        Self { may_archive: false, archives_histories: false, ..self }
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

    /// Sets the age, in ms, from which the spans of traces are archived, regardless of the settings.
    /// With `None`, they are not archived. For tests.
    #[must_use]
    pub fn archiving_after(self, archive_age: Option<i64>) -> Self {
        Self { archive_age: ArchiveAge::Fixed(archive_age), ..self }
    }

    /// Sets the layout of the table, which is the current one by default. Nothing is archived in a table
    /// with an earlier layout, because earlier versions may still read it.
    #[must_use]
    pub fn with_layout(self, layout: i64) -> Self {
        let may_archive = layout >= POINTER_LAYOUT;
        Self { may_archive, archives_histories: may_archive, ..self }
    }

    /// Limits which experiments are checked at a time for traces to be archived, and which runs are
    /// scanned for expired histories.
    #[must_use]
    pub fn looking(self, looks: HistoryScans) -> Self {
        Self { looks, ..self }
    }
}
