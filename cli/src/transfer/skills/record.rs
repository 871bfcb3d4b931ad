//! Records of skills.

use std::collections::BTreeMap;

use mlflow_api::skills::{SkillSource, SkillStatus};
use mlflow_api::{SkillName, Workspace};
use serde::{Serialize, Serializer};

/// A skill of an MLflow database.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SkillRecord {
    pub(super) workspace: Workspace,
    #[serde(skip)]
    pub(super) name: SkillName,
    pub(super) description: Option<String>,
    /// Icons, as JSON.
    pub(super) icons: Option<String>,
    pub(super) created: i64,
    pub(super) updated: i64,
    pub(super) created_by: Option<String>,
    pub(super) updated_by: Option<String>,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) aliases: BTreeMap<String, u32>,
    /// Versions by number, including deleted ones.
    pub(super) versions: BTreeMap<u32, SkillVersionRecord>,
}

/// A version of a skill.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SkillVersionRecord {
    #[serde(serialize_with = "status_name")]
    pub(super) status: SkillStatus,
    /// Where the content is. The location of uploaded content is rewritten by `--artifacts`.
    #[serde(serialize_with = "source_parts")]
    pub(super) source: SkillSource,
    pub(super) digest: Option<String>,
    pub(super) created: i64,
    pub(super) updated: i64,
    pub(super) created_by: Option<String>,
    pub(super) updated_by: Option<String>,
    pub(super) tags: BTreeMap<String, String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that `serialize_with` requires")]
fn status_name<S: Serializer>(status: &SkillStatus, serializer: S) -> Result<S::Ok, S::Error> {
    status.name().serialize(serializer)
}

fn source_parts<S: Serializer>(source: &SkillSource, serializer: S) -> Result<S::Ok, S::Error> {
    (source.kind.name(), &source.location, &source.reference, &source.subpath).serialize(serializer)
}
