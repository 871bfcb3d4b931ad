//! `mlflow-serverless import`: moves an MLflow database into the table.
//!
//! Each kind of entity has a module that reads its records from the [`Source`], and writes items
//! that the entity's own endpoints would have written. All of them work through an
//! [`ImportContext`], and follow these rules:
//!
//! - An entity's document is written last, and has an attribute with a hash of the record that it
//!   was imported from ([`fingerprint`]). An import that was interrupted is simply repeated: it
//!   skips entities whose document exists with this hash.
//! - A document without the attribute was created by a client of this server, so its id or name is
//!   taken.
//! - If the hash differs, the record has changed in the source. The entity is replaced, unless a
//!   client of this server has changed it since it was imported. In that case, it is left alone and
//!   reported.
//! - Everything is written with [`ImportContext::writer`], which only counts it in a dry run.
//! - An experiment's document is written after everything that belongs to the experiment.

mod artifact_mapping;
mod artifact_report;
mod context;
mod decision;
mod estimate;
mod examples;
mod fernet;
mod fingerprint;
mod local_indexing;
mod options;
mod registry_entities;
mod remapped_ids;
mod replacement;
mod report;
mod retention_check;
mod secret_transfer;
mod table_writer;
mod unsupported;

pub(crate) use artifact_report::ArtifactFinding;
pub(crate) use context::{ImportContext, ImportScope};
pub(crate) use decision::ImportDecision;
pub(crate) use fingerprint::fingerprint;
pub(crate) use options::Options;
pub(crate) use registry_entities::{NAME_SUFFIX, names_in_scope, new_id, write_document};
pub(crate) use remapped_ids::{IdKind, ORIGINAL_ID_TAG, RemappedIds, replacement_digits, replacement_digits_of};
pub(crate) use replacement::{is_to_be_written, report_written, verify as verify_entity};
pub(crate) use report::ImportReport;
pub(crate) use secret_transfer::{SOURCE_KEY_VARIABLE, SourceSecret};
pub(crate) use table_writer::TableWriter;

use artifact_mapping::ArtifactMapping;
use local_indexing::LocalIndexing;

use crate::Failure;
use crate::admin::wait_for_lease;
use crate::output::print_line;
use crate::transfer::experiments::ImportedExperiment;
use crate::transfer::users::UserDatabase;
use crate::transfer::{
    artifact_check, evaluation_datasets, experiments, logged_models, mcp_servers, registered_models, reviews, runs,
    scorers, skills, traces, users, webhooks, workspaces,
};

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    // The database of users is opened first, so that nothing is imported if it cannot be read.
    let users = options.users().await?;
    let Some(source) = options.source().await? else {
        let report = ImportReport::new(0)?;
        if let Some(users) = &users {
            let store = options.user_store().await?;
            import_users(users, &store, &RemappedIds::default(), &report, options.is_dry_run()).await?;
        }
        return report_end(&report, options.is_dry_run());
    };
    let (context, engine) = options.open(source).await?;
    let indexing = LocalIndexing::start(engine, &context.table, &context.archive).await?;
    let imported = Box::pin(import_all(&context, &indexing)).await;
    indexing.stop().await;
    let experiments = imported?;
    if context.writer.is_dry_run() {
        print_line(&estimate::sentence(&context.writer));
        retention_check::report(&context, &experiments).await?;
    } else {
        verify_all(&context, &experiments).await?;
    }
    unsupported::report(&context).await?;
    if options.checks_artifacts() || context.writer.is_dry_run() {
        artifact_check::check(&context, &experiments, options.checks_artifacts()).await?;
    }
    if let Some(users) = &users {
        let store = options.user_store_over(&context.table).await?;
        import_users(users, &store, &context.remapped, &context.report, context.writer.is_dry_run()).await?;
    }
    for command in context.artifacts.iter().filter_map(ArtifactMapping::copy_command) {
        print_line(&format!("Copy the artifacts with: {command}"));
    }
    report_end(&context.report, context.writer.is_dry_run())
}

/// Prints the report. Fails if something was not imported, or differs from the source.
fn report_end(report: &ImportReport, is_dry_run: bool) -> Result<(), Failure> {
    report.end_progress();
    for line in report.lines(is_dry_run) {
        print_line(&line);
    }
    report.outcome()
}

/// Imports users, and waits until their grants apply in every process.
async fn import_users(
    users: &UserDatabase,
    store: &auth::store::Store,
    remapped: &RemappedIds,
    report: &ImportReport,
    is_dry_run: bool,
) -> Result<(), Failure> {
    users::import(users, store, remapped, report, is_dry_run).await?;
    if !is_dry_run {
        wait_for_lease().await;
    }
    Ok(())
}

/// Imports the workspaces, the contents of each experiment and then its document, and finally what
/// belongs to no experiment. Returns the experiments.
async fn import_all(context: &ImportContext, indexing: &LocalIndexing) -> Result<Vec<ImportedExperiment>, Failure> {
    webhooks::check_keys(context).await?;
    workspaces::import(context).await?;
    let experiments = experiments::records(context).await?;
    if context.remap {
        for experiment in &experiments {
            runs::remap_ids(context, experiment).await?;
            logged_models::remap_ids(context, experiment).await?;
            reviews::remap_ids(context, experiment).await?;
        }
    }
    for experiment in &experiments {
        runs::import(context, experiment).await?;
        logged_models::import(context, experiment).await?;
        traces::import(context, experiment).await?;
        scorers::import(context, experiment).await?;
        reviews::import(context, experiment).await?;
        if experiment.is_new() {
            indexing.wait_for(experiment.id).await?;
        }
        experiments::publish(context, experiment).await?;
    }
    registered_models::import(context).await?;
    Box::pin(mcp_servers::import(context)).await?;
    Box::pin(skills::import(context)).await?;
    Box::pin(webhooks::import(context)).await?;
    evaluation_datasets::import(context).await?;
    Ok(experiments)
}

/// Compares everything with the source.
async fn verify_all(context: &ImportContext, experiments: &[ImportedExperiment]) -> Result<(), Failure> {
    workspaces::verify(context).await?;
    for experiment in experiments {
        experiments::verify(context, experiment).await?;
        runs::verify(context, experiment).await?;
        logged_models::verify(context, experiment).await?;
        traces::verify(context, experiment).await?;
        scorers::verify(context, experiment).await?;
        reviews::verify(context, experiment).await?;
    }
    registered_models::verify(context).await?;
    Box::pin(mcp_servers::verify(context)).await?;
    Box::pin(skills::verify(context)).await?;
    Box::pin(webhooks::verify(context)).await?;
    evaluation_datasets::verify(context).await
}
