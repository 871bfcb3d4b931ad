//! Reads runs from the table.

use std::collections::BTreeMap;

use entities::attributes::{DELETED_TIME, STAGE_VERSION};
use entities::points::{Point, sort_by_time};
use entities::{ExperimentState, RunItems, RunLocation, read_run_items, read_segment, run_stage, run_whole};
use key_schema::{Name, ranges};
use mlflow_api::tracking::{LifecycleStage, RunOutputs};
use table::{Query, Table};

use super::record::{DatasetUse, MetricSummary, RunRecord};
use crate::Failure;

/// Reads a run with all its points, or returns `None` if it does not exist. Takes one request for
/// the document, one for its metrics, one per kind of rows, and one per MB of segments of each
/// metric.
///
/// # Errors
/// The table or the run cannot be read.
pub(super) async fn record(
    table: &Table,
    at: &RunLocation,
    state: &ExperimentState,
) -> Result<Option<RunRecord>, Failure> {
    let failed = |failure: table::Failure| Failure::from(format!("cannot read run {}: {failure:?}", at.run));
    let Some(run) = table.get(&at.key()).await.map_err(failed)? else { return Ok(None) };
    let items = read_run_items(table, at, run, None).await.map_err(failed)?;
    let mut record = without_metrics(at, &items, state)?;
    let metrics: Vec<String> =
        items.latest_metrics().map_err(|error| error.message)?.keys().map(|name| (*name).to_owned()).collect();
    for metric in metrics {
        let points = points(table, at, &items, &metric).await?;
        record.metrics.insert(metric, MetricSummary::of(&points));
    }
    Ok(Some(record))
}

/// Returns a run's record without its metrics.
///
/// # Errors
/// The run cannot be read.
pub(super) fn without_metrics(
    at: &RunLocation,
    items: &RunItems,
    state: &ExperimentState,
) -> Result<RunRecord, Failure> {
    let run = run_whole(at, items, state).map_err(|error| error.message)?;
    let lifecycle_stage = run_stage(&items.run, state);
    let is_own = items.run.get(STAGE_VERSION).is_some_and(|version| version >= state.version);
    let deleted_time = items.run.get(DELETED_TIME).filter(|_| lifecycle_stage == LifecycleStage::Deleted && is_own);
    let pairs = |entries: Vec<mlflow_api::tracking::KeyValue>| {
        let mut pairs: Vec<_> = entries.into_iter().map(|entry| (entry.key, entry.value)).collect();
        pairs.sort_unstable();
        pairs
    };
    let mut datasets: Vec<_> = run
        .inputs
        .dataset_inputs
        .into_iter()
        .map(|input| DatasetUse { name: input.dataset.name, digest: input.dataset.digest, tags: pairs(input.tags) })
        .collect();
    datasets.sort_unstable();
    let mut model_inputs: Vec<_> = run.inputs.model_inputs.into_iter().map(|model| model.model_id).collect();
    model_inputs.sort_unstable();
    let outputs = run.outputs.map(|RunOutputs { model_outputs }| model_outputs).unwrap_or_default();
    let mut model_outputs: Vec<_> = outputs.into_iter().map(|model| (model.model_id, model.step)).collect();
    model_outputs.sort_unstable();
    Ok(RunRecord {
        id: at.run.to_string(),
        name: run.info.run_name,
        user: run.info.user_id,
        status: run.info.status,
        start_time: run.info.start_time,
        end_time: run.info.end_time,
        stage: lifecycle_stage,
        deleted_time,
        artifact_uri: run.info.artifact_uri,
        params: pairs(run.data.params),
        tags: pairs(run.data.tags),
        datasets,
        model_inputs,
        model_outputs,
        metrics: BTreeMap::new(),
    })
}

/// Returns all points of a metric, in the order of MLflow's history. Takes one request per MB of
/// segments, and none if there are no segments.
///
/// # Errors
/// The table or a segment cannot be read.
pub(super) async fn points(
    table: &Table,
    at: &RunLocation,
    items: &RunItems,
    metric: &str,
) -> Result<Vec<Point>, Failure> {
    let unreadable = |error: mlflow_api::Error| Failure::from(error.message);
    let mut points = items.metrics.waiting(&items.run, metric).map_err(unreadable)?;
    let charted = items.metrics.charted(metric).map_err(unreadable)?;
    let has_segments =
        charted != entities::ChartProgress::default() || items.metrics.journal.segments.contains_key(metric);
    if has_segments {
        let mut next = Some(Query::of(ranges::segments_between(&at.run, &Name::from(metric), None, None)));
        while let Some(query) = next {
            let page =
                table.query_page(&query).await.map_err(|failure| format!("cannot read run {}: {failure:?}", at.run))?;
            for segment in &page.items {
                points.extend(read_segment(segment).map_err(unreadable)?.0);
            }
            next = page.next.map(|start| query.starting_at(start));
        }
    }
    sort_by_time(&mut points);
    Ok(points)
}
