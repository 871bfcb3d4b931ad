//! Evaluation datasets and their records.

use super::export::ExportContext;
use super::import::ImportContext;
use crate::Failure;

/// Imports the evaluation datasets.
pub(crate) async fn import(_context: &ImportContext) -> Result<(), Failure> {
    Ok(())
}

/// Compares the evaluation datasets with the source: numbers and sums of all, and the records of
/// some. Differences are reported.
pub(crate) async fn verify(_context: &ImportContext) -> Result<(), Failure> {
    Ok(())
}

/// Exports the evaluation datasets.
pub(crate) async fn export(_context: &ExportContext) -> Result<(), Failure> {
    Ok(())
}
