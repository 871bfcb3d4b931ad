//! Reads MCP servers from an MLflow database.

use std::collections::BTreeMap;

use mlflow_api::mcp_servers::McpStatus;
use mlflow_api::{McpServerName, McpVersion, Workspace};

use super::{AccessEndpointRecord, KIND, McpServerRecord, McpVersionRecord};
use crate::Failure;
use crate::transfer::database::{Row, SqlValue};
use crate::transfer::import::{ImportContext, names_in_scope};

/// Returns the workspaces and names of the servers in the import's scope. If `reports` is set,
/// reports servers whose names are not valid. Takes one query.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn names(context: &ImportContext, reports: bool) -> Result<Vec<(Workspace, McpServerName)>, Failure> {
    if !context.source.has_table("mcp_servers") {
        return Ok(Vec::new());
    }
    let sql = "SELECT workspace, name FROM mcp_servers ORDER BY workspace, name";
    let name = |row: &Row| row.text(1).map(|name| (name.clone(), McpServerName::parse(&name)));
    names_in_scope(context, (KIND, sql), reports, name).await
}

/// Reads a server with its versions. If `reports` is set, reports versions that cannot be imported.
/// Takes six queries.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn server(
    context: &ImportContext,
    workspace: &Workspace,
    name: &McpServerName,
    reports: bool,
) -> Result<McpServerRecord, Failure> {
    let source = &context.source;
    let of = || vec![SqlValue::from(workspace.as_str()), SqlValue::from(name.as_str())];
    let columns = source.columns(
        "mcp_servers",
        &["display_name", "description", "icons", "created_by", "last_updated_by", "created_at", "last_updated_at"],
    );
    let sql = format!("SELECT {columns} FROM mcp_servers WHERE workspace = ? AND name = ?");
    let rows = source.rows(&sql, of()).await?;
    let row = rows.first().ok_or("an MCP server was deleted during the import")?;
    let mut record = McpServerRecord {
        workspace: workspace.clone(),
        name: name.clone(),
        display_name: row.optional_text(0)?,
        description: row.optional_text(1)?,
        icons: row.optional_json(2)?,
        created_by: row.optional_text(3)?,
        updated_by: row.optional_text(4)?,
        created: row.integer(5)?,
        updated: row.integer(6)?,
        tags: BTreeMap::new(),
        aliases: BTreeMap::new(),
        endpoints: BTreeMap::new(),
        versions: BTreeMap::new(),
    };
    for row in source.rows("SELECT \"key\", value FROM mcp_server_tags WHERE workspace = ? AND name = ?", of()).await? {
        record.tags.insert(row.text(0)?, row.optional_text(1)?.unwrap_or_default());
    }
    let sql = "SELECT alias, version FROM mcp_server_aliases WHERE workspace = ? AND name = ?";
    for row in source.rows(sql, of()).await? {
        record.aliases.insert(row.text(0)?, row.text(1)?);
    }
    let columns = source.columns(
        "mcp_access_endpoints",
        &[
            "id",
            "url",
            "transport_type",
            "server_version",
            "server_alias",
            "created_by",
            "last_updated_by",
            "created_at",
            "last_updated_at",
        ],
    );
    let sql = format!("SELECT {columns} FROM mcp_access_endpoints WHERE workspace = ? AND server_name = ?");
    for row in source.rows(&sql, of()).await? {
        let endpoint = AccessEndpointRecord {
            url: row.text(1)?,
            transport: row.text(2)?,
            version: row.optional_text(3)?,
            alias: row.optional_text(4)?,
            created_by: row.optional_text(5)?,
            updated_by: row.optional_text(6)?,
            created: row.integer(7)?,
            updated: row.integer(8)?,
        };
        record.endpoints.insert(row.text(0)?, endpoint);
    }
    read_versions(context, &mut record, reports).await?;
    Ok(record)
}

/// Reads the versions of a server with their tags, and adds them to the record. Takes two queries.
async fn read_versions(context: &ImportContext, record: &mut McpServerRecord, reports: bool) -> Result<(), Failure> {
    let source = &context.source;
    let of = vec![SqlValue::from(record.workspace.as_str()), SqlValue::from(record.name.as_str())];
    let columns = source.columns(
        "mcp_server_versions",
        &[
            "version",
            "status",
            "server_json",
            "tools",
            "connect_options",
            "source",
            "created_by",
            "last_updated_by",
            "created_at",
            "last_updated_at",
        ],
    );
    let sql = format!("SELECT {columns} FROM mcp_server_versions WHERE workspace = ? AND name = ?");
    for row in source.rows(&sql, of.clone()).await? {
        let (version, status) = (row.text(0)?, row.text(1)?);
        let server_json = row.optional_json(2)?;
        let is_valid = McpVersion::of(&version).is_some() && McpStatus::from_name(&status).is_some();
        let Some(server_json) = server_json.filter(|_| is_valid) else {
            if reports {
                let id = format!("version {version} of {}", record.name.as_str());
                context.report.omitted(KIND, &id, "because its version, its status or its server_json is not valid");
            }
            continue;
        };
        let read = McpVersionRecord {
            status,
            server_json,
            tools: row.optional_json(3)?,
            connect_options: row.optional_json(4)?,
            source: row.optional_text(5)?,
            created_by: row.optional_text(6)?,
            updated_by: row.optional_text(7)?,
            created: row.integer(8)?,
            updated: row.integer(9)?,
            tags: BTreeMap::new(),
        };
        record.versions.insert(version, read);
    }
    let sql = "SELECT version, \"key\", value FROM mcp_server_version_tags WHERE workspace = ? AND name = ?";
    for row in source.rows(sql, of).await? {
        if let Some(version) = record.versions.get_mut(&row.text(0)?) {
            version.tags.insert(row.text(1)?, row.optional_text(2)?.unwrap_or_default());
        }
    }
    Ok(())
}
