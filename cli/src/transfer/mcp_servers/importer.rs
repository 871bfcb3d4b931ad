//! Imports MCP servers.

use entities::attributes::IMPORTED;
use entities::documents::content;
use key_schema::{Digest, rows};
use mcp_servers::store::{StoredEndpoint, StoredServer, StoredVersion, part_key};
use mlflow_api::mcp_servers::{McpStatus, VersionContent};
use mlflow_api::{Error, McpServerName, McpVersion, Workspace};
use serde_json::value::RawValue;
use table::{Item, Query, Table};

use super::{KIND, McpServerRecord, McpVersionRecord, database_reader, table_reader};
use crate::Failure;
use crate::transfer::import::{
    IdKind, ImportContext, NAME_SUFFIX, fingerprint, is_to_be_written, new_id, report_written, verify_entity,
    write_document,
};

/// Imports the MCP servers.
///
/// # Errors
/// The source cannot be read, the table cannot be read or written, or the name of a server is taken
/// and `--remap` is not given.
pub(crate) async fn import(context: &ImportContext) -> Result<(), Failure> {
    for (workspace, name) in database_reader::names(context, true).await? {
        let record = database_reader::server(context, &workspace, &name, true).await?;
        let planned = plan(context, record).await?;
        let (name, document) = (planned.record.name.as_str(), planned.document.as_ref());
        let items = match items(&planned) {
            Ok(items) => items,
            Err(error) => {
                context.report.omitted(KIND, name, format!("because {}", error.message));
                continue;
            }
        };
        let new = fingerprint(&planned.record)?;
        let here = Box::pin(here(&context.table, document));
        if is_to_be_written(context, (KIND, name), &new, document, here).await? {
            write(context, &planned, items, &new).await?;
            report_written(context, KIND, document);
        }
    }
    Ok(())
}

/// A server, its name and id in the table, and the document that the table has for this name.
struct PlannedServer {
    record: McpServerRecord,
    document: Option<Item>,
    id: u64,
}

/// Determines the name under which a server is imported, and reads the document that the table has
/// for this name. If a client has created a server with the source's name, `--remap` adds a suffix
/// to the name. Takes one request, and one more if the name is taken. Takes another one for a new
/// server.
async fn plan(context: &ImportContext, mut record: McpServerRecord) -> Result<PlannedServer, Failure> {
    let table = &context.table;
    let mut document = document(table, &record.workspace, &record.name).await?;
    if document.as_ref().is_some_and(|document| !document.has(IMPORTED)) {
        let name = record.name.as_str();
        if !context.remap {
            let message = "cannot be imported: its name is taken. --remap imports it with another name";
            return Err(format!("MCP server {name} {message}").into());
        }
        let renamed = McpServerName::parse(&format!("{name}{NAME_SUFFIX}")).map_err(|error| error.message)?;
        context.remapped.insert(IdKind::McpServer, &format!("{}/{name}", record.workspace), renamed.as_str());
        record.name = renamed;
        document = self::document(table, &record.workspace, &record.name).await?;
    }
    let id = if let Some(document) = &document {
        StoredServer::of(document.clone()).map_err(|error| error.message)?.id
    } else {
        let of = (&record.workspace, record.name.as_str(), record.created);
        new_id(table, of, rows::McpServerRemoval::key).await?
    };
    Ok(PlannedServer { record, document, id })
}

async fn document(table: &Table, workspace: &Workspace, name: &McpServerName) -> Result<Option<Item>, Failure> {
    let found = table.get(&StoredServer::key(workspace, name)).await;
    found.map_err(|failure| format!("cannot read MCP server {}: {failure:?}", name.as_str()).into())
}

/// Computes the fingerprint of a server from its items in the table.
async fn here(table: &Table, document: Option<&Item>) -> Result<String, Failure> {
    let document = document.ok_or("an MCP server is missing")?.clone();
    fingerprint(&table_reader::record(table, document).await?)
}

/// The items of a server.
struct ServerItems {
    document: Item,
    versions: Vec<Item>,
    /// Parts of large versions.
    parts: Vec<Item>,
}

/// Creates the items of a server.
fn items(planned: &PlannedServer) -> Result<ServerItems, Error> {
    let PlannedServer { record, document, id } = planned;
    let mut server = match document {
        Some(replaced) => StoredServer::of(replaced.clone())?,
        None => StoredServer::new(record.workspace.clone(), record.name.clone(), *id, record.created, None),
    };
    server.created = record.created;
    server.updated = record.updated;
    server.created_by.clone_from(&record.created_by);
    server.updated_by.clone_from(&record.updated_by);
    server.display_name.clone_from(&record.display_name);
    server.description.clone_from(&record.description);
    server.icons.clone_from(&record.icons);
    server.tags.clone_from(&record.tags);
    server.aliases.clone_from(&record.aliases);
    server.endpoints.clear();
    for (id, endpoint) in &record.endpoints {
        let stored = StoredEndpoint {
            url: endpoint.url.clone(),
            transport: endpoint.transport.clone(),
            version: endpoint.version.clone(),
            alias: endpoint.alias.clone(),
            created: endpoint.created,
            updated: endpoint.updated,
            created_by: endpoint.created_by.clone(),
            updated_by: endpoint.updated_by.clone(),
        };
        server.endpoints.insert(id.clone(), stored);
    }
    let (mut versions, mut parts) = (Vec::new(), Vec::new());
    let mut latest: Option<(StoredVersion, VersionContent)> = None;
    for (version, record) in &record.versions {
        let (stored, content) = stored_version(*id, version, record)?;
        let packed = stored.pack(&content)?;
        versions.push(stored.to_item(Some(&packed)));
        parts.extend(packed.parts);
        if stored.is_later_than(latest.as_ref().map(|(latest, _)| latest)) {
            latest = Some((stored, content));
        }
    }
    server.latest = latest.map(|(latest, content)| latest.as_latest(&content.server_json)).transpose()?;
    Ok(ServerItems { document: server.to_item()?, versions, parts })
}

fn stored_version(
    server: u64,
    version: &str,
    record: &McpVersionRecord,
) -> Result<(StoredVersion, VersionContent), Error> {
    let unreadable = || Error::internal("a version of an MCP server was read that is not valid");
    let version = McpVersion::of(version).ok_or_else(unreadable)?;
    let status = McpStatus::from_name(&record.status).ok_or_else(unreadable)?;
    let mut stored = StoredVersion::new(server, version, status, record.created);
    stored.updated = record.updated;
    stored.created_by.clone_from(&record.created_by);
    stored.updated_by.clone_from(&record.updated_by);
    stored.source.clone_from(&record.source);
    stored.tags.clone_from(&record.tags);
    let raw = |json: &String| RawValue::from_string(json.clone()).map_err(Error::internal);
    let content = VersionContent {
        server_json: raw(&record.server_json)?,
        tools: record.tools.as_ref().map(raw).transpose()?,
        connect_options: record.connect_options.as_ref().map(raw).transpose()?,
    };
    Ok((stored, content))
}

/// Writes a server: first its versions with their parts, and then its document. If the server was
/// imported before, finally deletes the versions and parts that it no longer has.
async fn write(
    context: &ImportContext,
    planned: &PlannedServer,
    items: ServerItems,
    fingerprint: &str,
) -> Result<(), Failure> {
    let ServerItems { document, versions, parts } = items;
    let label = format!("MCP server {}", planned.record.name.as_str());
    let mut stale = Vec::new();
    if planned.document.is_some() {
        let rows = context.table.query(Query::of(rows::McpServerVersion::all(&Digest(planned.id)))).await;
        for row in rows.map_err(|failure| format!("cannot read {label}: {failure:?}"))? {
            stale.extend(content::part_keys(&row, part_key(planned.id)));
            stale.extend(row.key());
        }
        stale.retain(|key| !versions.iter().chain(&parts).any(|item| item.key().as_ref() == Some(key)));
    }
    context.writer.put_all(parts).await?;
    context.writer.put_all(versions).await?;
    write_document(context, &label, document, fingerprint).await?;
    context.writer.delete_all(stale).await
}

/// Compares the imported MCP servers with the source, and reports differences.
///
/// # Errors
/// The source or the table cannot be read.
pub(crate) async fn verify(context: &ImportContext) -> Result<(), Failure> {
    for (workspace, name) in database_reader::names(context, false).await? {
        let record = database_reader::server(context, &workspace, &name, false).await?;
        let planned = plan(context, record).await?;
        if items(&planned).is_err() {
            continue;
        }
        let (name, document) = ((KIND, planned.record.name.as_str()), planned.document.as_ref());
        let here = Box::pin(here(&context.table, document));
        verify_entity(context, name, &fingerprint(&planned.record)?, document, here).await?;
    }
    Ok(())
}
