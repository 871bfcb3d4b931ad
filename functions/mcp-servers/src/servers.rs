//! Endpoints for servers and their tags.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::mcp_servers::{
    McpSearchParameters, McpServer, McpServersResponse, NewMcpServer, SetMcpTag, UpdatedMcpServer,
};
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{Request, Result};
use service::Endpoint;

use crate::request_targets::ServerTarget;
use crate::response_visibility::{shows_versions, visible_server, with_visibility};
use crate::store::{Store, caller_name, server_not_found, stored_server_not_found, tag_not_found};

pub(crate) struct Create(NewMcpServer);

impl Endpoint for Create {
    type Store = Store;
    type Answer = McpServer;

    fn read(request: &Request) -> Result<Self> {
        NewMcpServer::read(request).map(Self)
    }

    fn needs(&self) -> Needs {
        let create = Needs::create_in(Target::McpServer(self.0.name.clone()), Resource::McpServer);
        with_visibility(create)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<McpServer> {
        let mut server = store.server_create(&self.0, caller_name(scope)).await?;
        visible_server(scope, &self.0.name, &mut server);
        // The creator's grant, which allows all actions, was written with the server, after the
        // permissions of this request had been read.
        server.allowed_actions = mlflow_api::mcp_servers::AllowedAction::ALL.to_vec();
        Ok(server)
    }
}

pub(crate) struct Search(McpSearchParameters);

impl Endpoint for Search {
    type Store = Store;
    type Answer = McpServersResponse;

    fn read(request: &Request) -> Result<Self> {
        McpSearchParameters::read(request).map(Self)
    }

    fn needs(&self) -> Needs {
        Needs::list(Resource::McpServer)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<McpServersResponse> {
        let visible = |name: &_, server: &mut _| visible_server(scope, name, server);
        store.server_search(scope.visibility(), &self.0, visible, |name| shows_versions(scope, name)).await
    }
}

pub(crate) struct Get(ServerTarget);

impl Endpoint for Get {
    type Store = Store;
    type Answer = McpServer;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self(ServerTarget::of(request)))
    }

    fn needs(&self) -> Needs {
        with_visibility(Needs::read(self.0.target()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<McpServer> {
        let not_found = || server_not_found(&self.0.text);
        let name = self.0.granted(scope)?.ok_or_else(not_found)?;
        let mut server = store.server_get(&name, shows_versions(scope, &name)).await?;
        visible_server(scope, &name, &mut server);
        Ok(server)
    }
}

pub(crate) struct Update {
    server: ServerTarget,
    update: UpdatedMcpServer,
}

impl Endpoint for Update {
    type Store = Store;
    type Answer = McpServer;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self { server: ServerTarget::of(request), update: UpdatedMcpServer::read(request)? })
    }

    fn needs(&self) -> Needs {
        with_visibility(Needs::update(self.server.target()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<McpServer> {
        let not_found = || stored_server_not_found(&self.server.text);
        let name = self.server.granted(scope)?.ok_or_else(not_found)?;
        let mut server =
            store.server_update(&name, &self.update, caller_name(scope), shows_versions(scope, &name)).await?;
        visible_server(scope, &name, &mut server);
        Ok(server)
    }
}

pub(crate) struct Delete(ServerTarget);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self(ServerTarget::of(request)))
    }

    fn needs(&self) -> Needs {
        Needs::delete(self.0.target())
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let name = self.0.granted(scope)?.ok_or_else(|| stored_server_not_found(&self.0.text))?;
        store.server_delete(&name).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct SetTag {
    server: ServerTarget,
    tag: SetMcpTag,
}

impl Endpoint for SetTag {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self { server: ServerTarget::of(request), tag: SetMcpTag::read(request)? })
    }

    fn needs(&self) -> Needs {
        Needs::update(self.server.target())
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let name = self.server.granted(scope)?.ok_or_else(|| stored_server_not_found(&self.server.text))?;
        store.server_set_tag(&name, &self.tag).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct DeleteTag {
    server: ServerTarget,
    key: String,
}

impl Endpoint for DeleteTag {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self { server: ServerTarget::of(request), key: request.path_part("key").to_owned() })
    }

    /// As in MLflow, deleting a tag requires the permission to delete the server.
    fn needs(&self) -> Needs {
        Needs::of(Action::Delete, [self.server.target()])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let name = self.server.granted(scope)?.ok_or_else(|| tag_not_found(&self.server.text, &self.key))?;
        store.server_delete_tag(&name, &self.key).await?;
        Ok(EmptyResponse {})
    }
}
