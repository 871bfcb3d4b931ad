//! Reads skills from an MLflow database.

use std::collections::BTreeMap;

use mlflow_api::skills::{SkillSource, SkillStatus, SourceType};
use mlflow_api::{SkillName, Workspace};

use super::{KIND, SkillRecord, SkillVersionRecord};
use crate::Failure;
use crate::transfer::database::{Row, SqlValue};
use crate::transfer::import::{ImportContext, names_in_scope};

/// The condition that a row belongs to a skill.
const OF_SKILL: &str = "workspace = ? AND organization = ? AND name = ?";

/// Returns the workspaces and names of the skills in the import's scope. If `reports` is set,
/// reports skills whose names are not valid. Takes one query.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn names(context: &ImportContext, reports: bool) -> Result<Vec<(Workspace, SkillName)>, Failure> {
    if !context.source.has_table("skills") {
        return Ok(Vec::new());
    }
    let sql = "SELECT workspace, organization, name FROM skills ORDER BY workspace, organization, name";
    let name = |row: &Row| {
        let (organization, name) = (row.text(1)?, row.text(2)?);
        let label = if organization.is_empty() { name.clone() } else { format!("@{organization}/{name}") };
        Ok((label, SkillName::new(&organization, &name)))
    };
    names_in_scope(context, (KIND, sql), reports, name).await
}

/// Reads a skill with its versions. If `reports` is set, reports versions that cannot be imported.
/// Takes five queries.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn skill(
    context: &ImportContext,
    workspace: &Workspace,
    name: &SkillName,
    reports: bool,
) -> Result<SkillRecord, Failure> {
    let source = &context.source;
    let of = || vec![SqlValue::from(workspace.as_str()), name.organization().into(), name.name().into()];
    let sql = format!(
        "SELECT description, icons, created_by, last_updated_by, created_at, last_updated_at FROM skills WHERE {OF_SKILL}"
    );
    let rows = source.rows(&sql, of()).await?;
    let row = rows.first().ok_or("a skill was deleted during the import")?;
    let mut record = SkillRecord {
        workspace: workspace.clone(),
        name: name.clone(),
        description: row.optional_text(0)?,
        icons: row.optional_json(1)?,
        created_by: row.optional_text(2)?,
        updated_by: row.optional_text(3)?,
        created: row.integer(4)?,
        updated: row.integer(5)?,
        tags: BTreeMap::new(),
        aliases: BTreeMap::new(),
        versions: BTreeMap::new(),
    };
    for row in source.rows(&format!("SELECT \"key\", value FROM skill_tags WHERE {OF_SKILL}"), of()).await? {
        record.tags.insert(row.text(0)?, row.text(1)?);
    }
    for row in source.rows(&format!("SELECT alias, version FROM skill_aliases WHERE {OF_SKILL}"), of()).await? {
        record.aliases.insert(row.text(0)?, u32::try_from(row.integer(1)?)?);
    }
    let sql = format!(
        "SELECT version, status, source_type, source, ref, subpath, digest, created_by, last_updated_by, created_at, \
         last_updated_at FROM skill_versions WHERE {OF_SKILL}"
    );
    for row in source.rows(&sql, of()).await? {
        let number = u32::try_from(row.integer(0)?)?;
        match version(context, &row)? {
            Some(version) => drop(record.versions.insert(number, version)),
            None if reports => {
                let id = format!("version {number} of {name}");
                context.report.omitted(KIND, &id, "because its status or its source is not valid");
            }
            None => {}
        }
    }
    let sql = format!("SELECT version, \"key\", value FROM skill_version_tags WHERE {OF_SKILL}");
    for row in source.rows(&sql, of()).await? {
        if let Some(version) = record.versions.get_mut(&u32::try_from(row.integer(0)?)?) {
            version.tags.insert(row.text(1)?, row.text(2)?);
        }
    }
    Ok(record)
}

/// Returns the version of a row, without tags. Returns `None` if its status or its source is not
/// valid.
fn version(context: &ImportContext, row: &Row) -> Result<Option<SkillVersionRecord>, Failure> {
    let (Some(status), Some(kind)) = (SkillStatus::from_name(&row.text(1)?), SourceType::from_name(&row.text(2)?))
    else {
        return Ok(None);
    };
    let Some(location) = row.optional_text(3)? else { return Ok(None) };
    let location = if kind == SourceType::Mlflow { context.artifact_location(&location) } else { location };
    Ok(Some(SkillVersionRecord {
        status,
        source: SkillSource { kind, location, reference: row.optional_text(4)?, subpath: row.optional_text(5)? },
        digest: row.optional_text(6)?,
        created_by: row.optional_text(7)?,
        updated_by: row.optional_text(8)?,
        created: row.integer(9)?,
        updated: row.integer(10)?,
        tags: BTreeMap::new(),
    }))
}
