//! Logged models, with params, tags and metrics.

use super::experiments::{ExportedExperiment, ImportedExperiment};
use super::export::ExportContext;
use super::import::ImportContext;
use crate::Failure;

/// Imports the logged models of an experiment.
pub(crate) async fn import(_context: &ImportContext, _experiment: &ImportedExperiment) -> Result<(), Failure> {
    Ok(())
}

/// Exports the logged models of an experiment.
pub(crate) async fn export(_context: &ExportContext, _experiment: &ExportedExperiment) -> Result<(), Failure> {
    Ok(())
}
