//! Exports registered models.

use entities::attributes::NAME;
use key_schema::rows;
use mlflow_api::Workspace;
use registry::store::registered_model_key;
use rusqlite::params;
use table::Query;

use super::{VersionRecord, table_reader};
use crate::Failure;
use crate::transfer::export::ExportContext;

/// Exports the registered models of all workspaces, unless a single experiment is exported. Takes
/// one request per MB of names, one per 100 models, and one per MB of versions of each model.
///
/// # Errors
/// The table cannot be read, or the file cannot be written.
pub(crate) async fn export(context: &ExportContext) -> Result<(), Failure> {
    for workspace in context.workspaces().await? {
        let mut next = Some(Query::of(rows::ModelName::all(&workspace.as_str().into())));
        while let Some(query) = next {
            let page = context.table.query_page(&query).await;
            let page = page.map_err(|failure| format!("cannot read registered models: {failure:?}"))?;
            let names: Vec<_> = page.items.iter().filter_map(|row| row.get(NAME)).collect();
            let keys: Vec<_> = names.iter().map(|name| registered_model_key(&workspace, name)).collect();
            let documents = context.table.get_many(&keys).await;
            let documents = documents.map_err(|failure| format!("cannot read registered models: {failure:?}"))?;
            for document in keys.iter().filter_map(|key| documents.get(key)) {
                export_model(context, &workspace, document).await?;
            }
            next = page.next.map(|start| query.starting_at(start));
        }
    }
    Ok(())
}

async fn export_model(context: &ExportContext, workspace: &Workspace, document: &table::Item) -> Result<(), Failure> {
    let name = document.get(NAME).unwrap_or_default().to_owned();
    let read =
        table_reader::read(&context.table, document, |version| export_version(context, workspace, &name, version));
    let record = read.await?;
    let workspace = workspace.as_str();
    context.insert(
        "INSERT INTO registered_models (workspace, name, creation_time, last_updated_time, description) VALUES (?, ?, ?, ?, ?)",
        params![workspace, name, record.created, record.updated, record.description],
    )?;
    for (key, value) in &record.tags {
        context.insert(
            "INSERT INTO registered_model_tags (workspace, name, key, value) VALUES (?, ?, ?, ?)",
            params![workspace, name, key, value],
        )?;
    }
    for (alias, version) in &record.aliases {
        context.insert(
            "INSERT INTO registered_model_aliases (workspace, name, alias, version) VALUES (?, ?, ?, ?)",
            params![workspace, name, alias, version],
        )?;
    }
    // MLflow derives the number of a new version from the highest row. It keeps the rows of deleted
    // versions, in the stage `Deleted_Internal`, so that their numbers are not reused. If the
    // latest versions were deleted, one such row is enough.
    if record.versions.keys().last().is_none_or(|last| *last < record.last_version) && record.last_version > 0 {
        context.insert(
            "INSERT INTO model_versions (workspace, name, version, creation_time, current_stage, status) VALUES (?, ?, ?, ?, \
             'Deleted_Internal', 'READY')",
            params![workspace, name, record.last_version, record.updated],
        )?;
    }
    Ok(())
}

fn export_version(
    context: &ExportContext,
    workspace: &Workspace,
    name: &str,
    version: &VersionRecord,
) -> Result<(), Failure> {
    let workspace = workspace.as_str();
    context.insert(
        "INSERT INTO model_versions (workspace, name, version, creation_time, last_updated_time, description, current_stage, \
         source, storage_location, run_id, run_link, status) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'READY')",
        params![
            workspace,
            name,
            version.number,
            version.created,
            version.updated,
            version.description,
            version.stage.name(),
            version.source,
            version.storage,
            version.run,
            version.run_link,
        ],
    )?;
    for (key, value) in &version.tags {
        context.insert(
            "INSERT INTO model_version_tags (workspace, name, version, key, value) VALUES (?, ?, ?, ?, ?)",
            params![workspace, name, version.number, key, value],
        )?;
    }
    Ok(())
}
