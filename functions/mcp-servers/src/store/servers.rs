//! Creating, reading, changing and deleting servers, and their tags.

use access::{Granted, Guard, Resource};
use entities::{finish_mcp_server_removal, if_closed, now_ms};
use key_schema::{Digest, rows};
use mlflow_api::mcp_servers::{McpServer, McpStatus, NewMcpServer, SetMcpTag, UpdatedMcpServer};
use mlflow_api::{Error, ErrorCode, Json, McpServerName, Result};
use rand::RngExt;
use table::{ChangePlan, Failure, Item, Write, WriteRefusal};

use super::errors::{server_not_found, stored_server_not_found, tag_not_found};
use super::server_document::StoredServer;
use super::store::Store;

impl Store {
    /// Reads a server. Returns `None` if it does not exist, or is not the server for which the
    /// request was authorized. Takes one request.
    pub(super) async fn server_find(&self, name: &McpServerName) -> Result<Option<StoredServer>> {
        let key = StoredServer::key(&self.authorizer_writes.workspace(), name);
        let server = self.table.get(&key).await?.map(StoredServer::of).transpose()?;
        // Since the request was authorized, the server may have been deleted, and another one
        // created with its name.
        let is_it = |server: &StoredServer| self.authorizer_writes.is_authorized_server(name, &server.id_text());
        Ok(server.filter(is_it))
    }

    /// Reads a server that a request changes. Takes one request.
    pub(super) async fn server_to_change(&self, name: &McpServerName) -> Result<StoredServer> {
        self.server_find(name).await?.ok_or_else(|| stored_server_not_found(name.as_str()))
    }

    /// Changes the document of a server. Takes two requests, and two more for each concurrent change
    /// of the document.
    pub(super) async fn server_change<T>(
        &self,
        name: &McpServerName,
        mut change: impl FnMut(&mut StoredServer) -> Result<T>,
    ) -> Result<(StoredServer, T)> {
        let mut attempts = self.table.attempts("an MCP server");
        loop {
            attempts.next().await?;
            let mut server = self.server_to_change(name).await?;
            let answer = change(&mut server)?;
            match self.table.transact(&[server.write()?]).await {
                Ok(()) => return Ok((server, answer)),
                Err(Failure::Cancelled(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Returns the writes that creating a server requires in addition to its document: the check
    /// that the workspace is open, and the creator's grant.
    pub(super) fn server_creation_writes(&self, server: &StoredServer) -> (Option<Write>, Vec<Write>) {
        let writes = &self.authorizer_writes;
        let guard = Guard::McpServer(server.name.clone());
        let grant = writes.writes_of_creation(Resource::McpServer, &guard, &server.id_text(), server.name.as_str());
        (writes.workspace_open_condition(&server.workspace), grant)
    }

    /// Returns a new server of the request's workspace.
    pub(super) fn new_server(&self, name: &McpServerName, user: Option<&str>) -> StoredServer {
        StoredServer::new(self.authorizer_writes.workspace(), name.clone(), rand::rng().random(), now_ms(), user)
    }

    /// Creates a server. Takes one request.
    ///
    /// # Errors
    /// Fails with `RESOURCE_ALREADY_EXISTS` if there is a server of this name.
    pub async fn server_create(&self, new: &NewMcpServer, user: Option<&str>) -> Result<McpServer> {
        let mut server = self.new_server(&new.name, user);
        server.description.clone_from(&new.description);
        server.icons = new.icons.as_ref().map(Json::print_unicode);
        let (check, grant) = self.server_creation_writes(&server);
        let has_check = check.is_some();
        let others = check.into_iter().chain(grant).collect();
        match self.table.create(server.to_item()?, others).await {
            Ok(()) => server.answer(Vec::new()),
            Err(Failure::Cancelled(reasons)) => {
                if matches!(reasons.first(), Some(WriteRefusal::Refused(_))) {
                    return Err(Error::new(
                        ErrorCode::ResourceAlreadyExists,
                        format!("MCP server with name '{}' already exists", new.name),
                    ));
                }
                let closed = if_closed(&server.workspace, reasons.get(1).filter(|_| has_check));
                Err(closed.unwrap_or_else(|| Failure::Cancelled(reasons).into()))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Reads a server with its access endpoints. Takes one request. If it has access endpoints and
    /// `with_versions` is set, takes one more for their versions, and one for each large version.
    pub async fn server_get(&self, name: &Granted<McpServerName>, with_versions: bool) -> Result<McpServer> {
        let server = self.server_find(name).await?.ok_or_else(|| server_not_found(name.as_str()))?;
        self.server_answer(&server, with_versions).await
    }

    /// Builds the response about a server.
    pub(super) async fn server_answer(&self, server: &StoredServer, with_versions: bool) -> Result<McpServer> {
        let endpoints = self.endpoints_of(server, server.endpoints.iter(), with_versions).await?;
        server.answer(endpoints)
    }

    /// Changes the texts and the icons of a server. Takes two requests, and those that
    /// [`server_get`](Self::server_get) takes for access endpoints.
    pub async fn server_update(
        &self,
        name: &Granted<McpServerName>,
        update: &UpdatedMcpServer,
        user: Option<&str>,
        with_versions: bool,
    ) -> Result<McpServer> {
        let change = |server: &mut StoredServer| {
            if let Some(display_name) = &update.display_name {
                server.display_name.clone_from(display_name);
            }
            if let Some(description) = &update.description {
                server.description.clone_from(description);
            }
            if let Some(icons) = &update.icons {
                server.icons = icons.as_ref().map(Json::print_unicode);
            }
            server.updated = now_ms();
            server.updated_by = user.map(str::to_owned);
            Ok(())
        };
        let (server, ()) = self.server_change(name, change).await?;
        self.server_answer(&server, with_versions).await
    }

    /// Deletes a server with its versions, unless one of them is active. Takes four requests, one
    /// more per 25 versions, and one more per 25 parts of large versions.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if a version is active.
    pub async fn server_delete(&self, name: &Granted<McpServerName>) -> Result<()> {
        let deleted = self
            .table
            .change("an MCP server", async |_| {
                let server = self.server_to_change(name).await?;
                if let Some(latest) = server.latest.as_ref().filter(|latest| latest.status == McpStatus::Active) {
                    return Err(Error::invalid(format!(
                        "Cannot delete MCP server '{}' while it still has an active version ('{}'). Delete or deactivate \
                         the active version first.",
                        server.name, latest.version
                    )));
                }
                let id = Digest(server.id);
                let removal = Item::new(rows::McpServerRemoval::key(&id));
                let mut writes = vec![
                    Write::Delete(StoredServer::key(&server.workspace, &server.name), server.is_unchanged()),
                    Write::Put(removal, table::Condition::Always),
                ];
                writes.extend(self.authorizer_writes.writes_of_deletion(&Guard::McpServer(server.name.clone())));
                Ok(ChangePlan::Write(writes, id))
            })
            .await?;
        // The server is deleted, so the request must succeed. The housekeeper removes the remaining
        // rows.
        if let Err(error) = finish_mcp_server_removal(&self.table, deleted).await {
            tracing::warn!(%error, "versions of a deleted MCP server remain");
        }
        Ok(())
    }

    /// Sets a tag. Takes two requests.
    pub async fn server_set_tag(&self, name: &Granted<McpServerName>, tag: &SetMcpTag) -> Result<()> {
        let change = |server: &mut StoredServer| {
            server.tags.insert(tag.key.clone(), tag.value.clone());
            Ok(())
        };
        self.server_change(name, change).await.map(drop)
    }

    /// Deletes a tag. Takes two requests.
    ///
    /// # Errors
    /// Fails with `RESOURCE_DOES_NOT_EXIST` if the server has no such tag.
    pub async fn server_delete_tag(&self, name: &Granted<McpServerName>, key: &str) -> Result<()> {
        let not_found = || tag_not_found(name.as_str(), key);
        let change = |server: &mut StoredServer| server.tags.remove(key).map(drop).ok_or_else(not_found);
        match self.server_change(name, change).await {
            Ok(_) => Ok(()),
            Err(error) if error == stored_server_not_found(name.as_str()) => Err(not_found()),
            Err(error) => Err(error),
        }
    }
}
