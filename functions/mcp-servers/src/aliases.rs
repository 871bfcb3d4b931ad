//! Endpoints for aliases.

use access::{Action, Needs, Resource, Scope};
use mlflow_api::mcp_servers::{McpVersion, SetMcpAlias};
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{Error, Request, Result};
use service::Endpoint;

use crate::request_targets::ServerTarget;
use crate::store::{LATEST_ALIAS, Store, alias_not_found, stored_server_not_found};

/// Adds the need to read versions, because the endpoints for aliases reveal which version an alias
/// refers to.
fn with_versions(needs: Needs, server: &ServerTarget) -> Needs {
    needs.and_in(Action::Read, Resource::McpServerVersion, [server.target()])
}

pub(crate) struct Set {
    server: ServerTarget,
    alias: SetMcpAlias,
}

impl Endpoint for Set {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let (server, alias) = (ServerTarget::of(request), SetMcpAlias::read(request)?);
        if alias.alias == LATEST_ALIAS {
            return Err(Error::invalid("The alias name 'latest' is reserved for automatic resolution"));
        }
        Ok(Self { server, alias })
    }

    fn needs(&self) -> Needs {
        with_versions(Needs::update(self.server.target()), &self.server)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let name = self.server.granted(scope)?.ok_or_else(|| stored_server_not_found(&self.server.text))?;
        store.alias_set(&name, &self.alias).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct Get {
    server: ServerTarget,
    alias: String,
}

impl Endpoint for Get {
    type Store = Store;
    type Answer = McpVersion;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self { server: ServerTarget::of(request), alias: request.path_part("alias").to_owned() })
    }

    fn needs(&self) -> Needs {
        with_versions(Needs::read(self.server.target()), &self.server)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<McpVersion> {
        let name = self.server.granted(scope)?.ok_or_else(|| alias_not_found(&self.alias, "for", &self.server.text))?;
        store.alias_get(&name, &self.alias).await
    }
}

pub(crate) struct Delete {
    server: ServerTarget,
    alias: String,
}

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self { server: ServerTarget::of(request), alias: request.path_part("alias").to_owned() })
    }

    /// As in MLflow, deleting an alias requires the right to delete the server, but not its
    /// versions.
    fn needs(&self) -> Needs {
        with_versions(Needs::of(Action::Manage, [self.server.target()]), &self.server)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let name = self.server.granted(scope)?.ok_or_else(|| alias_not_found(&self.alias, "on", &self.server.text))?;
        store.alias_delete(&name, &self.alias).await?;
        Ok(EmptyResponse {})
    }
}
