//! Reads MCP servers from the table.

use std::collections::BTreeMap;

use entities::documents::content;
use key_schema::{Digest, rows};
use mcp_servers::store::{StoredServer, StoredVersion, part_key};
use mlflow_api::Json;
use mlflow_api::mcp_servers::VersionContent;
use serde_json::value::RawValue;
use table::{Item, Query, Table};

use super::{AccessEndpointRecord, McpServerRecord, McpVersionRecord};
use crate::Failure;

/// Returns the record of a server, given its document. Takes one request per MB of versions, and
/// one for each large version.
///
/// # Errors
/// The table or the server cannot be read.
pub(super) async fn record(table: &Table, document: Item) -> Result<McpServerRecord, Failure> {
    let server = StoredServer::of(document).map_err(|error| error.message)?;
    let failed = |failure: table::Failure| format!("cannot read MCP server {}: {failure:?}", server.name.as_str());
    let rows = table.query(Query::of(rows::McpServerVersion::all(&Digest(server.id)))).await.map_err(failed)?;
    let mut versions = BTreeMap::new();
    for row in rows {
        let read = content::read_with_item(table, row, part_key(server.id)).await.map_err(|error| error.message)?;
        // A version that was deleted in the meantime is left out.
        let Some((row, text)) = read else { continue };
        let version = StoredVersion::of(row).map_err(|error| error.message)?;
        let content = VersionContent::parse(&text).map_err(|error| error.message)?;
        let record = McpVersionRecord {
            status: version.status.name().to_owned(),
            server_json: json(&content.server_json),
            tools: content.tools.as_deref().map(json),
            connect_options: content.connect_options.as_deref().map(json),
            source: version.source,
            created: version.created,
            updated: version.updated,
            created_by: version.created_by,
            updated_by: version.updated_by,
            tags: version.tags,
        };
        versions.insert(version.version.to_string(), record);
    }
    let endpoints = server.endpoints.into_iter().map(|(id, endpoint)| {
        let record = AccessEndpointRecord {
            url: endpoint.url,
            transport: endpoint.transport,
            version: endpoint.version,
            alias: endpoint.alias,
            created: endpoint.created,
            updated: endpoint.updated,
            created_by: endpoint.created_by,
            updated_by: endpoint.updated_by,
        };
        (id, record)
    });
    Ok(McpServerRecord {
        workspace: server.workspace,
        name: server.name,
        display_name: server.display_name,
        description: server.description,
        icons: server.icons,
        created: server.created,
        updated: server.updated,
        created_by: server.created_by,
        updated_by: server.updated_by,
        tags: server.tags,
        aliases: server.aliases,
        endpoints: endpoints.collect(),
        versions,
    })
}

fn json(raw: &RawValue) -> String {
    Json::parse(raw.get()).map_or_else(|| raw.get().to_owned(), |value| value.print_unicode())
}
