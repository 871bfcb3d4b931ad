//! Messages of the registry of MCP servers (`mlflow/server/mcp_server_api.py`). MLflow validates
//! them with `pydantic`, whose error messages are reproduced.

mod bodies;
pub(crate) mod icons;
mod limits;
mod responses;
mod search_parameters;
mod server_json;
mod status;
mod tools;
pub(crate) mod validation;

pub use bodies::{
    NewAccessEndpoint, NewMcpServer, NewMcpVersion, SetMcpAlias, SetMcpTag, UpdatedAccessEndpoint, UpdatedMcpServer,
    UpdatedMcpVersion,
};
pub use icons::MAX_ICONS;
pub use limits::{MAX_CONTENT_BYTES, MAX_DOCUMENT_BYTES, MAX_ENDPOINTS, MAX_PAGE, MAX_PAGE_OF_SERVERS, at_most};
pub use responses::{
    AccessEndpoint, AccessEndpointSummary, AllowedAction, McpAlias, McpEndpointsResponse, McpServer,
    McpServersResponse, McpVersion, McpVersionsResponse, VersionContent, resolved_icons,
};
pub use search_parameters::{EndpointTargets, McpSearchParameters};
pub use server_json::ServerJson;
pub use status::{McpStatus, TransportType};
