//! The server that a request refers to.

use access::{Granted, Resource, Scope, Target};
use mlflow_api::{McpServerName, Request, Result};

/// The name of a server in a path. A text that is not a valid name refers to no server.
#[derive(Clone, Debug)]
pub(crate) struct ServerTarget {
    pub(crate) text: String,
    name: Option<McpServerName>,
}

impl ServerTarget {
    /// Parses the name in the request's path.
    pub(crate) fn of(request: &Request) -> Self {
        let text = request.path_part("name").to_owned();
        Self { name: McpServerName::parse(&text).ok(), text }
    }

    /// Returns the server on which the request requires permissions.
    pub(crate) fn target(&self) -> Target {
        self.name.clone().map_or(Target::Nothing(Resource::McpServer), Target::McpServer)
    }

    /// Returns the name with the scope's grant of access, or `None` if the text is not a valid
    /// name.
    pub(crate) fn granted(&self, scope: &Scope) -> Result<Option<Granted<McpServerName>>> {
        Ok(self.name.as_ref().map(|name| scope.known_mcp_server(name)).transpose()?.flatten())
    }
}
