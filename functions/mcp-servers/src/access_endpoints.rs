//! Endpoints for access endpoints, which are URLs at which clients reach a version of a server.

use access::{Action, Needs, Resource, Scope};
use mlflow_api::mcp_servers::{
    AccessEndpoint, EndpointTargets, McpEndpointsResponse, McpSearchParameters, NewAccessEndpoint,
    UpdatedAccessEndpoint,
};
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{Request, Result};
use service::Endpoint;

use crate::request_targets::ServerTarget;
use crate::response_visibility::{shows_versions, with_visibility};
use crate::store::{Store, caller_name, endpoint_not_found, stored_endpoint_not_found, stored_server_not_found};

/// Adds the need to use the versions of the server if the request names a version or an alias, or
/// searches by them.
fn naming_version(needs: Needs, server: &ServerTarget, names_version: bool) -> Needs {
    if names_version { needs.and_in(Action::Use, Resource::McpServerVersion, [server.target()]) } else { needs }
}

/// Checks whether a search selects access endpoints by their version, its alias or its status.
fn selects_version(targets: &EndpointTargets, search: &McpSearchParameters) -> bool {
    let is_set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    is_set(&targets.server_version) || is_set(&targets.server_alias) || search.filter.contains("status")
}

pub(crate) struct Create {
    server: ServerTarget,
    new: NewAccessEndpoint,
}

impl Endpoint for Create {
    type Store = Store;
    type Answer = AccessEndpoint;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self { server: ServerTarget::of(request), new: NewAccessEndpoint::read(request)? })
    }

    fn needs(&self) -> Needs {
        with_visibility(naming_version(Needs::update(self.server.target()), &self.server, true))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<AccessEndpoint> {
        let name = self.server.granted(scope)?.ok_or_else(|| stored_server_not_found(&self.server.text))?;
        let shows = shows_versions(scope, &name);
        Box::pin(store.endpoint_create(&name, &self.new, caller_name(scope), shows)).await
    }
}

/// The id of an access endpoint in a path, and its server.
struct EndpointTarget {
    server: ServerTarget,
    id: String,
}

impl EndpointTarget {
    fn of(request: &Request) -> Self {
        Self { server: ServerTarget::of(request), id: request.path_part("endpoint_id").to_owned() }
    }
}

pub(crate) struct Get(EndpointTarget);

impl Endpoint for Get {
    type Store = Store;
    type Answer = AccessEndpoint;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self(EndpointTarget::of(request)))
    }

    fn needs(&self) -> Needs {
        with_visibility(Needs::read(self.0.server.target()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<AccessEndpoint> {
        let name = self.0.server.granted(scope)?.ok_or_else(|| endpoint_not_found(&self.0.id))?;
        store.endpoint_get(&name, &self.0.id, shows_versions(scope, &name)).await
    }
}

pub(crate) struct Update {
    target: EndpointTarget,
    update: UpdatedAccessEndpoint,
}

impl Endpoint for Update {
    type Store = Store;
    type Answer = AccessEndpoint;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self { target: EndpointTarget::of(request), update: UpdatedAccessEndpoint::read(request)? })
    }

    fn needs(&self) -> Needs {
        let UpdatedAccessEndpoint { server_version, server_alias, .. } = &self.update;
        let names_version = server_version.is_some() || server_alias.is_some();
        let needs = Needs::update(self.target.server.target());
        with_visibility(naming_version(needs, &self.target.server, names_version))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<AccessEndpoint> {
        let not_found = || stored_endpoint_not_found(&self.target.id);
        let name = self.target.server.granted(scope)?.ok_or_else(not_found)?;
        let shows = shows_versions(scope, &name);
        Box::pin(store.endpoint_update(&name, &self.target.id, &self.update, caller_name(scope), shows)).await
    }
}

pub(crate) struct Delete(EndpointTarget);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self(EndpointTarget::of(request)))
    }

    fn needs(&self) -> Needs {
        Needs::delete(self.0.server.target())
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let name = self.0.server.granted(scope)?.ok_or_else(|| stored_endpoint_not_found(&self.0.id))?;
        store.endpoint_delete(&name, &self.0.id).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct Search {
    server: ServerTarget,
    targets: EndpointTargets,
    parameters: McpSearchParameters,
}

impl Endpoint for Search {
    type Store = Store;
    type Answer = McpEndpointsResponse;

    fn read(request: &Request) -> Result<Self> {
        let (server, targets) = (ServerTarget::of(request), EndpointTargets::read(request));
        Ok(Self { server, targets, parameters: McpSearchParameters::read(request)? })
    }

    fn needs(&self) -> Needs {
        let selects = selects_version(&self.targets, &self.parameters);
        with_visibility(naming_version(Needs::read(self.server.target()), &self.server, selects))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<McpEndpointsResponse> {
        let name = self.server.granted(scope)?;
        let shows = |name: &_| shows_versions(scope, name);
        store.endpoint_search_of(name.as_ref(), &self.targets, &self.parameters, shows).await
    }
}

pub(crate) struct SearchAll {
    targets: EndpointTargets,
    parameters: McpSearchParameters,
}

impl Endpoint for SearchAll {
    type Store = Store;
    type Answer = McpEndpointsResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self { targets: EndpointTargets::read(request), parameters: McpSearchParameters::read(request)? })
    }

    fn needs(&self) -> Needs {
        Needs::list(Resource::McpServer)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<McpEndpointsResponse> {
        let shows = |name: &_| shows_versions(scope, name);
        store.endpoint_search(scope.visibility(), &self.targets, &self.parameters, shows).await
    }
}
