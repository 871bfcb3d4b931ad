//! Creating and reading versions.

use access::Granted;
use entities::documents::content;
use entities::{if_closed, now_ms};
use mlflow_api::mcp_servers::{McpStatus, McpVersion, NewMcpVersion, VersionContent};
use mlflow_api::{Error, ErrorCode, McpServerName, McpVersion as Version, Result};
use table::{Failure, Write, WriteRefusal};

use super::server_document::StoredServer;
use super::store::Store;
use super::version_row::{StoredVersion, part_key};

impl Store {
    /// Creates a version, and its server if that does not exist. Takes two requests, and one more
    /// per 25 parts of a large version.
    ///
    /// # Errors
    /// Fails with `RESOURCE_ALREADY_EXISTS` if the version exists, even if it is deleted.
    pub async fn version_create(
        &self,
        name: &Granted<McpServerName>,
        new: &NewMcpVersion,
        user: Option<&str>,
    ) -> Result<McpVersion> {
        let version = Version::parse("server_json.version", &new.server_json.version)?;
        new.status.check_initial()?;
        let content = VersionContent::new(&new.server_json.object, new.tools.as_ref(), new.connect_options.as_ref())?;
        content.to_text()?;
        let mut attempts = self.table.attempts("an MCP server");
        loop {
            attempts.next().await?;
            let found = self.table.get(&StoredServer::key(&self.authorizer_writes.workspace(), name)).await?;
            let mut server = match found.map(StoredServer::of).transpose()? {
                Some(server) if self.authorizer_writes.is_authorized_server(name, &server.id_text()) => server,
                // The request was authorized to create the server, but another request has created
                // one with this name since then, for which this request was not authorized.
                Some(_) => return Err(Error::new(ErrorCode::PermissionDenied, "Permission denied")),
                None => self.new_server(name, user),
            };
            let is_new = server.item.is_none();
            let created = now_ms();
            let stored = StoredVersion {
                server: server.id,
                version: version.clone(),
                status: new.status,
                created,
                updated: created,
                created_by: user.map(str::to_owned),
                updated_by: user.map(str::to_owned),
                source: new.source.clone(),
                tags: std::collections::BTreeMap::new(),
                item: None,
            };
            let packed = stored.pack(&content)?;
            let row = stored.to_item(Some(&packed));
            let as_stored = StoredVersion { item: Some(row.clone()), ..stored };
            let parts = packed.part_keys();
            self.table.write_many(packed.parts, &[]).await?;
            self.update_latest(&mut server, &as_stored).await?;
            let mut others = vec![server.write()?];
            let mut has_check = false;
            if is_new {
                let (check, grant) = self.server_creation_writes(&server);
                has_check = check.is_some();
                others.extend(check.into_iter().chain(grant));
            }
            match self.table.create(row, others).await {
                Ok(()) => return as_stored.answer(&server, content),
                Err(Failure::Cancelled(reasons)) => {
                    // The parts that this attempt has written are removed, because no row refers to
                    // them.
                    self.table.write_many(Vec::new(), &parts).await?;
                    if matches!(reasons.first(), Some(WriteRefusal::Refused(_))) {
                        return Err(Error::new(
                            ErrorCode::ResourceAlreadyExists,
                            format!("MCP server version '{}' version '{version}' already exists", server.name),
                        ));
                    }
                    if let Some(closed) = if_closed(&server.workspace, reasons.get(2).filter(|_| has_check)) {
                        return Err(closed);
                    }
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Reads the row of a version of a server, even if the version is deleted. Takes one request,
    /// or none if the text is not a version.
    pub(super) async fn version_row(&self, server: u64, version: &str) -> Result<Option<StoredVersion>> {
        let Some(version) = Version::of(version) else { return Ok(None) };
        self.table.get(&StoredVersion::key(server, &version)).await?.map(StoredVersion::of).transpose()
    }

    /// Reads a server, and one of its versions that is not deleted. Takes two requests.
    pub(super) async fn version_find(
        &self,
        name: &McpServerName,
        version: &str,
    ) -> Result<(StoredServer, StoredVersion)> {
        let not_found = || Version::not_found(name.as_str(), version);
        let server = self.server_find(name).await?.ok_or_else(not_found)?;
        let found = self.version_row(server.id, version).await?;
        let found = found.filter(|found| found.status != McpStatus::Deleted).ok_or_else(not_found)?;
        Ok((server, found))
    }

    /// Reads a version. Takes two requests, and one more if the version is large.
    pub async fn version_get(&self, name: &Granted<McpServerName>, version: &str) -> Result<McpVersion> {
        let (server, version) = self.version_find(name, version).await?;
        self.version_answer(&server, &version).await
    }

    /// Builds the response about a version. Takes no request, unless the version is large.
    pub(super) async fn version_answer(&self, server: &StoredServer, version: &StoredVersion) -> Result<McpVersion> {
        let content = self.version_content(version).await?;
        version.answer(server, content)
    }

    /// Returns the content of a version. Takes no request, unless it is large.
    pub(super) async fn version_content(&self, version: &StoredVersion) -> Result<VersionContent> {
        let gone = || Error::unavailable("a version of an MCP server was removed while it was read");
        let item = version.item.as_ref().ok_or_else(|| Error::internal("a version without an item was read"))?;
        let text = content::read(&self.table, item, part_key(version.server)).await?.ok_or_else(gone)?;
        VersionContent::parse(&text)
    }
}

/// Returns the write of a changed row of a version.
pub(super) fn version_write(version: &StoredVersion, packed: Option<&content::PackedContent>) -> Write {
    Write::Put(version.to_item(packed), version.is_unchanged())
}
