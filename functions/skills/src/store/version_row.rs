//! The row of a version.

use std::collections::BTreeMap;

use entities::attributes::{
    Attribute, CONTENT_PATH, CREATED, CREATED_BY, DIGEST, EDITS, GIT_REF, SOURCE, SOURCE_TYPE, SUBPATH, TAGS, Text,
    UPDATED, UPDATED_BY, VERSION_STATUS,
};
use entities::{read_texts, registry_item, unreadable, with_entries, with_texts};
use key_schema::{Digest, Key, Ordinal, rows};
use mlflow_api::skills::{SkillSource, SkillStatus, SkillVersion, SourceType};
use mlflow_api::{Error, Result, Workspace};
use table::{Condition, Item, Write, text};

use super::skill_document::{LatestVersion, StoredSkill};

/// Maximum total size of the keys and values of a version's tags, in bytes.
const MAX_TAG_BYTES: usize = 256 << 10;

/// A version, as it is stored.
#[derive(Clone, Debug)]
pub struct StoredVersion {
    /// Id of the skill that the version belongs to.
    pub skill: u64,
    /// Number.
    pub version: u32,
    /// Status.
    pub status: SkillStatus,
    /// Location of the content.
    pub source: SkillSource,
    /// Digest of the content.
    pub digest: Option<String>,
    /// Directory of uploaded content below the artifact root.
    pub content_path: Option<String>,
    /// When it was created, in ms.
    pub created: i64,
    /// When it was last changed, in ms.
    pub updated: i64,
    /// Who created it.
    pub created_by: Option<String>,
    /// Who last changed it.
    pub updated_by: Option<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// The item that the version was read from. Missing for a new version.
    pub(super) item: Option<Item>,
}

impl StoredVersion {
    /// Returns a new version without a digest, uploaded content and tags.
    #[must_use]
    pub fn new(skill: u64, version: u32, status: SkillStatus, source: SkillSource, created: i64) -> Self {
        Self {
            skill,
            version,
            status,
            source,
            digest: None,
            content_path: None,
            created,
            updated: created,
            created_by: None,
            updated_by: None,
            tags: BTreeMap::new(),
            item: None,
        }
    }

    /// Returns the key of the row of a version.
    #[must_use]
    pub fn key(skill: u64, version: u32) -> Key {
        rows::SkillVersion::key(&Digest(skill), &Ordinal(version))
    }

    /// Reads a version from its item.
    ///
    /// # Errors
    /// Returns an internal error if the item cannot be parsed.
    pub fn of(item: Item) -> Result<Self> {
        let parsed = Self::parse(&item);
        let mut version = parsed.ok_or_else(|| unreadable(&item, "a version of a skill"))?;
        version.item = Some(item);
        Ok(version)
    }

    fn parse(item: &Item) -> Option<Self> {
        let row = rows::SkillVersion::parse(&item.key()?)?;
        let owned = |attribute: Attribute<Text>| item.get(attribute).map(str::to_owned);
        let created = item.get(CREATED)?;
        Some(Self {
            skill: row.skill.0,
            version: row.version.0,
            status: SkillStatus::from_name(item.get(VERSION_STATUS)?)?,
            source: SkillSource {
                kind: SourceType::from_name(item.get(SOURCE_TYPE)?)?,
                location: item.get(SOURCE)?.to_owned(),
                reference: owned(GIT_REF),
                subpath: owned(SUBPATH),
            },
            digest: owned(DIGEST),
            content_path: owned(CONTENT_PATH),
            created,
            updated: item.get(UPDATED).unwrap_or(created),
            created_by: owned(CREATED_BY),
            updated_by: owned(UPDATED_BY),
            tags: read_texts(item, TAGS)?,
            item: None,
        })
    }

    /// Returns the item of the version.
    #[must_use]
    pub fn to_item(&self) -> Item {
        let item = registry_item(Self::key(self.skill, self.version), self.created, self.updated, self.item.as_ref())
            .with(VERSION_STATUS, text(self.status.name()))
            .with(SOURCE_TYPE, text(self.source.kind.name()))
            .with(SOURCE, text(&self.source.location));
        let values = [
            (CREATED_BY, self.created_by.as_deref()),
            (UPDATED_BY, self.updated_by.as_deref()),
            (GIT_REF, self.source.reference.as_deref()),
            (SUBPATH, self.source.subpath.as_deref()),
            (DIGEST, self.digest.as_deref()),
            (CONTENT_PATH, self.content_path.as_deref()),
        ];
        with_entries(with_texts(item, values), TAGS, &self.tags, |value| text(value))
    }

    /// Checks the total size of the tags.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` if the tags are too large.
    pub fn check_tags(&self) -> Result<()> {
        let bytes: usize = self.tags.iter().map(|(key, value)| key.len() + value.len()).sum();
        if bytes > MAX_TAG_BYTES {
            return Err(Error::invalid(format!("The tags of a version have at most {MAX_TAG_BYTES} bytes together.")));
        }
        Ok(())
    }

    /// Returns the write of the row, on condition that the row has not changed since it was read.
    pub(super) fn write(&self) -> Write {
        let is_unchanged = match &self.item {
            None => Condition::item_missing(),
            Some(item) => Condition::unchanged(item, EDITS),
        };
        Write::Put(self.to_item(), is_unchanged)
    }

    /// Returns the attributes that the skill takes from this version if it is the latest one.
    pub(super) fn as_latest(&self) -> LatestVersion {
        LatestVersion { version: self.version, status: self.status, source_type: self.source.kind }
    }

    /// Returns the version as responses contain it.
    pub(super) fn answer(&self, skill: &StoredSkill) -> SkillVersion {
        SkillVersion {
            name: skill.name.name().to_owned(),
            version: self.version,
            organization: skill.name.organization().to_owned(),
            workspace: skill.workspace.to_string(),
            source_type: self.source.kind.name(),
            source: self.location(&skill.workspace),
            reference: self.source.reference.clone(),
            subpath: self.source.subpath.clone(),
            digest: self.digest.clone(),
            status: self.status.name(),
            aliases: skill.aliases_of(self.version),
            tags: self.tags.clone(),
            created_by: self.created_by.clone(),
            last_updated_by: self.updated_by.clone(),
            creation_timestamp: self.created,
            last_updated_timestamp: self.updated,
        }
    }

    /// Returns the location of the content. If a workspace is deleted, its skills may move to the
    /// default workspace. Their uploaded content stays in the directory of the deleted workspace,
    /// so clients of the default workspace need the path with that directory.
    #[must_use]
    pub fn location(&self, workspace: &Workspace) -> String {
        let moved = self.content_path.as_ref().filter(|path| path.starts_with("workspaces/"));
        match moved.filter(|_| *workspace == Workspace::default()) {
            Some(path) => format!("mlflow-artifacts:/{path}"),
            None => self.source.location.clone(),
        }
    }
}
