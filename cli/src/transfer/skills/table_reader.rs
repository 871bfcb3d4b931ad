//! Reads skills from the table.

use std::collections::BTreeMap;

use key_schema::{Digest, rows};
use mlflow_api::skills::SkillSource;
use skills::store::{StoredSkill, StoredVersion};
use table::{Item, Query, Table};

use super::{SkillRecord, SkillVersionRecord};
use crate::Failure;

/// Returns the record of a skill, given its document. Takes one request per MB of versions.
///
/// # Errors
/// The table or the skill cannot be read.
pub(super) async fn record(table: &Table, document: Item) -> Result<SkillRecord, Failure> {
    let skill = StoredSkill::of(document).map_err(|error| error.message)?;
    let rows = table.query(Query::of(rows::SkillVersion::all(&Digest(skill.id)))).await;
    let mut versions = BTreeMap::new();
    for row in rows.map_err(|failure| format!("cannot read skill {}: {failure:?}", skill.name))? {
        let version = StoredVersion::of(row).map_err(|error| error.message)?;
        let location = version.location(&skill.workspace);
        let record = SkillVersionRecord {
            status: version.status,
            source: SkillSource { location, ..version.source },
            digest: version.digest,
            created: version.created,
            updated: version.updated,
            created_by: version.created_by,
            updated_by: version.updated_by,
            tags: version.tags,
        };
        versions.insert(version.version, record);
    }
    Ok(SkillRecord {
        workspace: skill.workspace,
        name: skill.name,
        description: skill.description,
        icons: skill.icons,
        created: skill.created,
        updated: skill.updated,
        created_by: skill.created_by,
        updated_by: skill.updated_by,
        tags: skill.tags,
        aliases: skill.aliases,
        versions,
    })
}
