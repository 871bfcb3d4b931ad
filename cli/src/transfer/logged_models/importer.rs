//! Imports logged models.

use entities::attributes::IMPORTED;
use entities::{ModelLocation, ModelPoint, ModelSeries, read_models};
use key_schema::{Key, ranges, rows};
use mlflow_api::ModelId;
use mlflow_api::logged_models::ModelStatus;
use table::{Item, Query, text};
use tracking::store::{StoredLoggedModel, logged_model_metric_items};

use super::id_remapping::replacement_id;
use super::{KIND, ModelRecord, database_reader, table_reader};
use crate::Failure;
use crate::transfer::experiments::ImportedExperiment;
use crate::transfer::import::{IdKind, ImportContext, ImportDecision, ORIGINAL_ID_TAG, fingerprint};

/// A logged model that is being imported.
struct PlannedModel {
    source_id: String,
    at: ModelLocation,
    /// The record as it is written to the table.
    record: ModelRecord,
}

/// Imports the logged models of an experiment.
///
/// # Errors
/// The source cannot be read, the table cannot be read or written, or the id of a model is taken and
/// `--remap` is not given.
pub(crate) async fn import(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    let mut after = String::new();
    loop {
        let records = database_reader::next_models(&context.source, experiment.source_id, &after).await?;
        let Some(last) = records.last() else { return Ok(()) };
        after.clone_from(&last.id);
        let mut planned: Vec<_> = records.into_iter().filter_map(|record| plan(context, experiment, record)).collect();
        let (mut others, mut documents, mut stale) = (Vec::new(), Vec::new(), Vec::new());
        let keys: Vec<_> = planned.iter().map(|model| model.at.key()).collect();
        let found =
            context.table.get_many(&keys).await.map_err(|failure| format!("cannot read models: {failure:?}"))?;
        for model in &mut planned {
            let (items, document) = match decide(context, experiment, model, found.get(&model.at.key())).await? {
                None => continue,
                Some(ImportDecision::Create) => {
                    context.report.imported(KIND, 1);
                    items(model)?
                }
                Some(_) => {
                    if let Some(replaced) = found.get(&model.at.key()) {
                        context.writer.begin_replacement(replaced).await?;
                    }
                    context.report.updated(KIND, 1);
                    let (items, document) = items(model)?;
                    stale.extend(stale_keys(context, &model.at, &items).await?);
                    (items, document)
                }
            };
            others.extend(items);
            documents.push(document);
        }
        context.writer.put_all(others).await?;
        context.writer.put_all(documents).await?;
        context.writer.delete_all(stale).await?;
    }
}

/// Returns a model as it is written to the table. Reports the reason and returns `None` if it
/// cannot be imported.
fn plan(context: &ImportContext, experiment: &ImportedExperiment, mut record: ModelRecord) -> Option<PlannedModel> {
    let source_id = record.id.clone();
    let omit = |reason: &str| context.report.omitted(KIND, &source_id, reason);
    let Some(model) = ModelId::parse(&record.id) else {
        omit("because its id is not valid");
        return None;
    };
    let sizes = [entities::documents::check_sizes(&record.params), entities::documents::check_sizes(&record.tags)];
    if sizes.iter().any(Result::is_err) {
        omit("because a param or tag is larger than 380 KB");
        return None;
    }
    record.artifact_uri = context.artifact_location(&record.artifact_uri);
    record.source_run = context.remapped.resolve(IdKind::Run, &record.source_run);
    for point in &mut record.points {
        point.run = context.remapped.resolve(IdKind::Run, &point.run);
    }
    record.points.sort_unstable();
    let at = ModelLocation { experiment: experiment.id, model };
    let mut planned = PlannedModel { source_id: source_id.clone(), at, record };
    // The id was assigned by a server like this one, and contains another experiment. Requests by
    // this id would look for the model there.
    if planned.at.model.experiment().is_some_and(|other| other != experiment.id) {
        if !context.remap {
            omit("because its id names another experiment. --remap imports it with another id");
            return None;
        }
        rename(context, &mut planned);
    }
    Some(planned)
}

/// Gives a model another id, and records the old one in a tag.
fn rename(context: &ImportContext, model: &mut PlannedModel) {
    let id = replacement_id(&model.source_id);
    if let Some(parsed) = ModelId::parse(&id) {
        context.remapped.insert(IdKind::LoggedModel, &model.source_id, &id);
        model.at.model = parsed;
    }
    model.record.tags.push((ORIGINAL_ID_TAG.to_owned(), model.source_id.clone()));
    model.record.tags.sort_unstable();
}

/// Decides about a model, and gives it another id if its own is taken. Returns `None` if there is
/// nothing to write.
async fn decide(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    model: &mut PlannedModel,
    document: Option<&Item>,
) -> Result<Option<ImportDecision>, Failure> {
    let mut document = document.cloned();
    let mut decision = ImportDecision::of(document.as_ref(), &fingerprint(&model.record)?);
    if decision == ImportDecision::Taken {
        if !context.remap {
            return Err(format!(
                "logged model {} of experiment {} cannot be imported: its id is taken. --remap imports it with another id",
                model.source_id, experiment.source_id
            )
            .into());
        }
        rename(context, model);
        let found = context.table.get(&model.at.key()).await;
        document = found.map_err(|failure| format!("cannot read models: {failure:?}"))?;
        decision = ImportDecision::of(document.as_ref(), &fingerprint(&model.record)?);
    }
    match decision {
        ImportDecision::Create | ImportDecision::Interrupted => Ok(Some(decision)),
        ImportDecision::Unchanged => {
            context.report.unchanged(KIND, 1);
            Ok(None)
        }
        ImportDecision::Taken => {
            Err(format!("logged model {} cannot be imported: its new id is taken too", model.source_id).into())
        }
        ImportDecision::Changed => {
            let here = read(context, &model.at).await?.map(|here| fingerprint(&here)).transpose()?;
            let imported = document.as_ref().and_then(|document| document.get(IMPORTED));
            if here.as_deref() == imported {
                return Ok(Some(decision));
            }
            context.report.changed_here(KIND, model.at.model.as_str());
            Ok(None)
        }
    }
}

/// Reads a model from the table. Takes one request, and one more for each kind of row that the
/// model has.
async fn read(context: &ImportContext, at: &ModelLocation) -> Result<Option<ModelRecord>, Failure> {
    let found = read_models(&context.table, std::slice::from_ref(at)).await;
    let found = found.map_err(|failure| format!("cannot read logged model {}: {failure:?}", at.model))?;
    found.first().map(|(at, items)| table_reader::record(at, items)).transpose()
}

/// Returns a model's rows and points, and its document.
fn items(model: &PlannedModel) -> Result<(Vec<Item>, Item), Failure> {
    let PlannedModel { at, record, .. } = model;
    let stored = StoredLoggedModel {
        at,
        name: &record.name,
        model_type: &record.model_type,
        source_run: &record.source_run,
        status: ModelStatus::from_number(record.status),
        stage: record.stage,
        created: record.created,
        updated: record.updated,
        artifact_uri: &record.artifact_uri,
        params: &record.params,
        tags: &record.tags,
    };
    let (document, mut items) = stored.items();
    let mut series = ModelSeries::new();
    for point in &record.points {
        let named = !point.dataset_name.is_empty() || !point.dataset_digest.is_empty();
        let dataset = named.then(|| (point.dataset_name.clone(), point.dataset_digest.clone()));
        let value = f64::from_bits(point.value_bits);
        let packed = ModelPoint::new(point.timestamp, point.step, value, &point.run, dataset);
        series.entry(point.metric.clone()).or_default().push(packed);
    }
    items.extend(logged_model_metric_items(at, &series));
    Ok((items, document.with(IMPORTED, text(fingerprint(record)?))))
}

/// Returns the keys of the items that a replaced model no longer has.
async fn stale_keys(context: &ImportContext, at: &ModelLocation, items: &[Item]) -> Result<Vec<Key>, Failure> {
    let mut stale = Vec::new();
    let segments = rows::LoggedModelSegment::partition(&at.model);
    for range in [ranges::rows_of_logged_model(&at.experiment, &at.model), segments] {
        let found = context.table.query(Query::of(range)).await;
        let found = found.map_err(|failure| format!("cannot read logged model {}: {failure:?}", at.model))?;
        let keys = found.iter().filter_map(Item::key);
        stale.extend(keys.filter(|key| *key != at.key() && !items.iter().any(|item| item.key().as_ref() == Some(key))));
    }
    Ok(stale)
}

/// Compares the imported logged models of an experiment with the source, and reports differences.
/// Takes one request per model for its document, and then the requests of [`read`].
///
/// # Errors
/// The source or the table cannot be read.
pub(crate) async fn verify(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    let mut after = String::new();
    loop {
        let records = database_reader::next_models(&context.source, experiment.source_id, &after).await?;
        let Some(last) = records.last() else { return Ok(()) };
        after.clone_from(&last.id);
        for record in records {
            let id = context.remapped.resolve(IdKind::LoggedModel, &record.id);
            let Some(model) = ModelId::parse(&id) else { continue };
            let at = ModelLocation { experiment: experiment.id, model };
            let document = context.table.get(&at.key()).await;
            let document = document.map_err(|failure| format!("cannot read logged model {id}: {failure:?}"))?;
            let Some(imported) =
                document.as_ref().map(|document| document.get(IMPORTED).unwrap_or_default().to_owned())
            else {
                context.report.different(KIND, &format!("{} is missing", record.id));
                continue;
            };
            let Some(planned) = plan_again(context, experiment, record) else { continue };
            // If the hash differs, the model was changed in the table, and is in the report
            // already.
            if imported == fingerprint(&planned.record)? {
                let here = read(context, &at).await?;
                let expected = ModelRecord { id: at.model.to_string(), ..planned.record };
                if here != Some(expected) {
                    context.report.different(KIND, &planned.source_id);
                }
            }
        }
    }
}

/// Returns a model as this import has written it, with the id that the model has in the table.
fn plan_again(context: &ImportContext, experiment: &ImportedExperiment, record: ModelRecord) -> Option<PlannedModel> {
    let is_renamed = context.remapped.resolve(IdKind::LoggedModel, &record.id) != record.id;
    let mut planned = plan(context, experiment, record)?;
    if is_renamed && planned.at.model.as_str() == planned.source_id {
        rename(context, &mut planned);
    }
    Some(planned)
}
