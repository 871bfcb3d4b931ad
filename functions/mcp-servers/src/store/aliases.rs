//! Aliases of versions.

use access::Granted;
use mlflow_api::mcp_servers::{McpStatus, McpVersion, SetMcpAlias};
use mlflow_api::{Error, McpServerName, McpVersion as Version, Result};
use table::Failure;

use super::errors::{alias_not_found, stored_server_not_found};
use super::server_document::{LATEST_ALIAS, StoredServer};
use super::store::Store;

impl Store {
    /// Sets an alias. Takes three requests.
    ///
    /// # Errors
    /// Fails with `RESOURCE_DOES_NOT_EXIST` if there is no such version, and with
    /// `INVALID_PARAMETER_VALUE` if it is deleted.
    pub async fn alias_set(&self, name: &Granted<McpServerName>, alias: &SetMcpAlias) -> Result<()> {
        let SetMcpAlias { alias, version } = alias;
        let mut attempts = self.table.attempts("an MCP server");
        loop {
            attempts.next().await?;
            let mut server = self.server_to_change(name).await?;
            let found = self.version_row(server.id, version).await?;
            let found = found.ok_or_else(|| Version::not_found(name.as_str(), version))?;
            if found.status == McpStatus::Deleted {
                return Err(Error::invalid(format!(
                    "Cannot set alias '{alias}' to deleted MCP server version '{}' version '{version}'",
                    name.as_str()
                )));
            }
            server.aliases.insert(alias.clone(), version.clone());
            // If the version is deleted concurrently, the deletion also writes the document, and
            // this write fails. Therefore, it needs no condition on the version.
            match self.table.transact(&[server.write()?]).await {
                Ok(()) => return Ok(()),
                Err(Failure::Cancelled(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Reads the version that an alias refers to. Takes two requests, and one more if the version is
    /// large.
    pub async fn alias_get(&self, name: &Granted<McpServerName>, alias: &str) -> Result<McpVersion> {
        let found = self.server_find(name).await?;
        let not_found = || alias_not_found(alias, "for", name.as_str());
        let (server, version) = if alias == LATEST_ALIAS {
            let server = found.ok_or_else(|| stored_server_not_found(name.as_str()))?;
            let latest = server.latest.as_ref().map(|latest| latest.version.to_string());
            let none =
                || Error::not_found(format!("No resolved latest version found for MCP server '{}'", name.as_str()));
            (server, latest.ok_or_else(none)?)
        } else {
            let server = found.ok_or_else(not_found)?;
            let version = server.aliases.get(alias).cloned().ok_or_else(not_found)?;
            (server, version)
        };
        let stored = self.version_row(server.id, &version).await?;
        let stored = stored.filter(|stored| stored.status != McpStatus::Deleted);
        let stored = stored.ok_or_else(|| Version::not_found(name.as_str(), &version))?;
        self.version_answer(&server, &stored).await
    }

    /// Deletes an alias, with the access endpoints that refer to it. Takes two requests.
    ///
    /// # Errors
    /// Fails with `RESOURCE_DOES_NOT_EXIST` if the server has no such alias.
    pub async fn alias_delete(&self, name: &Granted<McpServerName>, alias: &str) -> Result<()> {
        let not_found = || alias_not_found(alias, "on", name.as_str());
        let change = |server: &mut StoredServer| {
            server.aliases.remove(alias).ok_or_else(not_found)?;
            server.endpoints.retain(|_, endpoint| endpoint.alias.as_deref() != Some(alias));
            Ok(())
        };
        match self.server_change(name, change).await {
            Ok(_) => Ok(()),
            Err(error) if error == stored_server_not_found(name.as_str()) => Err(not_found()),
            Err(error) => Err(error),
        }
    }
}
