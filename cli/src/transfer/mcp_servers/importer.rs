//! Imports MCP servers.

use entities::attributes::{ID, IMPORTED};
use entities::documents::content;
use key_schema::{Digest, rows};
use mcp_servers::store::{StoredEndpoint, StoredServer, StoredVersion, part_key};
use mlflow_api::mcp_servers::{McpStatus, VersionContent};
use mlflow_api::{Error, McpServerName, McpVersion, Workspace};
use serde_json::value::RawValue;
use sha2::Digest as _;
use table::{Condition, Item, Query, Table, Write, text};

use super::{KIND, McpServerRecord, McpVersionRecord, database_reader, table_reader};
use crate::Failure;
use crate::transfer::import::{ImportContext, fingerprint, is_to_be_written, report_written, verify_entity};

/// Suffix that `--remap` adds to the name of a server if the name is taken.
const NAME_SUFFIX: &str = "-imported";

/// Imports the MCP servers.
///
/// # Errors
/// The source cannot be read, the table cannot be read or written, or the name of a server is taken
/// and `--remap` is not given.
pub(crate) async fn import(context: &ImportContext) -> Result<(), Failure> {
    for (workspace, name) in database_reader::names(context, true).await? {
        let record = database_reader::server(context, &workspace, &name, true).await?;
        let (record, document) = plan(context, record).await?;
        let document = document.as_ref();
        let here = Box::pin(here(&context.table, document));
        if !is_to_be_written(context, (KIND, record.name.as_str()), &fingerprint(&record)?, document, here).await? {
            continue;
        }
        match items(&record, document) {
            Ok(items) => {
                write(context, &record, items, document).await?;
                report_written(context, KIND, document);
            }
            Err(error) => context.report.omitted(KIND, record.name.as_str(), format!("because {}", error.message)),
        }
    }
    Ok(())
}

/// Determines the name under which a server is imported, and reads the document that the table has
/// for this name. If a client has created a server with the source's name, `--remap` adds a suffix
/// to the name. Takes one request, or two if the name is taken.
async fn plan(
    context: &ImportContext,
    mut record: McpServerRecord,
) -> Result<(McpServerRecord, Option<Item>), Failure> {
    let document = document(&context.table, &record.workspace, &record.name).await?;
    if document.as_ref().is_none_or(|document| document.has(IMPORTED)) {
        return Ok((record, document));
    }
    if !context.remap {
        return Err(format!(
            "MCP server {} cannot be imported: its name is taken. --remap imports it with another name",
            record.name.as_str()
        )
        .into());
    }
    let name = format!("{}{NAME_SUFFIX}", record.name.as_str());
    record.name = McpServerName::parse(&name).map_err(|error| error.message)?;
    let document = self::document(&context.table, &record.workspace, &record.name).await?;
    Ok((record, document))
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

/// Creates the items of a server. If the server was imported before, `replaced` is its document in
/// the table, whose id is kept.
fn items(record: &McpServerRecord, replaced: Option<&Item>) -> Result<ServerItems, Error> {
    let replaced = replaced.cloned().map(StoredServer::of).transpose()?;
    let id = replaced.map_or_else(|| new_id(record), |replaced| replaced.id);
    let mut server = StoredServer::new(record.workspace.clone(), record.name.clone(), id, record.created, None);
    server.updated = record.updated;
    server.created_by.clone_from(&record.created_by);
    server.updated_by.clone_from(&record.updated_by);
    server.display_name.clone_from(&record.display_name);
    server.description.clone_from(&record.description);
    server.icons.clone_from(&record.icons);
    server.tags.clone_from(&record.tags);
    server.aliases.clone_from(&record.aliases);
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
        let (stored, content) = stored_version(id, version, record)?;
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

/// Returns the id of a new server: a hash of its workspace, name and creation time. A repeated
/// import computes the same id, so it overwrites the versions that an interrupted import has
/// written.
fn new_id(record: &McpServerRecord) -> u64 {
    let text = format!("{}/{}/{}", record.workspace.as_str(), record.name.as_str(), record.created);
    sha2::Sha256::digest(text).iter().take(8).fold(0, |bits, byte| (bits << 8) | u64::from(*byte))
}

/// Writes a server: first its versions with their parts, and then its document. If the server was
/// imported before, finally deletes the versions and parts that it no longer has.
async fn write(
    context: &ImportContext,
    record: &McpServerRecord,
    items: ServerItems,
    replaced: Option<&Item>,
) -> Result<(), Failure> {
    let ServerItems { document, versions, parts } = items;
    let mut stale = Vec::new();
    if let Some(replaced) = replaced {
        let server = StoredServer::of(replaced.clone()).map_err(|error| error.message)?;
        let rows = context.table.query(Query::of(rows::McpServerVersion::all(&Digest(server.id)))).await;
        for row in rows.map_err(|failure| format!("cannot read MCP server {}: {failure:?}", record.name.as_str()))? {
            stale.extend(content::part_keys(&row, part_key(server.id)));
            stale.extend(row.key());
        }
        stale.retain(|key| !versions.iter().chain(&parts).any(|item| item.key().as_ref() == Some(key)));
    }
    let id = document.get(ID).unwrap_or_default().to_owned();
    context.writer.put_all(parts).await?;
    context.writer.put_all(versions).await?;
    let is_its = Condition::Any(vec![Condition::item_missing(), Condition::Equals(ID.into(), text(&id))]);
    let write = Write::Put(document.with(IMPORTED, text(fingerprint(record)?)), is_its);
    match context.writer.transact(&[write]).await {
        Ok(()) => context.writer.delete_all(stale).await,
        Err(table::Failure::Cancelled(_)) => {
            Err(format!("MCP server {} cannot be imported: its name was taken in the meantime", record.name.as_str())
                .into())
        }
        Err(failure) => Err(format!("cannot write MCP server {}: {failure:?}", record.name.as_str()).into()),
    }
}

/// Compares the imported MCP servers with the source, and reports differences.
///
/// # Errors
/// The source or the table cannot be read.
pub(crate) async fn verify(context: &ImportContext) -> Result<(), Failure> {
    for (workspace, name) in database_reader::names(context, false).await? {
        let record = database_reader::server(context, &workspace, &name, false).await?;
        let (record, document) = plan(context, record).await?;
        if items(&record, document.as_ref()).is_err() {
            continue;
        }
        let (name, document) = ((KIND, record.name.as_str()), document.as_ref());
        let here = Box::pin(here(&context.table, document));
        verify_entity(context, name, &fingerprint(&record)?, document, here).await?;
    }
    Ok(())
}
