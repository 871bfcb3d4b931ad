//! Imports registered models.

use std::collections::{BTreeMap, HashSet};

use entities::attributes::{ID, IMPORTED, NAME};
use key_schema::{Key, ModelKey, rows};
use mlflow_api::registry::ModelStage;
use registry::store::{
    ModelItems, StoredModel, StoredModelVersion, listed_model_key, model_home_key, registered_model_key,
};
use table::{Condition, Item, Query, Write, text};

use super::{KIND, RegisteredModelRecord, VERSION_KIND, VersionRecord, database_reader, table_reader};
use crate::Failure;
use crate::transfer::import::{IdKind, ImportContext, ImportDecision, ORIGINAL_ID_TAG, fingerprint};

/// A model that is being imported: the record in the source, and the record as it is written to the
/// table.
struct PlannedModel {
    source: RegisteredModelRecord,
    record: RegisteredModelRecord,
    /// The document in the table, if there is one.
    document: Option<Item>,
    decision: ImportDecision,
}

/// Imports the registered models.
///
/// # Errors
/// The source cannot be read, the table cannot be read or written, or the name of a model is taken
/// and `--remap` is not given.
pub(crate) async fn import(context: &ImportContext) -> Result<(), Failure> {
    for source in database_reader::models(context, true).await? {
        let planned = plan(context, source).await?;
        let count = planned.record.versions.len() as u64;
        match planned.decision {
            ImportDecision::Create => {
                write(context, &planned).await?;
                context.report.imported(KIND, 1);
                context.report.imported(VERSION_KIND, count);
            }
            ImportDecision::Changed | ImportDecision::Interrupted if is_unchanged_here(context, &planned).await? => {
                if let Some(document) = &planned.document {
                    context.writer.begin_replacement(document).await?;
                }
                write(context, &planned).await?;
                context.report.updated(KIND, 1);
                context.report.updated(VERSION_KIND, count);
            }
            ImportDecision::Changed | ImportDecision::Interrupted => {
                context.report.changed_here(KIND, &planned.record.name);
            }
            ImportDecision::Unchanged => {
                context.report.unchanged(KIND, 1);
                context.report.unchanged(VERSION_KIND, count);
            }
            ImportDecision::Taken => {
                return Err(format!(
                    "registered model {} cannot be imported: its name is taken. --remap imports it with another name",
                    planned.record.name
                )
                .into());
            }
        }
    }
    Ok(())
}

/// Decides what happens to a model. Takes one request, and a second one if the name is taken and
/// `--remap` is given.
async fn plan(context: &ImportContext, source: RegisteredModelRecord) -> Result<PlannedModel, Failure> {
    let mut record = source.clone();
    let mut after = 0;
    loop {
        let versions = database_reader::next_versions(&context.source, &source, after).await?;
        let Some(last) = versions.last() else { break };
        after = last.number;
        for version in versions {
            let version = mapped(context, version);
            record.versions.insert(version.number, fingerprint(&version)?);
        }
    }
    let (mut decision, mut document) = decide(context, &record).await?;
    if decision == ImportDecision::Taken && context.remap {
        record.tags.push((ORIGINAL_ID_TAG.to_owned(), record.name.clone()));
        record.tags.sort_unstable();
        record.name = format!("{} (imported)", record.name);
        let source_name = format!("{}/{}", source.workspace, source.name);
        context.remapped.insert(IdKind::RegisteredModel, &source_name, &record.name);
        (decision, document) = decide(context, &record).await?;
    }
    Ok(PlannedModel { source, record, document, decision })
}

async fn decide(
    context: &ImportContext,
    record: &RegisteredModelRecord,
) -> Result<(ImportDecision, Option<Item>), Failure> {
    let document = context.table.get(&registered_model_key(&record.workspace, &record.name)).await;
    let document = document.map_err(|failure| format!("cannot read registered models: {failure:?}"))?;
    let is_named = document.as_ref().is_none_or(|document| document.get(NAME) == Some(record.name.as_str()));
    let decision =
        if is_named { ImportDecision::of(document.as_ref(), &fingerprint(record)?) } else { ImportDecision::Taken };
    Ok((decision, document))
}

/// Returns a version as it is written to the table.
fn mapped(context: &ImportContext, mut version: VersionRecord) -> VersionRecord {
    version.source = context.artifact_location(&version.source);
    version.storage = context.artifact_location(&version.storage);
    version.run = version.run.map(|run| context.remapped.resolve(IdKind::Run, &run));
    version
}

/// Returns whether no client has changed a model since it was imported. Returns `true` if an import
/// of the model was interrupted. Takes as many requests as reading the model.
async fn is_unchanged_here(context: &ImportContext, planned: &PlannedModel) -> Result<bool, Failure> {
    let Some(document) = planned.document.as_ref().filter(|_| planned.decision != ImportDecision::Interrupted) else {
        return Ok(true);
    };
    let here = table_reader::read(&context.table, document, |_| Ok(())).await?;
    Ok(document.get(IMPORTED) == Some(fingerprint(&here)?.as_str()))
}

/// Writes a model: its versions and tags, and then its document with its name. Deletes the items
/// that a replaced model no longer has.
async fn write(context: &ImportContext, planned: &PlannedModel) -> Result<(), Failure> {
    let PlannedModel { source, record, document, .. } = planned;
    let (id, home) = home(context, record, document.as_ref()).await?;
    let aliased: HashSet<u32> = record.aliases.values().copied().collect();
    let mut latest: BTreeMap<ModelStage, u32> = BTreeMap::new();
    let mut written: HashSet<Key> = HashSet::new();
    let mut after = 0;
    loop {
        let versions = database_reader::next_versions(&context.source, source, after).await?;
        let Some(last) = versions.last() else { break };
        after = last.number;
        let mut items = Vec::new();
        for version in versions {
            let version = mapped(context, version);
            latest.insert(version.stage, version.number);
            let stored = stored(&version, record, &home, aliased.contains(&version.number));
            let (item, rows) = stored.items();
            items.extend(rows);
            items.extend(stored.run_row());
            items.push(item);
        }
        written.extend(items.iter().filter_map(Item::key));
        context.writer.put_all(items).await?;
    }
    let stored = StoredModel {
        workspace: &record.workspace,
        name: &record.name,
        id: &id,
        home: &home,
        created: record.created,
        updated: record.updated,
        description: &record.description,
        versions: record.last_version,
        latest: &latest,
        aliases: &record.aliases,
        tags: &record.tags,
    };
    let ModelItems { document: new, tags, home: home_row, listed } = stored.items();
    written.extend(tags.iter().filter_map(Item::key));
    context.writer.put_all(tags).await?;
    let is_its = Condition::Equals(ID.into(), text(&id));
    let mut writes = vec![
        Write::Put(
            new.with(IMPORTED, text(fingerprint(record)?)),
            Condition::Any(vec![Condition::item_missing(), is_its.clone()]),
        ),
        Write::Put(home_row, Condition::Any(vec![Condition::item_missing(), is_its])),
        Write::Put(listed, Condition::Always),
    ];
    // A model that has become a prompt, or the other way round, moves to another list.
    let kinds = [key_schema::ModelKind::Model, key_schema::ModelKind::Prompt];
    let others = kinds.into_iter().filter(|kind| *kind != stored.kind() && document.is_some());
    writes.extend(
        others.map(|kind| Write::Delete(listed_model_key(&record.workspace, &record.name, kind), Condition::Always)),
    );
    match context.writer.transact(&writes).await {
        Ok(()) => {}
        Err(table::Failure::Cancelled(_)) => {
            return Err(format!(
                "registered model {} cannot be imported: its name was taken in the meantime",
                record.name
            )
            .into());
        }
        Err(failure) => return Err(format!("cannot write registered model {}: {failure:?}", record.name).into()),
    }
    if document.is_some() { delete_stale(context, &home, &written).await } else { Ok(()) }
}

fn stored<'a>(
    version: &'a VersionRecord,
    model: &'a RegisteredModelRecord,
    home: &'a ModelKey,
    is_aliased: bool,
) -> StoredModelVersion<'a> {
    StoredModelVersion {
        home,
        workspace: &model.workspace,
        number: version.number,
        created: version.created,
        updated: (version.updated != version.created).then_some(version.updated),
        stage: version.stage,
        description: version.description.as_deref(),
        source: &version.source,
        storage: &version.storage,
        run: version.run.as_deref(),
        run_link: version.run_link.as_deref(),
        is_aliased,
        tags: &version.tags,
    }
}

/// Returns the id and the home of a model. A model that is replaced keeps both. A new model gets a
/// new id. Its home is the partition of its name, or a partition of its own if another model has
/// its home there. Takes one request for a new model.
async fn home(
    context: &ImportContext,
    record: &RegisteredModelRecord,
    document: Option<&Item>,
) -> Result<(String, ModelKey), Failure> {
    let key = ModelKey::of(&record.workspace, &record.name);
    if let Some(document) = document {
        let home = document.get(entities::attributes::HOME).map_or(key, ModelKey::from);
        return Ok((document.get(ID).unwrap_or_default().to_owned(), home));
    }
    let id = ulid::Ulid::generate().to_string();
    let taken = context.table.get(&model_home_key(&key)).await;
    let taken = taken.map_err(|failure| format!("cannot read registered models: {failure:?}"))?;
    let home = if taken.is_some() { key.beside(&id) } else { key };
    Ok((id, home))
}

/// Deletes versions and tags that a replaced model does not have any more.
async fn delete_stale(context: &ImportContext, home: &ModelKey, written: &HashSet<Key>) -> Result<(), Failure> {
    for range in [rows::ModelVersion::all(home).range(), rows::ModelTag::all(home).range()] {
        let mut next = Some(Query::of(range));
        while let Some(query) = next {
            let page = context.table.query_page(&query).await;
            let page = page.map_err(|failure| format!("cannot read registered models: {failure:?}"))?;
            let stale = page.items.iter().filter_map(Item::key).filter(|key| !written.contains(key));
            context.writer.delete_all(stale.collect()).await?;
            next = page.next.map(|start| query.starting_at(start));
        }
    }
    Ok(())
}

/// Compares the imported registered models and all their versions with the source, and reports
/// differences. Takes one request per model, and one per MB of versions.
///
/// # Errors
/// The source or the table cannot be read.
pub(crate) async fn verify(context: &ImportContext) -> Result<(), Failure> {
    for source in database_reader::models(context, false).await? {
        let name = source.name.clone();
        let PlannedModel { record, document, decision, .. } = plan(context, source).await?;
        match (decision, document) {
            (_, None) => context.report.different(KIND, &format!("{name} is missing")),
            (ImportDecision::Unchanged, Some(document)) => {
                let here = table_reader::read(&context.table, &document, |_| Ok(())).await?;
                if here != record {
                    context.report.different(KIND, &name);
                }
            }
            // In the remaining cases, the model was changed in the table, and is in the report
            // already.
            _ => {}
        }
    }
    Ok(())
}
