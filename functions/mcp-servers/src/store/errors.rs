//! MLflow's errors for entities that do not exist.

use mlflow_api::{Error, python};

/// Returns the error of a request that reads a server.
pub(crate) fn server_not_found(name: &str) -> Error {
    Error::not_found(format!("MCP server '{name}' not found"))
}

/// Returns the error of a request that changes a server, or its aliases, tags or access endpoints.
pub(crate) fn stored_server_not_found(name: &str) -> Error {
    Error::not_found(format!("MCPServer not found (name={})", python::repr(name)))
}

/// Returns the error for an alias that does not exist. `of` is the preposition before the server in
/// the message, which differs between requests.
pub(crate) fn alias_not_found(alias: &str, of: &str, name: &str) -> Error {
    Error::not_found(format!("Alias '{alias}' not found {of} MCP server '{name}'"))
}

/// Returns the error for a tag of a server that does not exist.
pub(crate) fn tag_not_found(name: &str, key: &str) -> Error {
    Error::not_found(format!("Tag '{key}' not found on MCP server '{name}'"))
}

/// Returns the error of a request that reads an access endpoint.
pub(crate) fn endpoint_not_found(id: &str) -> Error {
    Error::not_found(format!("MCPAccessEndpoint {id} not found"))
}

/// Returns the error of a request that changes an access endpoint.
pub(crate) fn stored_endpoint_not_found(id: &str) -> Error {
    Error::not_found(format!("MCPAccessEndpoint not found (id={})", python::repr(id)))
}
