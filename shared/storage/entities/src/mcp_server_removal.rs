//! Removal of deleted MCP servers.

use key_schema::{Digest, rows};
use mlflow_api::Result;
use table::Table;

/// Deletes the versions of a deleted MCP server, and then the row that lists the server. Takes one
/// request per MB of versions, one per 25 rows, and one to delete the row of the server. Can be
/// interrupted and repeated.
///
/// # Errors
/// Returns failures of the table.
pub async fn finish_mcp_server_removal(table: &Table, server: Digest) -> Result<()> {
    table.delete_range(rows::McpServerVersion::partition(&server)).await?;
    Ok(table.write_many(Vec::new(), &[rows::McpServerRemoval::key(&server)]).await?)
}
