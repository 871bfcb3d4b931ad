//! Imports runs.
//!
//! Runs are read in batches. New runs are written while their points are read: segments and chart
//! rows as soon as they are complete, then the metrics documents and rows, and the runs' documents
//! last. For runs that the table already has, the points are first only summed up, to find out
//! whether the runs have changed. The runs that have changed are then read again and replaced.

use std::collections::{BTreeMap, HashMap, HashSet};

use entities::archived_objects::drop_later;
use entities::attributes::{IMPORTED, REVISION};
use entities::{ExperimentState, RunLocation, object_of_segments};
use futures::stream::StreamExt;
use key_schema::Key;
use key_schema::{ranges, rows};
use metric_packing::HistoryPacker;
use mlflow_api::RunId;
use mlflow_api::inputs::{Dataset, DatasetInput};
use mlflow_api::tracking::{KeyValue, LifecycleStage, ModelOutput};
use table::{Item, Query, number, text};
use tracking::store::{MAX_DOCUMENT_POINT_BYTES, RunStage, StoredRun};

use super::id_remapping::replacement_id;
use super::{KIND, MetricSummary, RunRecord, database_reader, dataset_importer, metric_reader, table_reader};
use crate::Failure;
use crate::transfer::experiments::ImportedExperiment;
use crate::transfer::import::{IdKind, ImportContext, ImportDecision, ORIGINAL_ID_TAG, fingerprint};

/// Number of items that are collected before they are written.
const ITEMS_AT_ONCE: usize = 400;
/// When an import is verified, one in this many runs is read back completely.
const SAMPLE_EVERY: usize = 50;

/// A run that is being imported: its record as it is written to the table, and its location.
struct PlannedRun {
    source_id: String,
    at: RunLocation,
    record: RunRecord,
    /// The document in the table, if there is one.
    document: Option<Item>,
}

/// Imports the runs of an experiment.
///
/// # Errors
/// The source cannot be read, the table cannot be read or written, or the id of a run is taken and
/// `--remap` is not given.
pub(crate) async fn import(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    dataset_importer::import(context, experiment).await?;
    let mut after = String::new();
    loop {
        let (planned, last) = next_batch(context, experiment, &after).await?;
        let Some(last) = last else { return Ok(()) };
        after = last;
        let mut planned: HashMap<String, PlannedRun> =
            planned.into_iter().map(|run| (run.source_id.clone(), run)).collect();
        let mut ids: Vec<_> = planned.keys().cloned().collect();
        ids.sort_unstable();
        if ids.is_empty() {
            continue;
        }
        for ids in metric_reader::groups(&context.source, ids).await? {
            let group = ids.iter().filter_map(|id| planned.remove(id));
            let (known, new): (Vec<_>, Vec<_>) = group.partition(|run| run.document.is_some());
            write(context, experiment, new).await?;
            let changed = changed_runs(context, experiment, known).await?;
            write(context, experiment, changed).await?;
        }
    }
}

/// Reads the next runs after an id, and decides about their ids. Also returns the last id that was
/// read, or `None` at the end.
async fn next_batch(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    after: &str,
) -> Result<(Vec<PlannedRun>, Option<String>), Failure> {
    let (mut records, mut last) = (Vec::new(), None);
    for run in database_reader::next_runs(&context.source, experiment.source_id, after).await? {
        match run {
            Ok(record) => {
                last = Some(record.id.clone());
                records.push(record);
            }
            Err((id, reason)) => {
                context.report.omitted(KIND, &id, reason);
                last = Some(id);
            }
        }
    }
    let mut planned: Vec<_> = records.into_iter().filter_map(|record| plan(context, experiment, record)).collect();
    let taken = read_documents(context, &mut planned).await?;
    if !taken.is_empty() {
        let Some(first) = taken.first().filter(|_| !context.remap) else {
            let mut renamed: Vec<_> = taken.into_iter().map(|run| renamed(context, experiment, run)).collect();
            let taken = read_documents(context, &mut renamed).await?;
            if let Some(run) = taken.first() {
                return Err(format!("run {} cannot be imported: its new id is taken too", run.source_id).into());
            }
            planned.extend(renamed);
            return Ok((planned, last));
        };
        return Err(format!(
            "run {} cannot be imported: its id is taken. --remap imports it with another id",
            first.source_id
        )
        .into());
    }
    Ok((planned, last))
}

/// Reads the documents of planned runs, and removes and returns the runs whose ids are taken. Takes
/// one request per 100 runs.
async fn read_documents(context: &ImportContext, planned: &mut Vec<PlannedRun>) -> Result<Vec<PlannedRun>, Failure> {
    let keys: Vec<_> = planned.iter().map(|run| run.at.key()).collect();
    let mut documents =
        context.table.get_many(&keys).await.map_err(|failure| format!("cannot read runs: {failure:?}"))?;
    for run in planned.iter_mut() {
        run.document = documents.remove(&run.at.key());
    }
    let is_taken = |run: &mut PlannedRun| ImportDecision::of(run.document.as_ref(), "") == ImportDecision::Taken;
    Ok(planned.extract_if(.., is_taken).collect())
}

/// Returns a run as it is written to the table. Reports the reason and returns `None` if it cannot
/// be imported.
fn plan(context: &ImportContext, experiment: &ImportedExperiment, mut record: RunRecord) -> Option<PlannedRun> {
    let source_id = record.id.clone();
    let omit = |reason: &str| context.report.omitted(KIND, &source_id, reason);
    let Some(run) = RunId::parse(&record.id) else {
        omit("because its id is not valid");
        return None;
    };
    let sizes = [entities::documents::check_sizes(&record.params), entities::documents::check_sizes(&record.tags)];
    if sizes.iter().any(Result::is_err) {
        omit("because a param or tag is larger than 380 KB");
        return None;
    }
    record.artifact_uri = context.artifact_location(&record.artifact_uri);
    for model in &mut record.model_inputs {
        *model = context.remapped.resolve(IdKind::LoggedModel, model);
    }
    for (model, _) in &mut record.model_outputs {
        *model = context.remapped.resolve(IdKind::LoggedModel, model);
    }
    let at = RunLocation { experiment: experiment.id, run };
    let planned = PlannedRun { source_id: source_id.clone(), at, record, document: None };
    match planned.at.run.experiment() {
        // The id was assigned by a server like this one, and contains another experiment. Requests
        // by this id would look for the run there.
        Some(other) if other != experiment.id && !context.remap => {
            omit("because its id names another experiment. --remap imports it with another id");
            None
        }
        Some(other) if other != experiment.id => Some(renamed(context, experiment, planned)),
        _ => Some(planned),
    }
}

/// Gives a run another id, and records the old one in a tag.
fn renamed(context: &ImportContext, experiment: &ImportedExperiment, mut run: PlannedRun) -> PlannedRun {
    let digits = replacement_id(&run.source_id);
    if let Some(id) = RunId::parse(&digits) {
        context.remapped.insert(IdKind::Run, &run.source_id, &digits);
        run.at = RunLocation { experiment: experiment.id, run: id };
    }
    run.record.tags.push((ORIGINAL_ID_TAG.to_owned(), run.source_id.clone()));
    run.record.tags.sort_unstable();
    run
}

/// Writes runs with everything that belongs to them, and reports them.
async fn write(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    mut runs: Vec<PlannedRun>,
) -> Result<(), Failure> {
    if runs.is_empty() {
        return Ok(());
    }
    let locations: BTreeMap<String, RunLocation> =
        runs.iter().map(|run| (run.source_id.clone(), run.at.clone())).collect();
    let mut packers: HashMap<&str, HistoryPacker<'_>> =
        locations.iter().map(|(id, at)| (id.as_str(), HistoryPacker::new(at, context.segments))).collect();
    let mut summaries: HashMap<String, BTreeMap<String, MetricSummary>> = HashMap::new();
    let ids: Vec<_> = locations.keys().cloned().collect();
    // If runs are replaced, the keys of all written items are recorded, because all other items of
    // these runs are deleted below.
    let mut written: HashSet<Key> = HashSet::new();
    let is_replaced = runs.iter().any(|run| run.document.is_some());
    for document in runs.iter().filter_map(|run| run.document.as_ref()) {
        context.writer.begin_replacement(document).await?;
    }
    let mut ready = Vec::new();
    let mut points = std::pin::pin!(metric_reader::points(&context.source, &ids));
    while let Some(batch) = points.next().await {
        for group in batch?.chunk_by(|one, other| one.run == other.run && one.metric == other.metric) {
            let Some(first) = group.first() else { continue };
            let Some(packer) = packers.get_mut(first.run.as_str()) else { continue };
            let summary = summaries.entry(first.run.clone()).or_default().entry(first.metric.clone()).or_default();
            for point in group {
                summary.add(&point.point);
            }
            packer.add(&first.metric, group.iter().map(|point| point.point));
            ready.extend(packer.take_ready());
        }
        if ready.len() >= ITEMS_AT_ONCE {
            put(context, &mut ready, &mut written, is_replaced).await?;
        }
    }
    put(context, &mut ready, &mut written, is_replaced).await?;

    let (mut others, mut documents) = (Vec::new(), Vec::new());
    for run in &mut runs {
        run.record.metrics = summaries.remove(&run.source_id).unwrap_or_default();
        let packer = packers.remove(run.source_id.as_str());
        let (items, document) = items(context, experiment, run, packer)?;
        others.extend(items);
        documents.push(document);
    }
    put(context, &mut others, &mut written, is_replaced).await?;
    written.extend(documents.iter().filter_map(Item::key));
    context.writer.put_all(documents).await?;
    for run in &runs {
        if run.document.is_some() {
            delete_stale(context, &run.at, &written).await?;
            context.report.updated(KIND, 1);
        } else {
            context.report.imported(KIND, 1);
        }
    }
    Ok(())
}

/// Writes items, and empties the list. If runs are replaced, adds the keys of the items to
/// `written`.
async fn put(
    context: &ImportContext,
    items: &mut Vec<Item>,
    written: &mut HashSet<Key>,
    is_replaced: bool,
) -> Result<(), Failure> {
    if is_replaced {
        written.extend(items.iter().filter_map(Item::key));
    }
    context.writer.put_all(std::mem::take(items)).await
}

/// Returns the document of a run, and its other items that are not written yet.
fn items(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    run: &PlannedRun,
    packer: Option<HistoryPacker<'_>>,
) -> Result<(Vec<Item>, Item), Failure> {
    let PlannedRun { at, record, document: replaced, .. } = run;
    let state = state(experiment);
    let own_stage = has_own_stage(record, &state).then_some(RunStage {
        stage: record.stage,
        version: state.version,
        deleted: record.deleted_time,
    });
    let uri = record.artifact_uri.as_str();
    let stored = StoredRun {
        at,
        name: &record.name,
        user: &record.user,
        status: record.status,
        start_time: record.start_time,
        end_time: record.end_time,
        artifact_uri: (uri != state.artifacts_of(&at.run)).then_some(uri),
        own_stage,
        params: &record.params,
        tags: &record.tags,
    };
    let outputs: Vec<_> =
        record.model_outputs.iter().map(|(model, step)| ModelOutput { model_id: model.clone(), step: *step }).collect();
    let datasets: Vec<_> = record.datasets.iter().map(dataset_input).collect();
    let mut items = stored.items().with_links(at, &datasets, &record.model_inputs, &outputs);
    let mut others = Vec::new();
    if let Some(packer) = packer {
        if let Some(points) = packer.inline(MAX_DOCUMENT_POINT_BYTES) {
            items = items.with_points(&points);
        } else {
            let (ready, documents) = packer.finish();
            others.extend(ready);
            if documents.iter().any(|document| document.size() > MAX_ITEM_BYTES) {
                context.report.different(KIND, &format!("{} has more metrics than can be stored", run.source_id));
            }
            others.extend(documents);
            items = items.with_packed_metrics();
        }
    }
    others.extend(items.rows);
    let mut document = items.document.with(IMPORTED, text(fingerprint(record)?));
    if let Some(replaced) = replaced {
        document = document.with(REVISION, number(replaced.get(REVISION).unwrap_or_default() + 1));
    }
    Ok((others, document))
}

/// Returns whether a run's document has a stage of its own, instead of following the stage of its
/// experiment.
fn has_own_stage(record: &RunRecord, experiment: &ExperimentState) -> bool {
    record.stage != experiment.stage || record.stage == LifecycleStage::Deleted
}

/// DynamoDB's limit for the size of an item, in bytes.
const MAX_ITEM_BYTES: usize = 400 << 10;

fn dataset_input(used: &super::record::DatasetUse) -> DatasetInput {
    let tags = used.tags.iter().map(|(key, value)| KeyValue { key: key.clone(), value: value.clone() }).collect();
    let dataset = Dataset { name: used.name.clone(), digest: used.digest.clone(), ..Dataset::default() };
    DatasetInput { tags, dataset }
}

/// Returns the state that the experiment will have in the table.
fn state(experiment: &ImportedExperiment) -> ExperimentState {
    ExperimentState {
        stage: experiment.record.stage,
        version: experiment.stage_version,
        artifact_location: experiment.record.artifact_location.clone(),
    }
}

/// Deletes the items that a replaced run no longer has.
async fn delete_stale(context: &ImportContext, at: &RunLocation, written: &HashSet<Key>) -> Result<(), Failure> {
    let parts = [
        ranges::rows_of_run(&at.experiment, &at.run),
        ranges::journal_and_metrics(&at.run),
        ranges::charts_and_segments(&at.run),
    ];
    for range in parts {
        let mut next = Some(Query::of(range));
        while let Some(query) = next {
            let page =
                context.table.query_page(&query).await.map_err(|failure| format!("cannot read a run: {failure:?}"))?;
            for (key, object) in page.items.iter().filter_map(object_of_segments) {
                let dropped = drop_later(&context.table, [object], &key).await;
                dropped.map_err(|failure| format!("cannot remove archived points of a run: {failure:?}"))?;
            }
            let stale =
                page.items.iter().filter_map(Item::key).filter(|key| !written.contains(key) && *key != at.key());
            context.writer.delete_all(stale.collect()).await?;
            next = page.next.map(|start| query.starting_at(start));
        }
    }
    Ok(())
}

/// Returns the runs that have to be written again, given runs that the table already has. These are
/// the runs that have changed in the source and not in the table, runs whose import was
/// interrupted, and runs whose own stage would be outdated by the new stage of the experiment.
/// Reports all other runs.
async fn changed_runs(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    mut runs: Vec<PlannedRun>,
) -> Result<Vec<PlannedRun>, Failure> {
    if runs.is_empty() {
        return Ok(runs);
    }
    let ids: Vec<_> = runs.iter().map(|run| run.source_id.clone()).collect();
    let mut summaries = summaries(context, &ids).await?;
    let mut changed = Vec::new();
    for mut run in runs.drain(..) {
        run.record.metrics = summaries.remove(&run.source_id).unwrap_or_default();
        let decision = ImportDecision::of(run.document.as_ref(), &fingerprint(&run.record)?);
        if decision == ImportDecision::Unchanged
            && experiment.has_new_stage
            && has_own_stage(&run.record, &state(experiment))
        {
            changed.push(run);
            continue;
        }
        if decision == ImportDecision::Unchanged {
            context.report.unchanged(KIND, 1);
            continue;
        }
        if decision == ImportDecision::Interrupted {
            changed.push(run);
            continue;
        }
        let known = known_state(context, experiment).await?;
        let here = table_reader::record(&context.table, &context.archive.clone(), &run.at, &known).await?;
        let imported = run.document.as_ref().and_then(|document| document.get(IMPORTED));
        if here.map(|here| fingerprint(&here)).transpose()?.as_deref() == imported {
            changed.push(run);
        } else {
            context.report.changed_here(KIND, run.at.run.as_str());
        }
    }
    Ok(changed)
}

/// Returns the state that the experiment has in the table now, or will have if it is not visible
/// yet.
async fn known_state(context: &ImportContext, experiment: &ImportedExperiment) -> Result<ExperimentState, Failure> {
    let document = context.table.get(&rows::Experiment::key(&experiment.id)).await;
    let document = document.map_err(|failure| format!("cannot read an experiment: {failure:?}"))?;
    Ok(document.as_ref().map_or_else(|| state(experiment), entities::experiment_state))
}

/// Returns the summaries of runs' metrics, computed from all points in the source.
async fn summaries(
    context: &ImportContext,
    ids: &[String],
) -> Result<HashMap<String, BTreeMap<String, MetricSummary>>, Failure> {
    let mut summaries: HashMap<String, BTreeMap<String, MetricSummary>> = HashMap::new();
    let mut points = std::pin::pin!(metric_reader::points(&context.source, ids));
    while let Some(batch) = points.next().await {
        for point in batch? {
            summaries.entry(point.run).or_default().entry(point.metric).or_default().add(&point.point);
        }
    }
    Ok(summaries)
}

/// Checks that all runs of an experiment are in the table, and compares a sample of them with the
/// source completely. Reports differences.
///
/// # Errors
/// The source or the table cannot be read.
pub(crate) async fn verify(context: &ImportContext, experiment: &ImportedExperiment) -> Result<(), Failure> {
    let state = known_state(context, experiment).await?;
    let (mut after, mut position) = (String::new(), 0);
    loop {
        let (planned, last) = next_batch(context, experiment, &after).await?;
        let Some(last) = last else { return Ok(()) };
        after = last;
        let mut sample = Vec::new();
        for run in planned {
            if run.document.is_none() {
                context.report.different(KIND, &format!("{} is missing", run.source_id));
            } else if position % SAMPLE_EVERY == 0 {
                sample.push(run);
            }
            position += 1;
        }
        let ids: Vec<_> = sample.iter().map(|run| run.source_id.clone()).collect();
        if ids.is_empty() {
            continue;
        }
        let mut summaries = summaries(context, &ids).await?;
        for mut run in sample {
            run.record.metrics = summaries.remove(&run.source_id).unwrap_or_default();
            let expected = fingerprint(&run.record)?;
            let imported = run.document.as_ref().and_then(|document| document.get(IMPORTED));
            // If the hash differs, the run was changed in the table, and is in the report already.
            if imported != Some(expected.as_str()) {
                continue;
            }
            let here = table_reader::record(&context.table, &context.archive.clone(), &run.at, &state).await?;
            if here.is_none_or(|here| here != RunRecord { id: run.at.run.to_string(), ..run.record.clone() }) {
                context.report.different(KIND, &run.source_id);
            }
        }
    }
}
