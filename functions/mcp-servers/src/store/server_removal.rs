//! Removal of the versions of deleted servers.

use key_schema::{Digest, rows};
use mlflow_api::{Result, Workspace};
use table::{Item, Query};

use super::store::Store;

impl Store {
    /// Removes the versions of deleted servers of a workspace, including those whose removal was
    /// interrupted. Takes one request and, for each server, one request per MB of versions and one
    /// per 25 rows.
    pub(super) async fn finish_removals(&self, workspace: &Workspace) -> Result<()> {
        let removals = rows::McpServerRemoval::all(&workspace.as_str().into());
        for row in self.table.query(Query::of(removals)).await? {
            let Some(key) = row.key() else { continue };
            let parsed = rows::McpServerRemoval::parse(&key);
            let removal = parsed.ok_or_else(|| entities::unreadable(&row, "a deleted MCP server"))?;
            self.remove_versions(removal.server).await?;
            self.table.write_many(Vec::<Item>::new(), &[key]).await?;
        }
        Ok(())
    }

    /// Removes all rows of a server's versions and of their parts.
    async fn remove_versions(&self, server: Digest) -> Result<()> {
        self.table.delete_range(rows::McpServerVersion::partition(&server)).await?;
        Ok(())
    }
}
