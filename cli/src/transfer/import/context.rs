//! State that the importers of all kinds of entities share.

use artifact_store::Archive;
use entities::SegmentEncoding;
use mlflow_api::{ExperimentId, Workspace};
use table::Table;

use super::super::source::Source;
use super::artifact_mapping::ArtifactMapping;
use super::remapped_ids::RemappedIds;
use super::report::ImportReport;
use super::secret_transfer::SecretTransfer;
use super::table_writer::TableWriter;

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

impl ImportScope {
    /// Returns whether the entities of a workspace that belong to no experiment are imported.
    pub(crate) fn includes(&self, workspace: &Workspace) -> bool {
        match self {
            Self::All => true,
            Self::Workspace(wanted) => wanted == workspace,
            Self::Experiment(_) => false,
        }
    }
}

/// An import in progress.
pub(crate) struct ImportContext {
    /// The database that is imported.
    pub(crate) source: Source,
    /// The table, for reading only.
    pub(crate) table: Table,
    /// How the points of metrics are encoded.
    pub(crate) segments: SegmentEncoding,
    /// Where archived data of the table is stored.
    pub(crate) archive: Archive,
    /// The writer for everything that is imported. In a dry run, it only counts what it would
    /// write.
    pub(crate) writer: TableWriter,
    /// The part of the source that is imported.
    pub(crate) scope: ImportScope,
    /// Prefixes of artifact locations to rewrite. The first one that matches applies.
    pub(crate) artifacts: Vec<ArtifactMapping>,
    /// The directory or bucket in which the MLflow server stores artifacts of `mlflow-artifacts:/`.
    pub(crate) artifacts_destination: String,
    /// Whether an entity whose id or name is taken gets another one.
    pub(crate) remap: bool,
    /// The keys that open and seal the secrets of webhooks.
    pub(crate) secrets: SecretTransfer,
    /// Ids and names that differ from those in the source.
    pub(crate) remapped: RemappedIds,
    /// The counts of what has been imported so far.
    pub(crate) report: ImportReport,
}

impl ImportContext {
    /// Returns an artifact location, rewritten according to `--artifacts`.
    pub(crate) fn artifact_location(&self, location: &str) -> String {
        let mapped = self.artifacts.iter().find_map(|mapping| mapping.apply(location));
        mapped.unwrap_or_else(|| location.to_owned())
    }
}
