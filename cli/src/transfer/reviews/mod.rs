//! Label schemas, review queues with their items, and issues.
//!
//! The ids of label schemas and review queues contain their experiment, so that those of MLflow are
//! replaced ([`ids`]). Issues keep theirs, by which assessments refer to them.

mod ids;
mod issues;
mod label_schemas;
mod review_queues;

use std::collections::HashMap;

use crate::Failure;
use crate::transfer::experiments::{ExportedExperiment, ImportedExperiment};
use crate::transfer::export::ExportContext;
use crate::transfer::import::ImportContext;

/// Ids of label schemas here, by their ids in the source.
type SchemaIds = HashMap<String, String>;

/// Imports the label schemas, review queues and issues of an experiment, whose runs and traces were
/// imported before.
///
/// # Errors
/// The source cannot be read, the table cannot be read or written, or a name or an id is taken and
/// `--remap` is not given.
pub(crate) async fn import(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    let schemas = label_schemas::import(context, experiment).await?;
    Box::pin(review_queues::import(context, experiment, &schemas)).await?;
    Box::pin(issues::import(context, experiment)).await
}

/// Compares the label schemas, review queues and issues of an experiment with the source.
/// Differences are reported.
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
