//! Experiments and their tags.
//!
//! An experiment is imported in two steps: [`records`] reads it, and [`publish`] writes its document
//! after everything that belongs to it.

use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{ExperimentId, Workspace};
use serde::Serialize;

use super::export::ExportContext;
use super::import::ImportContext;
use crate::Failure;

/// An experiment of an MLflow database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ExperimentRecord {
    /// The id in the database. It identifies the record, and is no part of its content.
    #[serde(skip)]
    pub(crate) id: ExperimentId,
    /// The workspace.
    pub(crate) workspace: Workspace,
    /// The name.
    pub(crate) name: String,
    /// The artifact location, not rewritten.
    pub(crate) artifact_location: String,
    /// The lifecycle stage.
    pub(crate) stage: LifecycleStage,
    /// When it was created, in ms. 0 if unknown.
    pub(crate) created: i64,
    /// When it was last changed, in ms. 0 if unknown.
    pub(crate) updated: i64,
    /// Tags, sorted by key.
    pub(crate) tags: Vec<(String, String)>,
}

/// An experiment that is being imported.
#[derive(Clone, Debug)]
pub(crate) struct ImportedExperiment {
    /// The record in the database.
    pub(crate) record: ExperimentRecord,
    /// The id here. Differs from the record's if that is taken and `--remap` is given.
    pub(crate) id: ExperimentId,
    /// The artifact location here.
    pub(crate) artifact_location: String,
}

/// An experiment that is being exported.
#[derive(Clone, Debug)]
pub(crate) struct ExportedExperiment {
    /// The record to write.
    pub(crate) record: ExperimentRecord,
    /// Version of its lifecycle stage, which decides about the stages of its runs.
    pub(crate) stage_version: u64,
}

/// Returns the experiments that are to be imported, with the ids that they get.
pub(crate) async fn records(_context: &ImportContext) -> Result<Vec<ImportedExperiment>, Failure> {
    Ok(Vec::new())
}

/// Writes an experiment's document and its name, after its contents.
pub(crate) async fn publish(_context: &ImportContext, _experiment: &ImportedExperiment) -> Result<(), Failure> {
    Ok(())
}

/// Compares an experiment with its record. Differences are reported.
pub(crate) async fn verify(_context: &ImportContext, _experiment: &ImportedExperiment) -> Result<(), Failure> {
    Ok(())
}

/// Exports the experiments' own rows, and returns them for the export of their contents.
pub(crate) async fn export(_context: &ExportContext) -> Result<Vec<ExportedExperiment>, Failure> {
    Ok(Vec::new())
}
