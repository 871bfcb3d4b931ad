//! Access to the data of the MCP server registry in the table. The names of methods start with the
//! resource: `server`, `version`, `alias`, `endpoint`.

mod aliases;
mod endpoint_search;
mod endpoints;
mod errors;
mod latest_version;
mod server_document;
mod server_search;
mod servers;
#[expect(clippy::module_inception, reason = "the store itself, which the other files use")]
mod store;
mod version_change;
mod version_row;
mod version_search;
mod versions;

pub(crate) use errors::{
    alias_not_found, endpoint_not_found, server_not_found, stored_endpoint_not_found, stored_server_not_found,
    tag_not_found,
};
pub(crate) use server_document::LATEST_ALIAS;
pub use server_document::{LatestVersion, StoredEndpoint, StoredServer};
pub use store::Store;
pub(crate) use store::caller_name;
pub use version_row::{StoredVersion, part_key};
