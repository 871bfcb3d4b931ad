//! Traces, with spans, tags, metadata, assessments, and links to runs and prompts.

use super::experiments::{ExportedExperiment, ImportedExperiment};
use super::export::ExportContext;
use super::import::ImportContext;
use crate::Failure;

/// Imports the traces of an experiment.
pub(crate) async fn import(_context: &ImportContext, _experiment: &ImportedExperiment) -> Result<(), Failure> {
    Ok(())
}

/// Compares the traces of an experiment with the source: numbers and sums of all, and the records of
/// some. Differences are reported.
pub(crate) async fn verify(_context: &ImportContext, _experiment: &ImportedExperiment) -> Result<(), Failure> {
    Ok(())
}

/// Exports the traces of an experiment.
pub(crate) async fn export(_context: &ExportContext, _experiment: &ExportedExperiment) -> Result<(), Failure> {
    Ok(())
}
