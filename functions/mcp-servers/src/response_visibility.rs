//! Adapts responses about servers to the caller: they contain versions only if the caller may read
//! them, and list the actions that the caller may perform.

use access::{Action, Guard, Needs, Resource, Scope};
use mlflow_api::McpServerName;
use mlflow_api::mcp_servers::{AccessEndpointSummary, AllowedAction, McpServer};

/// Adds a need that loads the caller's permissions for servers and versions, which the response
/// depends on. Takes one more request, except for administrators and on servers without users.
pub(crate) fn with_visibility(needs: Needs) -> Needs {
    needs.and_all(Needs::list(Resource::McpServer))
}

/// Checks whether the caller may read the versions of a server.
pub(crate) fn shows_versions(scope: &Scope, name: &McpServerName) -> bool {
    scope.visibility().shows_as(Resource::McpServerVersion, &Guard::McpServer(name.clone()))
}

/// Removes the resolved version from an access endpoint if the caller may not read it.
pub(crate) fn visible_endpoint(scope: &Scope, name: &McpServerName, endpoint: &mut AccessEndpointSummary) {
    if !shows_versions(scope, name) {
        endpoint.resolved_version = None;
    }
}

/// Removes versions that the caller may not read from a server, and adds the actions that the
/// caller may perform on it.
pub(crate) fn visible_server(scope: &Scope, name: &McpServerName, server: &mut McpServer) {
    let guard = Guard::McpServer(name.clone());
    let may = |action: &AllowedAction| {
        let action = match action {
            AllowedAction::Use => Action::Use,
            AllowedAction::Update => Action::Update,
            // As in MLflow, permissions for versions are not considered here, although deleting a
            // server also deletes its versions.
            AllowedAction::Delete | AllowedAction::Manage => Action::Manage,
        };
        scope.allows_listed(action, Resource::McpServer, &guard)
    };
    server.allowed_actions = AllowedAction::ALL.into_iter().filter(may).collect();
    for endpoint in &mut server.access_endpoints {
        visible_endpoint(scope, name, endpoint);
    }
}
