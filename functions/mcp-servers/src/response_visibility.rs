//! What responses about servers contain: versions only if the caller may read them, and the actions
//! that the caller may perform.

use access::{Action, Guard, Needs, Resource, Scope};
use mlflow_api::McpServerName;
use mlflow_api::mcp_servers::{AccessEndpointSummary, AllowedAction, McpServer};

/// Adds the need that reports what the caller may do with servers, and which versions the caller may
/// read. Takes one more request, and none for administrators and on servers without users.
pub(crate) fn with_visibility(needs: Needs) -> Needs {
    needs.and_all(Needs::list(Resource::McpServer))
}

/// Checks whether the caller may read the versions of a server.
pub(crate) fn shows_versions(scope: &Scope, name: &McpServerName) -> bool {
    scope.visibility().shows_as(Resource::McpServerVersion, &Guard::McpServer(name.clone()))
}

/// Removes what the caller may not read from an access endpoint.
pub(crate) fn visible_endpoint(scope: &Scope, name: &McpServerName, endpoint: &mut AccessEndpointSummary) {
    if !shows_versions(scope, name) {
        endpoint.resolved_version = None;
    }
}

/// Removes what the caller may not read from a server, and adds what the caller may do with it.
pub(crate) fn visible_server(scope: &Scope, name: &McpServerName, server: &mut McpServer) {
    let guard = Guard::McpServer(name.clone());
    let may = |action: &AllowedAction| {
        let action = match action {
            AllowedAction::Use => Action::Use,
            AllowedAction::Update => Action::Update,
            // Without the check of versions, as in MLflow.
            AllowedAction::Delete | AllowedAction::Manage => Action::Manage,
        };
        scope.allows_listed(action, Resource::McpServer, &guard)
    };
    server.allowed_actions = AllowedAction::ALL.into_iter().filter(may).collect();
    for endpoint in &mut server.access_endpoints {
        visible_endpoint(scope, name, endpoint);
    }
}
