//! The document of a server, with its access endpoints and its latest version.

use std::collections::BTreeMap;

use entities::attributes::{
    ACCESS_ENDPOINTS, Attribute, CREATED, CREATED_BY, DESCRIPTION, DISPLAY_NAME, ICONS, ID, LATEST_CREATED,
    LATEST_DESCRIPTION, LATEST_ICONS, LATEST_STATUS, LATEST_VERSION, SERVER_ALIASES, TAGS, Text, UPDATED, UPDATED_BY,
};
use entities::{in_workspace, read_texts, registry_item, unchanged_document, unreadable, with_entries, with_texts};
use key_schema::{Digest, Key, Segment, rows};
use mlflow_api::mcp_servers::{
    AccessEndpointSummary, MAX_DOCUMENT_BYTES, McpAlias, McpServer, McpStatus, McpVersion, resolved_icons,
};
use mlflow_api::{Error, McpServerName, McpVersion as Version, Result, Workspace};
use serde::{Deserialize, Serialize};
use table::{Condition, Item, Write, number, text};

/// The alias that always refers to the latest version, and cannot be set.
pub(crate) const LATEST_ALIAS: &str = "latest";

/// A server, as it is stored.
#[derive(Clone, Debug)]
pub struct StoredServer {
    /// Workspace.
    pub workspace: Workspace,
    /// Name.
    pub name: McpServerName,
    /// Random id. A server that is created later with the same name has another one.
    pub id: u64,
    /// When the server was created, in ms.
    pub created: i64,
    /// When the server was last changed, in ms.
    pub updated: i64,
    /// The user who created the server.
    pub created_by: Option<String>,
    /// The user who last changed the server.
    pub updated_by: Option<String>,
    /// Name that user interfaces display.
    pub display_name: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// Icons, as JSON.
    pub icons: Option<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// The version that each alias refers to.
    pub aliases: BTreeMap<String, String>,
    /// Access endpoints by id.
    pub endpoints: BTreeMap<String, StoredEndpoint>,
    /// The latest version, if the server has any versions that are not deleted.
    pub latest: Option<LatestVersion>,
    /// The item that the server was read from. `None` for a new server.
    pub(super) item: Option<Item>,
}

/// The latest version of a server, with the values that are copied to the server's document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatestVersion {
    /// Version.
    pub version: Version,
    /// Status.
    pub status: McpStatus,
    /// When the version was created, in ms.
    pub created: i64,
    /// Description.
    pub description: Option<String>,
    /// Icons, as JSON.
    pub icons: Option<String>,
}

/// An access endpoint, as it is stored. Either the version or the alias is set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredEndpoint {
    /// URL.
    pub url: String,
    /// Transport.
    pub transport: String,
    /// Version that the endpoint gives access to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Alias of the version that the endpoint gives access to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// When the endpoint was created, in ms.
    pub created: i64,
    /// When the endpoint was last changed, in ms.
    pub updated: i64,
    /// The user who created the endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// The user who last changed the endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<String>,
}

impl StoredServer {
    /// Returns a new server with a name and an id, and without tags, aliases, endpoints or
    /// versions.
    #[must_use]
    pub fn new(workspace: Workspace, name: McpServerName, id: u64, created: i64, user: Option<&str>) -> Self {
        Self {
            workspace,
            name,
            id,
            created,
            updated: created,
            created_by: user.map(str::to_owned),
            updated_by: user.map(str::to_owned),
            display_name: None,
            description: None,
            icons: None,
            tags: BTreeMap::new(),
            aliases: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            latest: None,
            item: None,
        }
    }

    /// Reads a server from its item.
    ///
    /// # Errors
    /// Returns an internal error if the item cannot be parsed.
    pub fn of(item: Item) -> Result<Self> {
        let parsed = Self::parse(&item);
        let mut server = parsed.ok_or_else(|| unreadable(&item, "an MCP server"))?;
        server.item = Some(item);
        Ok(server)
    }

    fn parse(item: &Item) -> Option<Self> {
        let row = rows::McpServer::parse(&item.key()?)?;
        let owned = |attribute: Attribute<Text>| item.get(attribute).map(str::to_owned);
        let created = item.get(CREATED)?;
        let endpoint = |(id, json): (String, String)| Some((id, serde_json::from_str(&json).ok()?));
        let latest = match item.get(LATEST_VERSION) {
            None => None,
            Some(version) => Some(LatestVersion {
                version: Version::of(version)?,
                status: McpStatus::from_name(item.get(LATEST_STATUS)?)?,
                created: item.get(LATEST_CREATED)?,
                description: owned(LATEST_DESCRIPTION),
                icons: owned(LATEST_ICONS),
            }),
        };
        Some(Self {
            workspace: Workspace::stored(&row.workspace.0).ok()?,
            name: row.server,
            id: Digest::read(item.get(ID)?)?.0,
            created,
            updated: item.get(UPDATED).unwrap_or(created),
            created_by: owned(CREATED_BY),
            updated_by: owned(UPDATED_BY),
            display_name: owned(DISPLAY_NAME),
            description: owned(DESCRIPTION),
            icons: owned(ICONS),
            tags: read_texts(item, TAGS)?,
            aliases: read_texts(item, SERVER_ALIASES)?,
            endpoints: read_texts(item, ACCESS_ENDPOINTS)?.into_iter().map(endpoint).collect::<Option<_>>()?,
            latest,
            item: None,
        })
    }

    /// Returns the key of the document of a server.
    #[must_use]
    pub fn key(workspace: &Workspace, name: &McpServerName) -> Key {
        rows::McpServer::key(&workspace.as_str().into(), name)
    }

    /// Returns the id as text. Grants refer to the server by this text.
    #[must_use]
    pub fn id_text(&self) -> String {
        Digest(self.id).text()
    }

    /// Returns the item of the server. Attributes without a value are left out to keep items small,
    /// because lists read many of them.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the document is too large.
    pub fn to_item(&self) -> Result<Item> {
        let key = Self::key(&self.workspace, &self.name);
        let mut item =
            registry_item(key, self.created, self.updated, self.item.as_ref()).with(ID, text(self.id_text()));
        let latest = self.latest.as_ref();
        let values = [
            (CREATED_BY, self.created_by.as_deref()),
            (UPDATED_BY, self.updated_by.as_deref()),
            (DISPLAY_NAME, self.display_name.as_deref()),
            (DESCRIPTION, self.description.as_deref()),
            (ICONS, self.icons.as_deref()),
            (LATEST_VERSION, latest.map(|latest| latest.version.as_str())),
            (LATEST_STATUS, latest.map(|latest| latest.status.name())),
            (LATEST_DESCRIPTION, latest.and_then(|latest| latest.description.as_deref())),
            (LATEST_ICONS, latest.and_then(|latest| latest.icons.as_deref())),
        ];
        item = with_texts(item, values);
        if let Some(latest) = latest {
            item = item.with(LATEST_CREATED, number(latest.created));
        }
        let endpoint = |(id, endpoint): (&String, &StoredEndpoint)| {
            Ok((id.clone(), serde_json::to_string(endpoint).map_err(Error::internal)?))
        };
        let endpoints = self.endpoints.iter().map(endpoint).collect::<Result<BTreeMap<_, _>>>()?;
        for (attribute, entries) in
            [(TAGS, &self.tags), (SERVER_ALIASES, &self.aliases), (ACCESS_ENDPOINTS, &endpoints)]
        {
            item = with_entries(item, attribute, entries, |value| text(value));
        }
        if item.size() > MAX_DOCUMENT_BYTES {
            return Err(Error::invalid(format!(
                "The texts, icons, tags, aliases and access endpoints of an MCP server have at most \
                 {MAX_DOCUMENT_BYTES} bytes together."
            )));
        }
        Ok(in_workspace(item, &self.workspace))
    }

    /// Returns the condition that the document has not changed since it was read or, for a new
    /// server, that there is none.
    #[must_use]
    pub(super) fn is_unchanged(&self) -> Condition {
        unchanged_document(self.item.as_ref())
    }

    /// Returns the write of the changed document.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the document is too large.
    pub(super) fn write(&self) -> Result<Write> {
        Ok(Write::Put(self.to_item()?, self.is_unchanged()))
    }

    /// Returns the aliases that refer to a version, in alphabetical order.
    pub(super) fn aliases_of(&self, version: &str) -> Vec<String> {
        let of = self.aliases.iter().filter(|(_, other)| *other == version);
        of.map(|(alias, _)| alias.clone()).collect()
    }

    /// Returns the version that an alias refers to.
    pub(super) fn version_of_alias(&self, alias: &str) -> Option<&str> {
        if alias == LATEST_ALIAS {
            return self.latest.as_ref().map(|latest| latest.version.as_str());
        }
        self.aliases.get(alias).map(String::as_str)
    }

    /// Returns the version that an access endpoint gives access to.
    pub(super) fn version_of_endpoint<'a>(&'a self, endpoint: &'a StoredEndpoint) -> Option<&'a str> {
        let StoredEndpoint { version, alias, .. } = endpoint;
        version.as_deref().or_else(|| alias.as_deref().and_then(|alias| self.version_of_alias(alias)))
    }

    /// Returns the response about an access endpoint.
    pub(super) fn endpoint(
        &self,
        id: &str,
        endpoint: &StoredEndpoint,
        resolved_version: Option<McpVersion>,
    ) -> AccessEndpointSummary {
        AccessEndpointSummary {
            id: id.to_owned(),
            server_name: self.name.to_string(),
            url: endpoint.url.clone(),
            transport_type: endpoint.transport.clone(),
            workspace: self.workspace.to_string(),
            server_version: endpoint.version.clone(),
            server_alias: endpoint.alias.clone(),
            resolved_version,
            created_by: endpoint.created_by.clone(),
            last_updated_by: endpoint.updated_by.clone(),
            creation_timestamp: endpoint.created,
            last_updated_timestamp: endpoint.updated,
        }
    }

    /// Returns the response about the server, with these access endpoints.
    ///
    /// # Errors
    /// Returns an internal error if the stored icons cannot be parsed.
    pub(super) fn answer(&self, access_endpoints: Vec<AccessEndpointSummary>) -> Result<McpServer> {
        let latest = self.latest.as_ref();
        let alias = |(alias, version): (&String, &String)| McpAlias { alias: alias.clone(), version: version.clone() };
        let of_version = || latest.and_then(|latest| latest.description.clone());
        Ok(McpServer {
            name: self.name.to_string(),
            display_name: self.display_name.clone(),
            description: self.description.clone().or_else(of_version),
            icons: resolved_icons(self.icons.as_deref(), latest.and_then(|latest| latest.icons.as_deref()))?,
            workspace: self.workspace.to_string(),
            status: latest.map(|latest| latest.status.name()),
            access_endpoints,
            latest_version: latest.map(|latest| latest.version.to_string()),
            aliases: self.aliases.iter().map(alias).collect(),
            tags: self.tags.clone(),
            created_by: self.created_by.clone(),
            last_updated_by: self.updated_by.clone(),
            creation_timestamp: self.created,
            last_updated_timestamp: self.updated,
            allowed_actions: Vec::new(),
        })
    }
}
