//! Workspaces.
//!
//! A workspace that the table already has keeps its settings, and the source's experiments and
//! models are added to it. Differences in the settings are reported.

use entities::workspaces::{WorkspaceChange, WorkspaceDocument, Workspaces};
use mlflow_api::{ErrorCode, Workspace};
use rusqlite::params;

use super::export::ExportContext;
use super::import::ImportContext;
use crate::Failure;

/// Name of workspaces in reports.
const KIND: &str = "workspaces";

/// Imports the workspaces.
///
/// # Errors
/// The source cannot be read, or the table cannot be read or written.
pub(crate) async fn import(context: &ImportContext) -> Result<(), Failure> {
    let workspaces = Workspaces::new(context.table.clone());
    for (name, settings) in read(context).await? {
        match find(&workspaces, &name).await? {
            Some(here) if settings_of(&here) == settings => context.report.unchanged(KIND, 1),
            Some(here) if name == Workspace::default() && here.id.is_empty() => {
                if !context.writer.is_dry_run() {
                    workspaces.change(&name, &settings).await.map_err(|error| error.message)?;
                }
                context.report.imported(KIND, 1);
            }
            Some(_) => context.report.changed_here(KIND, name.as_str()),
            None => {
                if !context.writer.is_dry_run() {
                    workspaces.create(&name, &settings).await.map_err(|error| error.message)?;
                }
                context.report.imported(KIND, 1);
            }
        }
    }
    Ok(())
}

/// Checks that the workspaces are in the table, and reports missing ones.
///
/// # Errors
/// The source or the table cannot be read.
pub(crate) async fn verify(context: &ImportContext) -> Result<(), Failure> {
    let workspaces = Workspaces::new(context.table.clone());
    for (name, _) in read(context).await? {
        if find(&workspaces, &name).await?.is_none() {
            context.report.different(KIND, &format!("{name} is missing"));
        }
    }
    Ok(())
}

/// Exports the workspaces. Takes one request, and one per 100 workspaces.
///
/// # Errors
/// The table cannot be read, or the file cannot be written.
pub(crate) async fn export(context: &ExportContext) -> Result<(), Failure> {
    let all = Workspaces::new(context.table.clone()).list().await.map_err(|error| error.message)?;
    for document in all {
        context.insert(
            "INSERT INTO workspaces (name, description, default_artifact_root, trace_archival_location, \
             trace_archival_retention) VALUES (?, ?, ?, ?, ?)",
            params![
                document.name.as_str(),
                document.description,
                document.artifact_root,
                document.archive,
                document.archive_after
            ],
        )?;
    }
    Ok(())
}

/// Reads the workspaces of the context's scope, with their settings. Takes one query.
async fn read(context: &ImportContext) -> Result<Vec<(Workspace, WorkspaceChange)>, Failure> {
    let source = &context.source;
    if !source.has_table("workspaces") {
        return Ok(Vec::new());
    }
    let columns = ["description", "default_artifact_root", "trace_archival_location", "trace_archival_retention"];
    let columns = source.columns("workspaces", &columns);
    let mut workspaces = Vec::new();
    for row in source.rows(&format!("SELECT name, {columns} FROM workspaces ORDER BY name"), Vec::new()).await? {
        let name = row.text(0)?;
        let workspace = match Workspace::parse(&name) {
            Ok(workspace) => workspace,
            Err(error) => {
                context.report.omitted(KIND, &name, format!("because {}", error.message));
                continue;
            }
        };
        if context.scope.includes(&workspace) {
            let root = row.optional_text(2)?.map(|root| context.artifact_location(&root));
            let settings = WorkspaceChange {
                description: row.optional_text(1)?,
                artifact_root: root,
                archive: row.optional_text(3)?,
                archive_after: row.optional_text(4)?,
            };
            workspaces.push((workspace, settings));
        }
    }
    Ok(workspaces)
}

async fn find(workspaces: &Workspaces, name: &Workspace) -> Result<Option<WorkspaceDocument>, Failure> {
    match workspaces.get(name).await {
        Ok(document) => Ok(Some(document)),
        Err(error) if error.code == ErrorCode::ResourceDoesNotExist => Ok(None),
        Err(error) => Err(error.message.into()),
    }
}

fn settings_of(document: &WorkspaceDocument) -> WorkspaceChange {
    WorkspaceChange {
        description: document.description.clone(),
        artifact_root: document.artifact_root.clone(),
        archive: document.archive.clone(),
        archive_after: document.archive_after.clone(),
    }
}
