//! The declaration of the domain: its function in the stack, and how it is mounted.

use domain::{Domain, DomainApi, Environment, Function, Indexes, MountFailure, TableActions, TableRights};
use service::Route;

use crate::store::Store;

/// The domain of the MCP server registry: servers, their versions, and access endpoints.
pub const DOMAIN: Domain = Domain::of::<McpServers>(Function {
    name: "mcp-servers",
    resource: "McpServers",
    description: "The registry of MCP servers.",
    paths: &[
        "/api/3.0/mlflow/mcp-servers",
        "/ajax-api/3.0/mlflow/mcp-servers",
        "/api/3.0/mlflow/mcp-servers/{*path}",
        "/ajax-api/3.0/mlflow/mcp-servers/{*path}",
    ],
    table: Some(TableRights {
        actions: TableActions::Replace,
        indexes: Indexes::None,
        why: "What the function does, and no Scan. It reads no index.",
    }),
    ..Function::BASE
});

struct McpServers;

impl DomainApi for McpServers {
    type Store = Store;

    fn routes() -> Vec<Route<Store>> {
        crate::routes()
    }

    fn store(around: &Environment) -> Result<Store, MountFailure> {
        Ok(Store::new(around.table()?.clone()))
    }
}
