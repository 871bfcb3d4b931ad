//! MCP servers, with their versions, tags, aliases and access endpoints.

mod database_reader;
mod exporter;
mod importer;
mod record;
mod table_reader;

pub(crate) use exporter::export;
pub(crate) use importer::{import, verify};
use record::{AccessEndpointRecord, McpServerRecord, McpVersionRecord};

/// Name of this kind of entity in reports.
const KIND: &str = "MCP servers";
