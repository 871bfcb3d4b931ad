//! Responses of the registry of MCP servers. Fields without a value are null, as in MLflow.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::json::JsonObject;
use crate::{Error, Json, Result};

/// An action on a server that the caller may perform, for user interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum AllowedAction {
    /// Use the server.
    Use,
    /// Change the server.
    Update,
    /// Delete the server.
    Delete,
    /// Share the server.
    Manage,
}

impl AllowedAction {
    /// All actions, in MLflow's order.
    pub const ALL: [Self; 4] = [Self::Use, Self::Update, Self::Delete, Self::Manage];
}

/// An alias, and the version that it refers to.
#[derive(Clone, Debug, Serialize)]
pub struct McpAlias {
    /// Alias.
    pub alias: String,
    /// Version.
    pub version: String,
}

/// A server (`MCPServerResponse`).
#[derive(Clone, Debug, Serialize)]
pub struct McpServer {
    /// Name.
    pub name: String,
    /// Name that user interfaces display.
    pub display_name: Option<String>,
    /// Description of the server, or otherwise that of the latest version.
    pub description: Option<String>,
    /// Icons of the server. For a theme without an icon of the server, the latest version's icon is
    /// used.
    pub icons: Option<Box<RawValue>>,
    /// Workspace.
    pub workspace: String,
    /// Status of the latest version.
    pub status: Option<&'static str>,
    /// Access endpoints.
    pub access_endpoints: Vec<AccessEndpointSummary>,
    /// Latest version: the greatest active one, or the greatest of all if none is active.
    pub latest_version: Option<String>,
    /// Aliases.
    pub aliases: Vec<McpAlias>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// The user who created the entity, if known.
    pub created_by: Option<String>,
    /// The user who last changed the entity, if known.
    pub last_updated_by: Option<String>,
    /// The creation time, in ms.
    pub creation_timestamp: i64,
    /// The time of the last change, in ms.
    pub last_updated_timestamp: i64,
    /// The actions that the caller may perform on the server.
    pub allowed_actions: Vec<AllowedAction>,
}

/// A version of a server (`MCPServerVersionResponse`).
#[derive(Clone, Debug, Serialize)]
pub struct McpVersion {
    /// Name of the server.
    pub name: String,
    /// Version.
    pub version: String,
    /// Description of the server.
    pub server_json: Box<RawValue>,
    /// Workspace.
    pub workspace: String,
    /// Status.
    pub status: &'static str,
    /// Tools, as a list.
    pub tools: Box<RawValue>,
    /// Aliases.
    pub aliases: Vec<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Connection options, as an object.
    pub connect_options: Box<RawValue>,
    /// Origin of the version, as declared by the client.
    pub source: Option<String>,
    /// The user who created the entity, if known.
    pub created_by: Option<String>,
    /// The user who last changed the entity, if known.
    pub last_updated_by: Option<String>,
    /// The creation time, in ms.
    pub creation_timestamp: i64,
    /// The time of the last change, in ms.
    pub last_updated_timestamp: i64,
    /// Whether the version has a list of tools, which may be empty. Not part of the response.
    #[serde(skip)]
    pub has_tools: bool,
}

/// The fields of a version that may be long. They are stored together as one text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VersionContent {
    /// Description of the server.
    pub server_json: Box<RawValue>,
    /// Tools, as a list.
    pub tools: Option<Box<RawValue>>,
    /// Connection options, as an object.
    pub connect_options: Option<Box<RawValue>>,
}

impl VersionContent {
    /// Creates the content of a version.
    ///
    /// # Errors
    /// Returns an internal error if a value cannot be represented, which is a bug.
    pub fn new(server_json: &Json, tools: Option<&Json>, connect_options: Option<&Json>) -> Result<Self> {
        Ok(Self {
            server_json: raw(server_json)?,
            tools: tools.map(raw).transpose()?,
            connect_options: connect_options.map(raw).transpose()?,
        })
    }

    /// Returns the text that is stored.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the text is longer than
    /// [`MAX_CONTENT_BYTES`](super::MAX_CONTENT_BYTES).
    pub fn to_text(&self) -> Result<String> {
        let text = serde_json::to_string(self).map_err(Error::internal)?;
        if text.len() > super::MAX_CONTENT_BYTES {
            return Err(Error::invalid(format!(
                "The server_json, the tools and the connect_options of a version have at most {} bytes together.",
                super::MAX_CONTENT_BYTES
            )));
        }
        Ok(text)
    }

    /// Parses the stored text.
    ///
    /// # Errors
    /// Returns an internal error if the text cannot be parsed.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(Error::internal)
    }
}

/// Converts a value to JSON text.
pub(super) fn raw(value: &Json) -> Result<Box<RawValue>> {
    RawValue::from_string(value.print_unicode()).map_err(Error::internal)
}

/// Returns the icons of a server in a response (`_resolve_mcp_server_icons`), given its own and
/// those of its latest version, as stored.
///
/// # Errors
/// Returns an internal error if the stored icons cannot be parsed.
pub fn resolved_icons(own: Option<&str>, of_version: Option<&str>) -> Result<Option<Box<RawValue>>> {
    let parsed = |stored: Option<&str>| match stored {
        None => Ok(None),
        Some(text) => match Json::parse(text) {
            Some(Json::List(icons)) => Ok(Some(icons)),
            _ => Err(Error::internal("stored icons are not a list")),
        },
    };
    let own = parsed(own)?;
    if own.as_ref().is_some_and(Vec::is_empty) {
        return raw(&Json::List(Vec::new())).map(Some);
    }
    let theme = |icon: &JsonObject| icon.get("theme").cloned().unwrap_or(Json::Null);
    let objects = |icons: Option<Vec<Json>>| {
        let icons = icons.into_iter().flatten();
        icons.filter_map(|icon| if let Json::Object(icon) = icon { Some(icon) } else { None })
    };
    let with_source = |mut icon: JsonObject, source: &str| {
        icon.update([("source".to_owned(), Json::Text(source.to_owned()))]);
        Json::Object(icon)
    };
    let own: Vec<_> = objects(own).collect();
    let themes: Vec<_> = own.iter().map(theme).collect();
    let others = objects(parsed(of_version)?).filter(|icon| !themes.contains(&theme(icon)));
    let others: Vec<_> = others.map(|icon| with_source(icon, "version")).collect();
    let icons: Vec<_> = own.into_iter().map(|icon| with_source(icon, "server")).chain(others).collect();
    if icons.is_empty() { Ok(None) } else { raw(&Json::List(icons)).map(Some) }
}

/// An access endpoint as part of its server (`MCPAccessEndpointSummaryResponse`).
#[derive(Clone, Debug, Serialize)]
pub struct AccessEndpointSummary {
    /// Id.
    pub id: String,
    /// Name of the server.
    pub server_name: String,
    /// URL.
    pub url: String,
    /// Transport.
    pub transport_type: String,
    /// Workspace.
    pub workspace: String,
    /// Version that the endpoint gives access to, if it does not use an alias.
    pub server_version: Option<String>,
    /// Alias of the version that the endpoint gives access to, if it uses one.
    pub server_alias: Option<String>,
    /// The version that the endpoint currently gives access to.
    pub resolved_version: Option<McpVersion>,
    /// The user who created the entity, if known.
    pub created_by: Option<String>,
    /// The user who last changed the entity, if known.
    pub last_updated_by: Option<String>,
    /// The creation time, in ms.
    pub creation_timestamp: i64,
    /// The time of the last change, in ms.
    pub last_updated_timestamp: i64,
}

/// An access endpoint (`MCPAccessEndpointResponse`).
#[derive(Clone, Debug, Serialize)]
pub struct AccessEndpoint {
    /// The tools of the version that the endpoint gives access to.
    pub tools: Option<Box<RawValue>>,
    /// The fields that the endpoint also has as part of its server.
    #[serde(flatten)]
    pub summary: AccessEndpointSummary,
}

impl From<AccessEndpointSummary> for AccessEndpoint {
    fn from(summary: AccessEndpointSummary) -> Self {
        let version = summary.resolved_version.as_ref();
        let tools = version.filter(|version| version.has_tools).map(|version| version.tools.clone());
        Self { tools, summary }
    }
}

/// A page of servers.
#[derive(Debug, Serialize)]
pub struct McpServersResponse {
    /// Servers.
    pub mcp_servers: Vec<Box<RawValue>>,
    /// Token of the next page, if there is one.
    pub next_page_token: Option<String>,
}

/// A page of versions.
#[derive(Debug, Serialize)]
pub struct McpVersionsResponse {
    /// Versions.
    pub mcp_server_versions: Vec<Box<RawValue>>,
    /// Token of the next page, if there is one.
    pub next_page_token: Option<String>,
}

/// A page of access endpoints.
#[derive(Debug, Serialize)]
pub struct McpEndpointsResponse {
    /// Access endpoints.
    pub mcp_access_endpoints: Vec<Box<RawValue>>,
    /// Token of the next page, if there is one.
    pub next_page_token: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icons_of_the_version_fill_the_themes_that_the_server_lacks() {
        let resolved = |own, version| resolved_icons(own, version).unwrap().map(|icons| icons.get().to_owned());
        let (dark, any) = (r#"[{"src":"d","theme":"dark"}]"#, r#"[{"src":"a"}]"#);
        assert_eq!(resolved(None, None), None);
        assert_eq!(resolved(Some("[]"), Some(dark)).unwrap(), "[]");
        assert_eq!(resolved(None, Some(any)).unwrap(), r#"[{"src": "a", "source": "version"}]"#);
        assert_eq!(
            resolved(Some(dark), Some(r#"[{"src":"x","theme":"dark"},{"src":"a"}]"#)).unwrap(),
            r#"[{"src": "d", "theme": "dark", "source": "server"}, {"src": "a", "source": "version"}]"#
        );
    }
}
