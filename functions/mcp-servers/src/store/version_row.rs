//! The row of a version.

use std::collections::BTreeMap;

use entities::attributes::{
    Attribute, CREATED, CREATED_BY, EDITS, SOURCE, TAGS, Text, UPDATED, UPDATED_BY, VERSION_STATUS,
};
use entities::documents::content::{self, PackedContent};
use entities::{read_texts, registry_item, unreadable, with_entries, with_texts};
use key_schema::{Digest, Key, Ordinal, WideDigest, rows};
use mlflow_api::json::JsonObject;
use mlflow_api::mcp_servers::{McpStatus, McpVersion, VersionContent};
use mlflow_api::{Error, Json, McpVersion as Version, Result};
use serde_json::value::RawValue;
use table::{Condition, Item, text};

use super::server_document::{LatestVersion, StoredServer};

/// Maximum size of compressed content that is stored in the row of a version, in bytes. Larger
/// content is stored in rows of its own, because searches read the rows of all versions of a
/// server.
const MAX_INLINE_BYTES: usize = 16 << 10;

/// Returns a function that maps each part of a version's content to the key of its row.
pub fn part_key(server: u64) -> impl Fn(&WideDigest, &Ordinal) -> Key {
    move |content, part| rows::McpServerVersionPart::key(&Digest(server), content, part)
}

/// A version as stored in its row, without its content.
#[derive(Clone, Debug)]
pub struct StoredVersion {
    /// Id of the server.
    pub server: u64,
    /// Version.
    pub version: Version,
    /// Status.
    pub status: McpStatus,
    /// When the version was created, in ms.
    pub created: i64,
    /// When the version was last changed, in ms.
    pub updated: i64,
    /// The user who created the version.
    pub created_by: Option<String>,
    /// The user who last changed the version.
    pub updated_by: Option<String>,
    /// Origin of the version, as declared by the client.
    pub source: Option<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// The item that the version was read from, including its content. `None` for a new version.
    pub(super) item: Option<Item>,
}

impl StoredVersion {
    /// Creates a version without tags, users or a source. `updated` is set to `created`.
    #[must_use]
    pub fn new(server: u64, version: Version, status: McpStatus, created: i64) -> Self {
        Self {
            server,
            version,
            status,
            created,
            updated: created,
            created_by: None,
            updated_by: None,
            source: None,
            tags: BTreeMap::new(),
            item: None,
        }
    }

    /// Returns the key of the row of a version.
    #[must_use]
    pub fn key(server: u64, version: &Version) -> Key {
        rows::McpServerVersion::key(&Digest(server), version)
    }

    /// Reads a version from its item.
    ///
    /// # Errors
    /// Returns an internal error if the item cannot be parsed.
    pub fn of(item: Item) -> Result<Self> {
        let parsed = Self::parse(&item);
        let mut version = parsed.ok_or_else(|| unreadable(&item, "a version of an MCP server"))?;
        version.item = Some(item);
        Ok(version)
    }

    fn parse(item: &Item) -> Option<Self> {
        let row = rows::McpServerVersion::parse(&item.key()?)?;
        let owned = |attribute: Attribute<Text>| item.get(attribute).map(str::to_owned);
        let created = item.get(CREATED)?;
        Some(Self {
            server: row.server.0,
            version: row.version,
            status: McpStatus::from_name(item.get(VERSION_STATUS)?)?,
            created,
            updated: item.get(UPDATED).unwrap_or(created),
            created_by: owned(CREATED_BY),
            updated_by: owned(UPDATED_BY),
            source: owned(SOURCE),
            tags: read_texts(item, TAGS)?,
            item: None,
        })
    }

    /// Packs content for this version. The resulting parts have to be written before the row.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the content is too large.
    pub fn pack(&self, content: &VersionContent) -> Result<PackedContent> {
        Ok(content::pack_once(self.version.as_str(), &content.to_text()?, MAX_INLINE_BYTES, part_key(self.server)))
    }

    /// Returns the item to write for the version. It has the packed content, or otherwise the
    /// content that is already stored.
    #[must_use]
    pub fn to_item(&self, packed: Option<&PackedContent>) -> Item {
        let before = self.item.as_ref();
        let item = registry_item(Self::key(self.server, &self.version), self.created, self.updated, before)
            .with(VERSION_STATUS, text(self.status.name()));
        let values = [
            (CREATED_BY, self.created_by.as_deref()),
            (UPDATED_BY, self.updated_by.as_deref()),
            (SOURCE, self.source.as_deref()),
        ];
        let item = with_entries(with_texts(item, values), TAGS, &self.tags, |value| text(value));
        match (packed, before) {
            (Some(packed), _) => packed.on(item),
            (None, Some(before)) => content::copy(before, item),
            (None, None) => item,
        }
    }

    /// Returns the condition that the row has not changed since it was read or, for a new version,
    /// that it does not exist.
    pub(super) fn is_unchanged(&self) -> Condition {
        match &self.item {
            None => Condition::item_missing(),
            Some(item) => Condition::unchanged(item, EDITS),
        }
    }

    /// Returns the size of the content in bytes.
    pub(super) fn content_size(&self) -> usize {
        self.item.as_ref().map_or(0, content::size)
    }

    /// Returns the values that are copied to the server's document if this version is the latest
    /// one.
    ///
    /// # Errors
    /// Returns an internal error if the content cannot be parsed.
    pub fn as_latest(&self, server_json: &RawValue) -> Result<LatestVersion> {
        let Some(Json::Object(server_json)) = Json::parse(server_json.get()) else {
            return Err(Error::internal("a stored server_json is not an object"));
        };
        let description = |object: &JsonObject| match object.get("description") {
            Some(Json::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let icons = server_json.get("icons").filter(|icons| matches!(icons, Json::List(icons) if !icons.is_empty()));
        Ok(LatestVersion {
            version: self.version.clone(),
            status: self.status,
            created: self.created,
            description: description(&server_json),
            icons: icons.map(Json::print_unicode),
        })
    }

    /// Returns the response about the version.
    ///
    /// # Errors
    /// Returns an internal error if the response cannot be built, which is a bug.
    pub(super) fn answer(&self, server: &StoredServer, content: VersionContent) -> Result<McpVersion> {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).map_err(Error::internal);
        let has_tools = content.tools.is_some();
        Ok(McpVersion {
            name: server.name.to_string(),
            version: self.version.to_string(),
            server_json: content.server_json,
            workspace: server.workspace.to_string(),
            status: self.status.name(),
            tools: content.tools.map_or_else(|| raw("[]"), Ok)?,
            aliases: server.aliases_of(self.version.as_str()),
            tags: self.tags.clone(),
            connect_options: content.connect_options.map_or_else(|| raw("{}"), Ok)?,
            source: self.source.clone(),
            created_by: self.created_by.clone(),
            last_updated_by: self.updated_by.clone(),
            creation_timestamp: self.created,
            last_updated_timestamp: self.updated,
            has_tools,
        })
    }
}
