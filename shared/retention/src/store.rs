//! The parts that a removal works on.

use artifact_store::Artifacts;
use entities::now_ms;
use fts_indexer::Indexer;
use table::Table;

/// Removes deleted entities for good. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Retention {
    pub(crate) table: Table,
    /// Its code clears up after removed entities.
    pub(crate) indexer: Indexer,
    pub(crate) artifacts: Artifacts,
    pub(crate) leaves_artifacts: bool,
    /// The hour since 1970, where only experiments whose turn it is have their histories removed.
    pub(crate) histories_in: Option<u64>,
}

impl Retention {
    /// Over a table and the artifacts that this server keeps.
    #[must_use]
    pub fn new(table: Table, artifacts: Artifacts) -> Self {
        let indexer = Indexer::new(table.clone());
        Self { table, indexer, artifacts, leaves_artifacts: false, histories_in: None }
    }

    /// The same, which also removes entities whose artifacts this server cannot reach, and leaves
    /// the artifacts there.
    #[must_use]
    pub fn leaving_artifacts(self, leaves_artifacts: bool) -> Self {
        Self { leaves_artifacts, ..self }
    }

    /// The same, which looks at the histories of each experiment in one hour of the day only. It is
    /// for a process that is there in each hour, and pays for each look.
    #[must_use]
    pub fn in_turn(self) -> Self {
        let hour = now_ms().div_euclid(3_600_000);
        Self { histories_in: u64::try_from(hour).ok(), ..self }
    }
}
