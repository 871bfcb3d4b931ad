//! The document of a skill.

use std::collections::BTreeMap;

use entities::attributes::{
    ALIASES, Attribute, CREATED, CREATED_BY, DESCRIPTION, ICONS, ID, LAST_NUMBER, LATEST_NUMBER, LATEST_SOURCE_TYPE,
    LATEST_STATUS, TAGS, Text, UPDATED, UPDATED_BY,
};
use entities::{
    in_workspace, read_entries, read_texts, registry_item, unchanged_document, unreadable, with_entries, with_texts,
};
use key_schema::{Digest, Key, Segment as _, rows};
use mlflow_api::skills::{MAX_DOCUMENT_BYTES, Skill, SkillAlias, SkillStatus, SourceType};
use mlflow_api::{Error, Result, SkillName, Workspace};
use serde_json::value::RawValue;
use table::{Condition, Item, Write, number, text};

/// The reserved alias that always refers to the latest version. Clients cannot set it.
pub(super) const LATEST_ALIAS: &str = "latest";

/// A skill, as it is stored.
#[derive(Clone, Debug)]
pub struct StoredSkill {
    /// Workspace.
    pub workspace: Workspace,
    /// Name.
    pub name: SkillName,
    /// Random id, which distinguishes the skill from earlier and later ones with the same name.
    pub id: u64,
    /// When it was created, in ms.
    pub created: i64,
    /// When it was last changed, in ms.
    pub updated: i64,
    /// Who created it.
    pub created_by: Option<String>,
    /// Who last changed it.
    pub updated_by: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// Icons, as JSON.
    pub icons: Option<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Aliases with the numbers of their versions.
    pub aliases: BTreeMap<String, u32>,
    /// The greatest number of a version, including deleted ones, or 0 if there has been no version.
    pub last_number: u32,
    /// The latest version, if there is a version that is not deleted.
    pub latest: Option<LatestVersion>,
    /// The item that the skill was read from. Missing for a new skill.
    pub(super) item: Option<Item>,
}

/// The number of a skill's latest version, and the attributes that the skill takes from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatestVersion {
    /// Number.
    pub version: u32,
    /// Status.
    pub status: SkillStatus,
    /// Type of the source.
    pub source_type: SourceType,
}

impl StoredSkill {
    /// Returns a new skill without a description, icons, tags, aliases and versions.
    #[must_use]
    pub fn new(workspace: Workspace, name: SkillName, id: u64, created: i64, user: Option<&str>) -> Self {
        Self {
            workspace,
            name,
            id,
            created,
            updated: created,
            created_by: user.map(str::to_owned),
            updated_by: user.map(str::to_owned),
            description: None,
            icons: None,
            tags: BTreeMap::new(),
            aliases: BTreeMap::new(),
            last_number: 0,
            latest: None,
            item: None,
        }
    }

    /// Reads a skill from its item.
    ///
    /// # Errors
    /// Returns an internal error if the item cannot be parsed.
    pub fn of(item: Item) -> Result<Self> {
        let parsed = Self::parse(&item);
        let mut skill = parsed.ok_or_else(|| unreadable(&item, "a skill"))?;
        skill.item = Some(item);
        Ok(skill)
    }

    fn parse(item: &Item) -> Option<Self> {
        let row = rows::Skill::parse(&item.key()?)?;
        let owned = |attribute: Attribute<Text>| item.get(attribute).map(str::to_owned);
        let created = item.get(CREATED)?;
        let latest = match item.get(LATEST_NUMBER) {
            None => None,
            Some(version) => Some(LatestVersion {
                version,
                status: SkillStatus::from_name(item.get(LATEST_STATUS)?)?,
                source_type: SourceType::from_name(item.get(LATEST_SOURCE_TYPE)?)?,
            }),
        };
        Some(Self {
            workspace: Workspace::stored(&row.workspace.0).ok()?,
            name: row.skill,
            id: Digest::read(item.get(ID)?)?.0,
            created,
            updated: item.get(UPDATED).unwrap_or(created),
            created_by: owned(CREATED_BY),
            updated_by: owned(UPDATED_BY),
            description: owned(DESCRIPTION),
            icons: owned(ICONS),
            tags: read_texts(item, TAGS)?,
            aliases: read_entries(item, ALIASES, |version| version.as_n().ok()?.parse().ok())?,
            last_number: item.get(LAST_NUMBER).map_or(Some(0), |number| u32::try_from(number).ok())?,
            latest,
            item: None,
        })
    }

    /// Returns the key of the document of a skill.
    #[must_use]
    pub fn key(workspace: &Workspace, name: &SkillName) -> Key {
        rows::Skill::key(&workspace.as_str().into(), name)
    }

    /// Returns the id as text. Grants for the skill contain the same text.
    #[must_use]
    pub fn id_text(&self) -> String {
        Digest(self.id).text()
    }

    /// Returns the item of the skill. Attributes without a value are left out, to save read units:
    /// lists read many documents.
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
            (DESCRIPTION, self.description.as_deref()),
            (ICONS, self.icons.as_deref()),
            (LATEST_STATUS, latest.map(|latest| latest.status.name())),
            (LATEST_SOURCE_TYPE, latest.map(|latest| latest.source_type.name())),
        ];
        item = with_texts(item, values);
        if let Some(latest) = latest {
            item = item.with(LATEST_NUMBER, number(latest.version));
        }
        if self.last_number > 0 {
            item = item.with(LAST_NUMBER, number(self.last_number));
        }
        item = with_entries(item, TAGS, &self.tags, |value| text(value));
        item = with_entries(item, ALIASES, &self.aliases, |version| number(*version));
        if item.size() > MAX_DOCUMENT_BYTES {
            return Err(Error::invalid(format!(
                "The description, icons, tags and aliases of a skill have at most {MAX_DOCUMENT_BYTES} bytes together."
            )));
        }
        Ok(in_workspace(item, &self.workspace))
    }

    /// Returns the condition that the document has not changed since it was read. For a new skill,
    /// it is the condition that there is no document.
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

    /// Returns the aliases of a version, in alphabetical order.
    pub(super) fn aliases_of(&self, version: u32) -> Vec<String> {
        self.aliases.iter().filter(|(_, other)| **other == version).map(|(alias, _)| alias.clone()).collect()
    }

    /// Returns the skill as responses contain it.
    ///
    /// # Errors
    /// Returns an internal error if the stored icons cannot be parsed.
    pub(super) fn answer(&self) -> Result<Skill> {
        let latest = self.latest.as_ref();
        let alias = |(alias, version): (&String, &u32)| SkillAlias { alias: alias.clone(), version: *version };
        let raw = |icons: &String| RawValue::from_string(icons.clone()).map_err(Error::internal);
        Ok(Skill {
            name: self.name.name().to_owned(),
            organization: self.name.organization().to_owned(),
            workspace: self.workspace.to_string(),
            description: self.description.clone(),
            icons: self.icons.as_ref().map(raw).transpose()?,
            status: latest.map(|latest| latest.status.name()),
            latest_version: latest.map(|latest| latest.version),
            source_type: latest.map(|latest| latest.source_type.name()),
            aliases: self.aliases.iter().map(alias).collect(),
            tags: self.tags.clone(),
            created_by: self.created_by.clone(),
            last_updated_by: self.updated_by.clone(),
            creation_timestamp: self.created,
            last_updated_timestamp: self.updated,
            allowed_actions: None,
        })
    }
}
