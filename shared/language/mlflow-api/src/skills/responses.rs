//! Responses of the skill registry. Fields without a value are null, as in MLflow.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use super::AllowedAction;

/// An alias, and the version that it refers to.
#[derive(Clone, Debug, Serialize)]
pub struct SkillAlias {
    /// Alias.
    pub alias: String,
    /// Number of the version.
    pub version: u32,
}

/// A skill (`SkillResponse`).
#[derive(Clone, Debug, Serialize)]
pub struct Skill {
    /// Name.
    pub name: String,
    /// Organization. Empty if the skill has none.
    pub organization: String,
    /// Workspace.
    pub workspace: String,
    /// Description.
    pub description: Option<String>,
    /// Icons.
    pub icons: Option<Box<RawValue>>,
    /// Status of the latest version.
    pub status: Option<&'static str>,
    /// Number of the latest version: the greatest active one or, if none is active, the greatest
    /// one that is not deleted.
    pub latest_version: Option<u32>,
    /// Type of the latest version's source.
    pub source_type: Option<&'static str>,
    /// Aliases.
    pub aliases: Vec<SkillAlias>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Who created it.
    pub created_by: Option<String>,
    /// Who last changed it.
    pub last_updated_by: Option<String>,
    /// When it was created, in ms.
    pub creation_timestamp: i64,
    /// When it was last changed, in ms.
    pub last_updated_timestamp: i64,
    /// Actions that the caller may perform on the skill. Missing if the caller is not a user, for
    /// example on a server without users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_actions: Option<Vec<AllowedAction>>,
}

/// A version of a skill (`SkillVersionResponse`).
#[derive(Clone, Debug, Serialize)]
pub struct SkillVersion {
    /// Name of the skill.
    pub name: String,
    /// Number.
    pub version: u32,
    /// Organization of the skill.
    pub organization: String,
    /// Workspace.
    pub workspace: String,
    /// Type of the source.
    pub source_type: &'static str,
    /// Location of the content.
    pub source: String,
    /// Branch, tag or commit of a git repository.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// Directory of the skill within the source.
    pub subpath: Option<String>,
    /// Digest of the content.
    pub digest: Option<String>,
    /// Status.
    pub status: &'static str,
    /// Aliases.
    pub aliases: Vec<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Who created it.
    pub created_by: Option<String>,
    /// Who last changed it.
    pub last_updated_by: Option<String>,
    /// When it was created, in ms.
    pub creation_timestamp: i64,
    /// When it was last changed, in ms.
    pub last_updated_timestamp: i64,
}

/// A page of skills.
#[derive(Debug, Serialize)]
pub struct SkillsResponse {
    /// Skills.
    pub skills: Vec<Box<RawValue>>,
    /// Token of the next page, if there is one.
    pub next_page_token: Option<String>,
}

/// A page of versions.
#[derive(Debug, Serialize)]
pub struct SkillVersionsResponse {
    /// Versions.
    pub skill_versions: Vec<Box<RawValue>>,
    /// Token of the next page, if there is one.
    pub next_page_token: Option<String>,
}

/// The response to a bulk registration.
#[derive(Debug, Serialize)]
pub struct BulkRegisterResponse {
    /// Versions.
    pub skill_versions: Vec<SkillVersion>,
}
