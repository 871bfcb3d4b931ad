//! The route table: method, path, permission, handler.

use access::Permission::{Create, Delete, List, Manage, Read, Update};
use access::Resource::{McpServer, McpServerVersion};
use service::{Endpoint, Paths, Route};

use crate::store::Store;
use crate::{access_endpoints, aliases, servers, versions};

/// Returns the routes of this function. The name of a server contains a slash.
#[must_use]
pub fn routes() -> Vec<Route<Store>> {
    use access_endpoints as endpoints;
    vec![
        Route::to::<servers::Create>("POST", "mcp-servers", Create(McpServer)).under(Paths::V3),
        Route::to::<servers::Search>("GET", "mcp-servers", List(McpServer)).under(Paths::V3),
        Route::to::<endpoints::SearchAll>("GET", "mcp-servers/endpoints", List(McpServer)).under(Paths::V3),
        named::<servers::Get>("GET", "mcp-servers/{name}", Read(McpServer)),
        named::<servers::Update>("PATCH", "mcp-servers/{name}", Update(McpServer)),
        named::<servers::Delete>("DELETE", "mcp-servers/{name}", Delete(McpServer)),
        named::<servers::SetTag>("POST", "mcp-servers/{name}/tags", Update(McpServer)),
        named::<servers::DeleteTag>("DELETE", "mcp-servers/{name}/tags/{*key}", Delete(McpServer)),
        //
        named::<versions::Create>("POST", "mcp-servers/{name}/versions", Create(McpServerVersion)),
        named::<versions::Search>("GET", "mcp-servers/{name}/versions", Read(McpServerVersion)),
        named::<versions::Get>("GET", "mcp-servers/{name}/versions/{version}", Read(McpServerVersion)),
        named::<versions::Update>("PATCH", "mcp-servers/{name}/versions/{version}", Update(McpServerVersion)),
        named::<versions::Delete>("DELETE", "mcp-servers/{name}/versions/{version}", Delete(McpServerVersion)),
        named::<versions::SetTag>("POST", "mcp-servers/{name}/versions/{version}/tags", Update(McpServerVersion)),
        named::<versions::DeleteTag>(
            "DELETE",
            "mcp-servers/{name}/versions/{version}/tags/{*key}",
            Delete(McpServerVersion),
        ),
        //
        named::<aliases::Set>("POST", "mcp-servers/{name}/aliases", Update(McpServer)),
        named::<aliases::Get>("GET", "mcp-servers/{name}/aliases/{*alias}", Read(McpServerVersion)),
        named::<aliases::Delete>("DELETE", "mcp-servers/{name}/aliases/{*alias}", Manage(McpServer)),
        //
        named::<endpoints::Create>("POST", "mcp-servers/{name}/endpoints", Update(McpServer)),
        named::<endpoints::Search>("GET", "mcp-servers/{name}/endpoints", Read(McpServer)),
        named::<endpoints::Get>("GET", "mcp-servers/{name}/endpoints/{endpoint_id}", Read(McpServer)),
        named::<endpoints::Update>("PATCH", "mcp-servers/{name}/endpoints/{endpoint_id}", Update(McpServer)),
        named::<endpoints::Delete>("DELETE", "mcp-servers/{name}/endpoints/{endpoint_id}", Delete(McpServer)),
    ]
}

fn named<E: Endpoint<Store = Store>>(
    method: &'static str,
    path: &'static str,
    permission: access::Permission,
) -> Route<Store> {
    Route::to::<E>(method, path, permission).under(Paths::V3).with_slash_in("name")
}
