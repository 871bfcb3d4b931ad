//! What the importers of all kinds of entities share.

use mlflow_api::{ExperimentId, Workspace};
use table::{Item, Table};

use super::super::source::Source;
use super::artifact_mapping::ArtifactMapping;
use super::remapped_ids::RemappedIds;
use super::report::ImportReport;
use crate::Failure;

/// Which part of a source is imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ImportScope {
    /// Everything.
    All,
    /// One experiment with its contents.
    Experiment(ExperimentId),
    /// The contents of one workspace.
    Workspace(Workspace),
}

/// An import in progress.
pub(crate) struct ImportContext {
    /// The database that is imported.
    pub(crate) source: Source,
    /// The table that entities are written to.
    pub(crate) table: Table,
    /// The part of the source that is imported.
    pub(crate) scope: ImportScope,
    /// Prefixes of artifact locations to rewrite. The first one that matches applies.
    pub(crate) artifacts: Vec<ArtifactMapping>,
    /// Whether entities whose id or name is taken get another one.
    pub(crate) remap: bool,
    /// Ids and names that differ from those in the source.
    pub(crate) remapped: RemappedIds,
    /// What has been imported so far.
    pub(crate) report: ImportReport,
}

impl ImportContext {
    /// Writes items in batches, not faster than the capacity that the user allows. Documents of
    /// entities must be written after all their other items, in a call of their own.
    ///
    /// # Errors
    /// The table cannot be written.
    pub(crate) async fn write(&self, items: Vec<Item>) -> Result<(), Failure> {
        self.table
            .write_many(items, &[])
            .await
            .map_err(|failure| format!("cannot write to the table: {failure:?}").into())
    }

    /// Returns an artifact location, rewritten according to `--artifacts`.
    pub(crate) fn artifact_location(&self, location: &str) -> String {
        let mapped = self.artifacts.iter().find_map(|mapping| mapping.apply(location));
        mapped.unwrap_or_else(|| location.to_owned())
    }
}
