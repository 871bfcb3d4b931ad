//! Changing and deleting versions, and their tags.

use access::Granted;
use entities::documents::content;
use entities::now_ms;
use mlflow_api::mcp_servers::{McpStatus, McpVersion, SetMcpTag, UpdatedMcpVersion, VersionContent};
use mlflow_api::{Error, Json, McpServerName, McpVersion as Version, Result};
use serde_json::value::RawValue;
use table::{ChangePlan, Failure};

use super::server_document::StoredServer;
use super::store::Store;
use super::version_row::{StoredVersion, part_key};
use super::versions::version_write;

impl Store {
    /// Changes a version. Takes three requests, and one more per 25 parts of a large version. If
    /// the latest version is no longer active, takes one more per MB of versions.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the change of the status is not allowed.
    pub async fn version_update(
        &self,
        name: &Granted<McpServerName>,
        version: &str,
        update: &UpdatedMcpVersion,
        user: Option<&str>,
    ) -> Result<McpVersion> {
        let mut attempts = self.table.attempts("a version of an MCP server");
        loop {
            attempts.next().await?;
            let (mut server, before) = self.version_find(name, version).await?;
            let mut changed = before.clone();
            if let Some(status) = update.status {
                before.status.check_change(status)?;
                changed.status = status;
            }
            changed.updated = now_ms();
            changed.updated_by = user.map(str::to_owned);
            let mut content = self.version_content(&before).await?;
            let replaces = update.tools.is_some() || update.connect_options.is_some();
            let packed = if replaces {
                replace(&mut content, update)?;
                Some(changed.pack(&content)?)
            } else {
                None
            };
            let mut writes = vec![version_write(&changed, packed.as_ref())];
            if update.status.is_some() {
                if changed.status == McpStatus::Deleted {
                    remove_references(&mut server, version);
                }
                let as_stored = StoredVersion { item: Some(changed.to_item(packed.as_ref())), ..changed.clone() };
                let new_parts = packed.as_ref().map(|packed| packed.parts.clone()).unwrap_or_default();
                self.table.write_many(new_parts, &[]).await?;
                self.update_latest(&mut server, &as_stored).await?;
                writes.push(server.write()?);
            } else if let Some(packed) = &packed {
                self.table.write_many(packed.parts.clone(), &[]).await?;
            }
            let of_before = before.item.as_ref().map(|item| content::part_keys(item, part_key(before.server)));
            let old_parts = of_before.filter(|_| replaces).unwrap_or_default();
            match self.table.transact(&writes).await {
                Ok(()) => {
                    self.table.write_many(Vec::new(), &old_parts).await?;
                    return changed.answer(&server, content);
                }
                Err(Failure::Cancelled(_)) => {
                    let unused = packed.map(|packed| packed.part_keys()).unwrap_or_default();
                    self.table.write_many(Vec::new(), &unused).await?;
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Deletes a version, with the aliases and the access endpoints that refer to it. Takes three
    /// requests. If it is the latest version, takes one more per MB of versions.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the version is active or already deleted.
    pub async fn version_delete(&self, name: &Granted<McpServerName>, version: &str) -> Result<()> {
        let not_found = || Version::not_found(name.as_str(), version);
        let change = self.table.change("a version of an MCP server", async |_| {
            let mut server = self.server_find(name).await?.ok_or_else(not_found)?;
            let mut found = self.version_row(server.id, version).await?.ok_or_else(not_found)?;
            found.status.check_change(McpStatus::Deleted)?;
            found.status = McpStatus::Deleted;
            found.updated = now_ms();
            remove_references(&mut server, version);
            self.update_latest(&mut server, &found).await?;
            Ok::<_, Error>(ChangePlan::Write(vec![version_write(&found, None), server.write()?], ()))
        });
        Box::pin(change).await
    }

    /// Sets a tag of a version. Takes three requests.
    pub async fn version_set_tag(&self, name: &Granted<McpServerName>, version: &str, tag: &SetMcpTag) -> Result<()> {
        self.version_change(name, version, |stored| {
            stored.tags.insert(tag.key.clone(), tag.value.clone());
            let bytes: usize = stored.tags.iter().map(|(key, value)| key.len() + value.len()).sum();
            if bytes > MAX_TAG_BYTES {
                return Err(Error::invalid(format!(
                    "The tags of a version have at most {MAX_TAG_BYTES} bytes together."
                )));
            }
            Ok(())
        })
        .await
    }

    /// Deletes a tag of a version. Takes three requests.
    ///
    /// # Errors
    /// Fails with `RESOURCE_DOES_NOT_EXIST` if the version has no such tag.
    pub async fn version_delete_tag(&self, name: &Granted<McpServerName>, version: &str, key: &str) -> Result<()> {
        let not_found = || {
            Error::not_found(format!(
                "Tag '{key}' not found on MCP server version '{name}' version '{version}'",
                name = name.as_str()
            ))
        };
        self.version_change(name, version, |stored| stored.tags.remove(key).map(drop).ok_or_else(not_found)).await
    }

    async fn version_change(
        &self,
        name: &McpServerName,
        version: &str,
        mut change: impl FnMut(&mut StoredVersion) -> Result<()>,
    ) -> Result<()> {
        let mut attempts = self.table.attempts("a version of an MCP server");
        loop {
            attempts.next().await?;
            let (_, mut stored) = self.version_find(name, version).await?;
            change(&mut stored)?;
            match self.table.transact(&[version_write(&stored, None)]).await {
                Ok(()) => return Ok(()),
                Err(Failure::Cancelled(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}

/// Maximum total size of the tags of a version, in bytes.
const MAX_TAG_BYTES: usize = 128 << 10;

/// Replaces those parts of a version's content that a request contains.
fn replace(content: &mut VersionContent, update: &UpdatedMcpVersion) -> Result<()> {
    let raw = |value: &Option<Json>| {
        let text = value.as_ref().map(Json::print_unicode);
        text.map(|text| RawValue::from_string(text).map_err(Error::internal)).transpose()
    };
    if let Some(tools) = &update.tools {
        content.tools = raw(tools)?;
    }
    if let Some(options) = &update.connect_options {
        content.connect_options = raw(options)?;
    }
    Ok(())
}

/// Removes the aliases of a deleted version, and the access endpoints that refer to it.
fn remove_references(server: &mut StoredServer, version: &str) {
    let aliases = server.aliases_of(version);
    server.aliases.retain(|_, other| other != version);
    server.endpoints.retain(|_, endpoint| {
        let is_by_alias = endpoint.alias.as_ref().is_some_and(|alias| aliases.contains(alias));
        !is_by_alias && endpoint.version.as_deref() != Some(version)
    });
}
