//! Records of MCP servers.

use std::collections::BTreeMap;

use mlflow_api::{McpServerName, Workspace};
use serde::Serialize;

/// An MCP server of an MLflow database.
#[derive(Clone, Debug, Serialize)]
pub(super) struct McpServerRecord {
    pub(super) workspace: Workspace,
    #[serde(skip)]
    pub(super) name: McpServerName,
    pub(super) display_name: Option<String>,
    pub(super) description: Option<String>,
    /// Icons, as JSON.
    pub(super) icons: Option<String>,
    pub(super) created: i64,
    pub(super) updated: i64,
    pub(super) created_by: Option<String>,
    pub(super) updated_by: Option<String>,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) aliases: BTreeMap<String, String>,
    /// Access endpoints, by id.
    pub(super) endpoints: BTreeMap<String, AccessEndpointRecord>,
    /// Versions, including deleted ones.
    pub(super) versions: BTreeMap<String, McpVersionRecord>,
}

/// An access endpoint of a server.
#[derive(Clone, Debug, Serialize)]
pub(super) struct AccessEndpointRecord {
    pub(super) url: String,
    pub(super) transport: String,
    pub(super) version: Option<String>,
    pub(super) alias: Option<String>,
    pub(super) created: i64,
    pub(super) updated: i64,
    pub(super) created_by: Option<String>,
    pub(super) updated_by: Option<String>,
}

/// A version of a server. JSON values are texts in the format in which this server prints JSON, so
/// that equal values have equal fingerprints.
#[derive(Clone, Debug, Serialize)]
pub(super) struct McpVersionRecord {
    /// Status, by MLflow's name.
    pub(super) status: String,
    pub(super) server_json: String,
    pub(super) tools: Option<String>,
    pub(super) connect_options: Option<String>,
    pub(super) source: Option<String>,
    pub(super) created: i64,
    pub(super) updated: i64,
    pub(super) created_by: Option<String>,
    pub(super) updated_by: Option<String>,
    pub(super) tags: BTreeMap<String, String>,
}
