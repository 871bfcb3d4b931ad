//! Access endpoints of servers.

use std::collections::HashMap;

use access::Granted;
use entities::attributes::ACCESS_ENDPOINTS;
use entities::now_ms;
use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::mcp_servers::{
    AccessEndpoint, AccessEndpointSummary, MAX_ENDPOINTS, McpStatus, McpVersion, NewAccessEndpoint,
    UpdatedAccessEndpoint,
};
use mlflow_api::response_size::{MAX_JSON_BYTES, too_long};
use mlflow_api::{Error, McpServerName, McpVersion as Version, Result};
use rand::RngExt;
use table::Failure;

use super::errors::{alias_not_found, endpoint_not_found, stored_endpoint_not_found, stored_server_not_found};
use super::server_document::{LATEST_ALIAS, StoredEndpoint, StoredServer};
use super::store::Store;
use super::version_row::StoredVersion;

/// Number of large versions that are read concurrently.
const CONCURRENCY: usize = 4;

impl Store {
    /// Reads these versions of a server, except deleted ones. Takes one request per 100 versions.
    pub(super) async fn version_rows<'a>(
        &self,
        server: &StoredServer,
        versions: impl Iterator<Item = &'a str>,
    ) -> Result<HashMap<String, StoredVersion>> {
        let keys: Vec<_> =
            versions.filter_map(Version::of).map(|version| StoredVersion::key(server.id, &version)).collect();
        let items = self.table.get_many(&keys).await?;
        let rows = items.into_values().map(StoredVersion::of).collect::<Result<Vec<_>>>()?;
        let live = rows.into_iter().filter(|row| row.status != McpStatus::Deleted);
        Ok(live.map(|row| (row.version.to_string(), row)).collect())
    }

    /// Builds access endpoints of a server for a response. With `with_versions`, takes one request
    /// for their versions, and one for each large version.
    pub(super) async fn endpoints_of<'a>(
        &self,
        server: &StoredServer,
        endpoints: impl Iterator<Item = (&'a String, &'a StoredEndpoint)>,
        with_versions: bool,
    ) -> Result<Vec<AccessEndpointSummary>> {
        let endpoints: Vec<_> = endpoints.collect();
        let mut versions = HashMap::new();
        if with_versions && !endpoints.is_empty() {
            let mut named: Vec<_> =
                endpoints.iter().filter_map(|(_, endpoint)| server.version_of_endpoint(endpoint)).collect();
            named.sort_unstable();
            named.dedup();
            let rows = self.version_rows(server, named.into_iter()).await?;
            let size_of = |(_, endpoint): &(_, &StoredEndpoint)| {
                let row = server.version_of_endpoint(endpoint).and_then(|version| rows.get(version));
                row.map_or(0, StoredVersion::content_size)
            };
            if endpoints.iter().map(size_of).sum::<usize>() > MAX_JSON_BYTES {
                return Err(too_long("The list of access endpoints", MAX_JSON_BYTES));
            }
            let answers = rows.values().map(|row| self.version_answer(server, row));
            let answers: Vec<McpVersion> =
                stream::iter(answers.collect::<Vec<_>>()).buffered(CONCURRENCY).try_collect().await?;
            versions = answers.into_iter().map(|version| (version.version.clone(), version)).collect();
        }
        let resolved =
            |endpoint: &StoredEndpoint| server.version_of_endpoint(endpoint).and_then(|version| versions.get(version));
        let answer =
            |(id, endpoint): (&String, &StoredEndpoint)| server.endpoint(id, endpoint, resolved(endpoint).cloned());
        Ok(endpoints.into_iter().map(answer).collect())
    }

    async fn endpoint_answer(&self, server: &StoredServer, id: &str, with_version: bool) -> Result<AccessEndpoint> {
        let endpoint = server.endpoints.get_key_value(id).into_iter();
        let mut found = self.endpoints_of(server, endpoint, with_version).await?;
        found.pop().map(AccessEndpoint::from).ok_or_else(|| endpoint_not_found(id))
    }

    /// Checks that the version or the alias of an access endpoint exists. `what` is the verb in the
    /// error message, such as "create". Takes one request for a version. Takes none for an alias:
    /// deleting a version also deletes its aliases, so an alias always refers to an existing
    /// version.
    async fn check_target(
        &self,
        server: &StoredServer,
        (version, alias): (Option<&str>, Option<&str>),
        what: &str,
    ) -> Result<()> {
        if let Some(version) = version {
            let found = self.version_row(server.id, version).await?;
            let found = found.ok_or_else(|| Version::not_found(server.name.as_str(), version))?;
            if found.status == McpStatus::Deleted {
                return Err(Error::invalid(format!(
                    "Cannot {what} MCP access endpoint to deleted MCP server version '{}' version '{version}'",
                    server.name
                )));
            }
        }
        match alias {
            Some(LATEST_ALIAS) if server.latest.is_none() => {
                Err(Error::not_found(format!("No resolved latest version found for MCP server '{}'", server.name)))
            }
            Some(alias) if server.version_of_alias(alias).is_none() => {
                Err(alias_not_found(alias, "for", server.name.as_str()))
            }
            _ => Ok(()),
        }
    }

    /// Creates an access endpoint. Takes two requests, and one more if it names a version. With
    /// `with_version`, also takes the requests for the version that
    /// [`endpoint_get`](Self::endpoint_get) takes.
    pub async fn endpoint_create(
        &self,
        name: &Granted<McpServerName>,
        new: &NewAccessEndpoint,
        user: Option<&str>,
        with_version: bool,
    ) -> Result<AccessEndpoint> {
        let id = format!("ae-{:032x}", rand::rng().random::<u128>());
        let mut attempts = self.table.attempts("an MCP server");
        loop {
            attempts.next().await?;
            let mut server = self.server_to_change(name).await?;
            self.check_target(&server, (new.server_version.as_deref(), new.server_alias.as_deref()), "create").await?;
            if server.endpoints.len() >= MAX_ENDPOINTS {
                return Err(Error::invalid(format!("An MCP server has at most {MAX_ENDPOINTS} access endpoints.")));
            }
            let created = now_ms();
            let endpoint = StoredEndpoint {
                url: new.url.clone(),
                transport: new.transport_type.name().to_owned(),
                version: new.server_version.clone(),
                alias: new.server_alias.clone(),
                created,
                updated: created,
                created_by: user.map(str::to_owned),
                updated_by: user.map(str::to_owned),
            };
            server.endpoints.insert(id.clone(), endpoint);
            // The response is built before the write, because a failure after the write would make
            // clients retry and create a second endpoint.
            let answer = self.endpoint_answer(&server, &id, with_version).await?;
            let key = StoredServer::key(&server.workspace, &server.name);
            let is_made = async {
                let found = self.table.get(&key).await?;
                Ok::<_, Failure>(
                    found.is_some_and(|item| item.map(ACCESS_ENDPOINTS).is_some_and(|all| all.contains_key(&id))),
                )
            };
            match Box::pin(self.table.create_within(&[server.write()?], is_made)).await {
                Ok(()) => return Ok(answer),
                Err(Failure::Cancelled(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Reads an access endpoint. Takes one request. With `with_version`, takes one more for the
    /// version, and another one if the version is large.
    pub async fn endpoint_get(
        &self,
        name: &Granted<McpServerName>,
        id: &str,
        with_version: bool,
    ) -> Result<AccessEndpoint> {
        let server = self.server_find(name).await?.ok_or_else(|| endpoint_not_found(id))?;
        self.endpoint_answer(&server, id, with_version).await
    }

    /// Changes an access endpoint. Takes two requests, and one more if it names a version. With
    /// `with_version`, also takes the requests for the version that
    /// [`endpoint_get`](Self::endpoint_get) takes.
    pub async fn endpoint_update(
        &self,
        name: &Granted<McpServerName>,
        id: &str,
        update: &UpdatedAccessEndpoint,
        user: Option<&str>,
        with_version: bool,
    ) -> Result<AccessEndpoint> {
        let not_found = || stored_endpoint_not_found(id);
        let mut attempts = self.table.attempts("an MCP server");
        loop {
            attempts.next().await?;
            let mut server = self.server_find(name).await?.ok_or_else(not_found)?;
            let mut endpoint = server.endpoints.get(id).cloned().ok_or_else(not_found)?;
            let UpdatedAccessEndpoint { server_version, server_alias, transport_type, .. } = update;
            self.check_target(&server, (server_version.as_deref(), server_alias.as_deref()), "update").await?;
            if server_version.is_some() || server_alias.is_some() {
                endpoint.version.clone_from(server_version);
                endpoint.alias.clone_from(server_alias);
            }
            if let Some(url) = update.checked_url()? {
                url.clone_into(&mut endpoint.url);
            }
            if let Some(transport) = transport_type {
                transport.name().clone_into(&mut endpoint.transport);
            }
            endpoint.updated = now_ms();
            endpoint.updated_by = user.map(str::to_owned);
            server.endpoints.insert(id.to_owned(), endpoint);
            match self.table.transact(&[server.write()?]).await {
                Ok(()) => return self.endpoint_answer(&server, id, with_version).await,
                Err(Failure::Cancelled(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Deletes an access endpoint. Takes two requests.
    pub async fn endpoint_delete(&self, name: &Granted<McpServerName>, id: &str) -> Result<()> {
        let not_found = || stored_endpoint_not_found(id);
        let change = |server: &mut StoredServer| server.endpoints.remove(id).map(drop).ok_or_else(not_found);
        match self.server_change(name, change).await {
            Ok(_) => Ok(()),
            Err(error) if error == stored_server_not_found(name.as_str()) => Err(not_found()),
            Err(error) => Err(error),
        }
    }
}
