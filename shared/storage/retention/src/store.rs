//! The parts that a removal works on.

use artifact_store::Artifacts;
use run_index::RunIndex;
use table::Table;

use crate::looks::Looks;

/// Removes deleted entities for good. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Retention {
    pub(crate) table: Table,
    /// It clears up after removed entities.
    pub(crate) index: RunIndex,
    pub(crate) artifacts: Artifacts,
    pub(crate) leaves_artifacts: bool,
    pub(crate) looks: Looks,
}

impl Retention {
    /// Over a table and the artifacts that this server keeps.
    #[must_use]
    pub fn new(table: Table, artifacts: Artifacts) -> Self {
        let index = RunIndex::new(table.clone());
        Self { table, index, artifacts, leaves_artifacts: false, looks: Looks::AtAll }
    }

    /// The same, which also removes entities whose artifacts this server cannot reach, and leaves
    /// the artifacts there.
    #[must_use]
    pub fn leaving_artifacts(self, leaves_artifacts: bool) -> Self {
        Self { leaves_artifacts, ..self }
    }

    /// The same, which looks only at some runs to find histories that are kept no longer.
    #[must_use]
    pub fn looking(self, looks: Looks) -> Self {
        Self { looks, ..self }
    }
}
