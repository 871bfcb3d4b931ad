//! Label schemas, review queues with their items, and issues.
//!
//! On this server, the ids of label schemas and review queues contain their experiment. MLflow's
//! ids do not, so an import replaces them ([`ids`]). Issues keep their ids, unless they are taken,
//! because assessments refer to issues by id.

mod ids;
mod issues;
mod label_schemas;
mod review_queues;

use std::collections::HashMap;

use crate::Failure;
use crate::transfer::experiments::{ExportedExperiment, ImportedExperiment};
use crate::transfer::export::ExportContext;
use crate::transfer::import::ImportContext;

/// Maps ids of label schemas in the source to their ids in the table.
type SchemaIds = HashMap<String, String>;

/// Records the new ids of those issues of an experiment whose ids are taken (`--remap`). This is done
/// before anything is imported, because assessments of traces refer to issues.
///
/// # Errors
/// The source or the table cannot be read.
pub(crate) async fn remap_ids(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    Box::pin(issues::remap_ids(context, experiment)).await
}

/// Imports the label schemas, review queues and issues of an experiment. The runs and traces of the
/// experiment must have been imported before.
///
/// # Errors
/// The source cannot be read, the table cannot be read or written, or a name or an id is taken and
/// `--remap` is not given.
pub(crate) async fn import(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    let schemas = label_schemas::import(context, experiment).await?;
    Box::pin(review_queues::import(context, experiment, &schemas)).await?;
    Box::pin(issues::import(context, experiment)).await
}

/// Compares the imported label schemas, review queues and issues of an experiment with the source,
/// and reports differences.
///
/// # Errors
/// The source or the table cannot be read.
pub(crate) async fn verify(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    let schemas = label_schemas::verify(context, experiment).await?;
    Box::pin(review_queues::verify(context, experiment, &schemas)).await?;
    Box::pin(issues::verify(context, experiment)).await
}

/// Exports the label schemas, review queues and issues of an experiment.
///
/// # Errors
/// The table cannot be read, or the file cannot be written.
pub(crate) async fn export(context: &ExportContext, experiment: &ExportedExperiment) -> Result<(), Failure> {
    label_schemas::export(context, experiment).await?;
    Box::pin(review_queues::export(context, experiment)).await?;
    Box::pin(issues::export(context, experiment)).await
}
