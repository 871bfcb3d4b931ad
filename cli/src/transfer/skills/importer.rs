//! Imports skills.

use entities::WorkspaceIdentity;
use entities::attributes::IMPORTED;
use key_schema::{Digest, rows};
use mlflow_api::{Error, SkillName, Workspace};
use retention::skill_content::{uploaded_path, uploaded_uri};
use skills::store::{LatestVersion, StoredSkill, StoredVersion};
use table::{Item, Query, Table};

use super::{KIND, SkillRecord, SkillVersionRecord, database_reader, table_reader};
use crate::Failure;
use crate::transfer::import::{
    IdKind, ImportContext, NAME_SUFFIX, fingerprint, is_to_be_written, new_id, report_written, verify_entity,
    write_document,
};

/// Imports the skills.
///
/// # Errors
/// The source cannot be read, the table cannot be read or written, or the name of a skill is taken
/// and `--remap` is not given.
pub(crate) async fn import(context: &ImportContext) -> Result<(), Failure> {
    for (workspace, name) in database_reader::names(context, true).await? {
        let record = database_reader::skill(context, &workspace, &name, true).await?;
        let planned = plan(context, record).await?;
        let (name, document) = (planned.record.name.to_string(), planned.document.as_ref());
        let items = match items(&planned) {
            Ok(items) => items,
            Err(error) => {
                context.report.omitted(KIND, &name, format!("because {}", error.message));
                continue;
            }
        };
        let new = fingerprint(&planned.record)?;
        let here = Box::pin(here(&context.table, document));
        if is_to_be_written(context, (KIND, &name), &new, document, here).await? {
            write(context, &planned, items, &new).await?;
            report_written(context, KIND, document);
        }
    }
    Ok(())
}

/// A skill, its name and id in the table, and the document that the table has for this name.
pub(super) struct PlannedSkill {
    pub(super) record: SkillRecord,
    /// The directory of the skill's workspace below `workspaces/`, or `None` for the default
    /// workspace.
    pub(super) directory: Option<String>,
    document: Option<Item>,
    id: u64,
}

/// Determines the name under which a skill is imported, and reads the document that the table has for
/// this name. If a client has created a skill with the source's name, `--remap` adds a suffix to the
/// name, and changes the locations of uploaded content accordingly, because the server only serves
/// content from the directory of its skill. Takes one request, and one more if the name is taken.
/// Takes another one for a new skill, and one outside of the default workspace.
pub(super) async fn plan(context: &ImportContext, mut record: SkillRecord) -> Result<PlannedSkill, Failure> {
    let table = &context.table;
    let directory = workspace_directory(table, &record.workspace).await?;
    let mut document = document(table, &record.workspace, &record.name).await?;
    if document.as_ref().is_some_and(|document| !document.has(IMPORTED)) {
        if !context.remap {
            let message = "cannot be imported: its name is taken. --remap imports it with another name";
            return Err(format!("skill {} {message}", record.name).into());
        }
        let source_name = format!("{}/{}", record.workspace, record.name);
        rename(&mut record, directory.as_deref())?;
        context.remapped.insert(IdKind::Skill, &source_name, &record.name.to_string());
        document = self::document(table, &record.workspace, &record.name).await?;
    }
    let id = if let Some(document) = &document {
        StoredSkill::of(document.clone()).map_err(|error| error.message)?.id
    } else {
        let name = record.name.to_string();
        let of = (&record.workspace, name.as_str(), record.created);
        new_id(table, of, rows::SkillRemoval::key).await?
    };
    Ok(PlannedSkill { record, directory, document, id })
}

/// Adds the suffix to the name of a skill, and moves its uploaded content to the directory of the new
/// name.
fn rename(record: &mut SkillRecord, directory: Option<&str>) -> Result<(), Failure> {
    let name = format!("{}{NAME_SUFFIX}", record.name.name());
    let renamed = SkillName::new(record.name.organization(), &name).map_err(|error| error.message)?;
    for version in record.versions.values_mut() {
        if uploaded_path(&version.source, &record.name, directory).is_some() {
            version.source.location = uploaded_uri(&renamed, &version.source.location);
        }
    }
    record.name = renamed;
    Ok(())
}

/// Returns the directory of a workspace below `workspaces/`, or `None` for the default workspace. In a
/// dry run, the workspace may not exist yet. Takes one request, unless it is the default workspace.
async fn workspace_directory(table: &Table, workspace: &Workspace) -> Result<Option<String>, Failure> {
    if *workspace == Workspace::default() {
        return Ok(None);
    }
    let identity = WorkspaceIdentity::find(table, workspace).await;
    let identity = identity.map_err(|failure| format!("cannot read workspace {workspace}: {failure:?}"))?;
    Ok(Some(identity.map_or_else(|| workspace.to_string(), |identity| identity.directory().to_owned())))
}

async fn document(table: &Table, workspace: &Workspace, name: &SkillName) -> Result<Option<Item>, Failure> {
    let found = table.get(&StoredSkill::key(workspace, name)).await;
    found.map_err(|failure| format!("cannot read skill {name}: {failure:?}").into())
}

/// Computes the fingerprint of a skill from its items in the table.
async fn here(table: &Table, document: Option<&Item>) -> Result<String, Failure> {
    let document = document.ok_or("a skill is missing")?.clone();
    fingerprint(&table_reader::record(table, document).await?)
}

/// The items of a skill: its document and its versions.
struct SkillItems {
    document: Item,
    versions: Vec<Item>,
}

/// Creates the items of a skill. The greatest number of a version is never decreased, so that numbers
/// are not reused.
fn items(planned: &PlannedSkill) -> Result<SkillItems, Error> {
    let PlannedSkill { record, directory, document, id } = planned;
    let mut skill = match document {
        Some(replaced) => StoredSkill::of(replaced.clone())?,
        None => StoredSkill::new(record.workspace.clone(), record.name.clone(), *id, record.created, None),
    };
    skill.created = record.created;
    skill.updated = record.updated;
    skill.created_by.clone_from(&record.created_by);
    skill.updated_by.clone_from(&record.updated_by);
    skill.description.clone_from(&record.description);
    skill.icons.clone_from(&record.icons);
    skill.tags.clone_from(&record.tags);
    skill.aliases.clone_from(&record.aliases);
    let versions = record.versions.iter().map(|(number, version)| {
        let mut stored = stored_version(*id, *number, version);
        stored.content_path = uploaded_path(&version.source, &record.name, directory.as_deref());
        stored
    });
    let versions: Vec<_> = versions.collect();
    versions.iter().try_for_each(StoredVersion::check_tags)?;
    skill.latest = LatestVersion::of_versions(&versions);
    skill.last_number = record.versions.keys().copied().fold(skill.last_number, u32::max);
    Ok(SkillItems { document: skill.to_item()?, versions: versions.iter().map(StoredVersion::to_item).collect() })
}

fn stored_version(skill: u64, number: u32, record: &SkillVersionRecord) -> StoredVersion {
    let mut stored = StoredVersion::new(skill, number, record.status, record.source.clone(), record.created);
    stored.updated = record.updated;
    stored.created_by.clone_from(&record.created_by);
    stored.updated_by.clone_from(&record.updated_by);
    stored.digest.clone_from(&record.digest);
    stored.tags.clone_from(&record.tags);
    stored
}

/// Writes a skill: first its versions, and then its document. If the skill was imported before,
/// finally deletes the versions that it no longer has, but not their content.
async fn write(
    context: &ImportContext,
    planned: &PlannedSkill,
    items: SkillItems,
    fingerprint: &str,
) -> Result<(), Failure> {
    let SkillItems { document, versions } = items;
    let label = format!("skill {}", planned.record.name);
    let mut stale = Vec::new();
    if planned.document.is_some() {
        let rows = context.table.query(Query::of(rows::SkillVersion::all(&Digest(planned.id)))).await;
        stale.extend(rows.map_err(|failure| format!("cannot read {label}: {failure:?}"))?.iter().filter_map(Item::key));
        stale.retain(|key| !versions.iter().any(|item| item.key().as_ref() == Some(key)));
    }
    context.writer.put_all(versions).await?;
    write_document(context, &label, document, fingerprint).await?;
    context.writer.delete_all(stale).await
}

/// Compares the imported skills with the source, and reports differences.
///
/// # Errors
/// The source or the table cannot be read.
pub(crate) async fn verify(context: &ImportContext) -> Result<(), Failure> {
    for (workspace, name) in database_reader::names(context, false).await? {
        let planned = plan(context, database_reader::skill(context, &workspace, &name, false).await?).await?;
        if items(&planned).is_err() {
            continue;
        }
        let (name, document) = (planned.record.name.to_string(), planned.document.as_ref());
        let here = Box::pin(here(&context.table, document));
        verify_entity(context, (KIND, &name), &fingerprint(&planned.record)?, document, here).await?;
    }
    Ok(())
}
