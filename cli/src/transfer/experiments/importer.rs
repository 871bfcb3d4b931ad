//! Imports experiments.

use entities::attributes::{EXPERIMENT, IMPORTED, LOCATION, NAME, STAGE, STAGE_VERSION, TAG_ROWS, TAGS};
use entities::trace_archival::ArchiveRequest;
use entities::trace_retention::TraceRetentionSetting;
use key_schema::{Key, rows};
use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{ARCHIVE_NOW_TAG, ExperimentId, TRACE_RETENTION_TAG, TraceRetention};
use table::{Condition, Item, Query, Write, text};
use tracking::store::{StoredExperiment, experiment_name_key};

use super::record::ExperimentPlan;
use super::{ExperimentRecord, ImportedExperiment, KIND, database_reader, table_reader};
use crate::Failure;
use crate::transfer::import::{
    IdKind, ImportContext, ImportDecision, ORIGINAL_ID_TAG, fingerprint, replacement_digits,
};

/// Returns the experiments that are imported, with the ids and names that they get in the table.
///
/// # Errors
/// An id or a name is taken, and `--remap` is not given.
pub(crate) async fn records(context: &ImportContext) -> Result<Vec<ImportedExperiment>, Failure> {
    let mut experiments = Vec::new();
    for record in database_reader::read(context).await? {
        experiments.push(plan(context, record).await?);
    }
    Ok(experiments)
}

/// Decides whether an experiment is written, and under which id and name. Takes one request, and a
/// second one if the id or the name is taken. If the experiment has changed in the source, it is
/// also read from the table.
async fn plan(context: &ImportContext, mut record: ExperimentRecord) -> Result<ImportedExperiment, Failure> {
    let source_id = record.id;
    record.artifact_location = context.artifact_location(&record.artifact_location);
    let (decision, document) = decide(context, &record).await?;
    if decision != ImportDecision::Taken {
        return imported(context, source_id, record, decision, document).await;
    }
    if record.id == ExperimentId::DEFAULT {
        // Every server has the default experiment. It is merged: the source's runs are added to it.
        return Ok(merged_default(record, document.as_ref()));
    }
    if !context.remap {
        return Err(format!(
            "experiment {source_id} ({}) cannot be imported: its id or its name is taken. --remap imports it with \
             another id and name",
            record.name
        )
        .into());
    }
    let name = record.name.clone();
    let digits = replacement_digits(IdKind::Experiment, &source_id.to_string());
    // The id is as large as the ids of MLflow's file store, so that the counter of ids never
    // reaches it.
    let number = u64::from_str_radix(&digits[..15], 16).ok().map(|number| number | 1 << 59);
    record.id = number.and_then(ExperimentId::from_number).ok_or("no id was found for an experiment")?;
    record.name = format!("{name} ({source_id})");
    record.tags.push((ORIGINAL_ID_TAG.to_owned(), source_id.to_string()));
    record.tags.sort_unstable();
    context.remapped.insert(IdKind::Experiment, &source_id.to_string(), &record.id.to_string());
    match decide(context, &record).await? {
        (ImportDecision::Taken, _) => {
            Err(format!("experiment {source_id} cannot be imported: its new name is taken too").into())
        }
        (decision, document) => imported(context, source_id, record, decision, document).await,
    }
}

/// Returns what happens to an experiment with this id and name, and the document that the table has
/// for this id. Takes one request.
async fn decide(context: &ImportContext, record: &ExperimentRecord) -> Result<(ImportDecision, Option<Item>), Failure> {
    let (key, name_key) = (rows::Experiment::key(&record.id), experiment_name_key(&record.workspace, &record.name));
    let found = context.table.get_many(&[key.clone(), name_key.clone()]).await;
    let found = found.map_err(|failure| format!("cannot read experiment {}: {failure:?}", record.id))?;
    let is_name_taken = found.get(&name_key).is_some_and(|name| name.get(EXPERIMENT) != Some(record.id));
    let document = found.get(&key).cloned();
    let decision = match ImportDecision::of(document.as_ref(), &fingerprint(record)?) {
        // The name belongs to another experiment. If the name belongs to this experiment, it is not
        // taken.
        ImportDecision::Create | ImportDecision::Changed | ImportDecision::Interrupted if is_name_taken => {
            ImportDecision::Taken
        }
        decision => decision,
    };
    Ok((decision, document))
}

async fn imported(
    context: &ImportContext,
    source_id: ExperimentId,
    record: ExperimentRecord,
    decision: ImportDecision,
    document: Option<Item>,
) -> Result<ImportedExperiment, Failure> {
    let is_changed_here = match &document {
        Some(document) if decision == ImportDecision::Changed => {
            let here = table_reader::record(&context.table, record.id, document).await?;
            document.get(IMPORTED) != Some(fingerprint(&here)?.as_str())
        }
        _ => false,
    };
    let version: u32 = document.as_ref().and_then(|document| document.get(STAGE_VERSION)).unwrap_or_default();
    let known_stage = document.as_ref().map(|document| document.get(STAGE).unwrap_or_default());
    let is_kept = is_changed_here || decision == ImportDecision::Unchanged;
    let has_new_stage = !is_kept && known_stage.unwrap_or(LifecycleStage::Active) != record.stage;
    if is_changed_here {
        context.report.changed_here(KIND, &record.id.to_string());
    } else if is_kept {
        context.report.unchanged(KIND, 1);
    }
    let plan = if is_kept { ExperimentPlan::Keep } else { ExperimentPlan::Write(document.map(Box::new)) };
    Ok(ImportedExperiment {
        source_id,
        id: record.id,
        stage_version: version + u32::from(has_new_stage),
        has_new_stage: has_new_stage && known_stage.is_some(),
        record,
        plan,
    })
}

/// Returns the default experiment if it was not imported. It keeps the settings that it has in the
/// table.
fn merged_default(mut record: ExperimentRecord, document: Option<&Item>) -> ImportedExperiment {
    let stage_version = document.and_then(|document| document.get(STAGE_VERSION)).unwrap_or_default();
    if let Some(document) = document {
        // The artifact locations of its runs are derived from the location of the experiment.
        document.get(LOCATION).unwrap_or_default().clone_into(&mut record.artifact_location);
        record.stage = document.get(STAGE).unwrap_or_default();
    }
    ImportedExperiment {
        source_id: record.id,
        id: record.id,
        stage_version,
        has_new_stage: false,
        record,
        plan: ExperimentPlan::Keep,
    }
}

/// Writes an experiment's document and its name, after its contents. Takes one transaction, and one
/// request per 25 large tags.
///
/// # Errors
/// The table cannot be written, or the name was taken in the meantime.
pub(crate) async fn publish(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    let ExperimentPlan::Write(replaced) = &experiment.plan else { return Ok(()) };
    let record = &experiment.record;
    let retention = record.tags.iter().find(|(key, _)| key == TRACE_RETENTION_TAG);
    if retention.is_some_and(|(_, value)| TraceRetention::parse(value).is_ok()) && !context.writer.is_dry_run() {
        // The tag only has an effect if the setting lists the experiment.
        let announced = TraceRetentionSetting::announce(&context.table, experiment.id).await;
        announced.map_err(|error| format!("cannot import experiment {}: {}", experiment.id, error.message))?;
    }
    if record.tags.iter().any(|(key, _)| key == ARCHIVE_NOW_TAG) && !context.writer.is_dry_run() {
        // The tag is only found if a row lists the experiment.
        let announced = ArchiveRequest::announce(&context.table, experiment.id).await;
        announced.map_err(|error| format!("cannot import experiment {}: {}", experiment.id, error.message))?;
    }
    let items = StoredExperiment {
        id: experiment.id,
        workspace: &record.workspace,
        name: &record.name,
        artifact_location: &record.artifact_location,
        stage: record.stage,
        stage_version: experiment.stage_version,
        created: record.created,
        updated: record.updated,
        tags: &record.tags,
    }
    .items();
    let document = items.document.with(IMPORTED, text(fingerprint(record)?));
    context.writer.put_all(items.tags).await?;
    let is_free = Condition::item_missing();
    let is_its_name = Condition::Equals(EXPERIMENT.into(), text(experiment.id.to_string()));
    let mut writes = vec![
        Write::Put(document, Condition::Always),
        Write::Put(items.name, Condition::Any(vec![is_free, is_its_name.clone()])),
    ];
    if let Some(replaced) = replaced.as_deref() {
        let old = replaced.get(NAME).unwrap_or_default();
        if old != record.name {
            writes.push(Write::Delete(experiment_name_key(&record.workspace, old), is_its_name));
        }
    }
    match context.writer.transact(&writes).await {
        Ok(()) => {}
        Err(table::Failure::Cancelled(_)) => {
            return Err(
                format!("experiment {} cannot be imported: its name was taken in the meantime", experiment.id).into()
            );
        }
        Err(failure) => return Err(format!("cannot write experiment {}: {failure:?}", experiment.id).into()),
    }
    match replaced.as_deref() {
        Some(replaced) => {
            context.writer.delete_all(stale_tags(context, experiment, replaced).await?).await?;
            context.report.updated(KIND, 1);
        }
        None => context.report.imported(KIND, 1),
    }
    Ok(())
}

/// Returns the keys of tag rows that are obsolete: the experiment no longer has the tag, or has it
/// in its document.
async fn stale_tags(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    replaced: &Item,
) -> Result<Vec<Key>, Failure> {
    if !replaced.has(TAG_ROWS) {
        return Ok(Vec::new());
    }
    let rows = context.table.query(Query::of(rows::ExperimentTag::all(&experiment.id))).await;
    let rows = rows.map_err(|failure| format!("cannot read the tags of experiment {}: {failure:?}", experiment.id))?;
    let document = context.table.get(&rows::Experiment::key(&experiment.id)).await;
    let document = document.map_err(|failure| format!("cannot read experiment {}: {failure:?}", experiment.id))?;
    let is_inline = |key: &str| {
        document.as_ref().and_then(|document| document.map(TAGS)).is_some_and(|tags| tags.contains_key(key))
    };
    let is_current = |key: &str| experiment.record.tags.iter().any(|(tag, _)| tag == key) && !is_inline(key);
    let stale = rows.iter().filter(|row| !row.get(entities::attributes::ROW_KEY).is_some_and(is_current));
    Ok(stale.filter_map(Item::key).collect())
}

/// Compares an experiment with its record, and reports a difference. Takes at most two requests.
///
/// # Errors
/// The table cannot be read.
pub(crate) async fn verify(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    let id = experiment.id;
    let document = context.table.get(&rows::Experiment::key(&id)).await;
    let document = document.map_err(|failure| format!("cannot read experiment {id}: {failure:?}"))?;
    match document {
        None => context.report.different(KIND, &format!("{id} is missing")),
        Some(document) if document.has(IMPORTED) => {
            let here = table_reader::record(&context.table, id, &document).await?;
            // If the hash differs, the experiment was changed in the table, and is in the report
            // already.
            if here != experiment.record && document.get(IMPORTED) == Some(fingerprint(&experiment.record)?.as_str()) {
                context.report.different(KIND, &id.to_string());
            }
        }
        Some(_) => {}
    }
    Ok(())
}
