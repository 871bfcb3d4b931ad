//! Endpoints for versions and their tags.

use access::{Action, Needs, Resource, Scope};
use mlflow_api::mcp_servers::{
    McpSearchParameters, McpVersion, McpVersionsResponse, NewMcpVersion, SetMcpTag, UpdatedMcpVersion,
};
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{McpServerName, McpVersion as Version, Request, Result};
use service::Endpoint;

use crate::request_targets::ServerTarget;
use crate::store::{Store, caller_name};

/// The version that a request refers to. The text in the path has not been checked.
struct VersionTarget {
    server: ServerTarget,
    version: String,
}

impl VersionTarget {
    fn of(request: &Request) -> Self {
        Self { server: ServerTarget::of(request), version: request.path_part("version").to_owned() }
    }

    fn needs(&self, action: Action) -> Needs {
        Needs::of_in(action, Resource::McpServerVersion, self.server.target())
    }

    /// Returns the name of the server with the scope's grant of access, and the text of the
    /// version.
    fn granted(&self, scope: &Scope) -> Result<(access::Granted<McpServerName>, &str)> {
        let server = self.server.granted(scope)?;
        server
            .map(|server| (server, self.version.as_str()))
            .ok_or_else(|| Version::not_found(&self.server.text, &self.version))
    }
}

pub(crate) struct Create {
    server: ServerTarget,
    new: NewMcpVersion,
}

impl Endpoint for Create {
    type Store = Store;
    type Answer = McpVersion;

    fn read(request: &Request) -> Result<Self> {
        let server = ServerTarget::of(request);
        let (_, new) = NewMcpVersion::read(request, &server.text)?;
        Ok(Self { server, new })
    }

    fn needs(&self) -> Needs {
        Needs::create_in(self.server.target(), Resource::McpServerVersion)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<McpVersion> {
        let not_found = || Version::not_found(&self.server.text, &self.new.server_json.version);
        let name = self.server.granted(scope)?.ok_or_else(not_found)?;
        Box::pin(store.version_create(&name, &self.new, caller_name(scope))).await
    }
}

pub(crate) struct Search {
    server: ServerTarget,
    search: McpSearchParameters,
}

impl Endpoint for Search {
    type Store = Store;
    type Answer = McpVersionsResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self { server: ServerTarget::of(request), search: McpSearchParameters::read(request)? })
    }

    fn needs(&self) -> Needs {
        Needs::of_in(Action::Read, Resource::McpServerVersion, self.server.target())
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<McpVersionsResponse> {
        let server = self.server.granted(scope)?;
        Box::pin(store.version_search(server.as_ref(), &self.search)).await
    }
}

pub(crate) struct Get(VersionTarget);

impl Endpoint for Get {
    type Store = Store;
    type Answer = McpVersion;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self(VersionTarget::of(request)))
    }

    fn needs(&self) -> Needs {
        self.0.needs(Action::Read)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<McpVersion> {
        let (server, version) = self.0.granted(scope)?;
        store.version_get(&server, version).await
    }
}

pub(crate) struct Update {
    target: VersionTarget,
    update: UpdatedMcpVersion,
}

impl Endpoint for Update {
    type Store = Store;
    type Answer = McpVersion;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self { target: VersionTarget::of(request), update: UpdatedMcpVersion::read(request)? })
    }

    fn needs(&self) -> Needs {
        self.target.needs(Action::Update)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<McpVersion> {
        let (server, version) = self.target.granted(scope)?;
        Box::pin(store.version_update(&server, version, &self.update, caller_name(scope))).await
    }
}

pub(crate) struct Delete(VersionTarget);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self(VersionTarget::of(request)))
    }

    fn needs(&self) -> Needs {
        self.0.needs(Action::Delete)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let (server, version) = self.0.granted(scope)?;
        Box::pin(store.version_delete(&server, version)).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct SetTag {
    target: VersionTarget,
    tag: SetMcpTag,
}

impl Endpoint for SetTag {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self { target: VersionTarget::of(request), tag: SetMcpTag::read(request)? })
    }

    fn needs(&self) -> Needs {
        self.target.needs(Action::Update)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let (server, version) = self.target.granted(scope)?;
        store.version_set_tag(&server, version, &self.tag).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct DeleteTag {
    target: VersionTarget,
    key: String,
}

impl Endpoint for DeleteTag {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self { target: VersionTarget::of(request), key: request.path_part("key").to_owned() })
    }

    fn needs(&self) -> Needs {
        self.target.needs(Action::Delete)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let (server, version) = self.target.granted(scope)?;
        store.version_delete_tag(&server, version, &self.key).await?;
        Ok(EmptyResponse {})
    }
}
