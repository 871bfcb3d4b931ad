//! Reads runs from the table.

use std::collections::{BTreeMap, HashMap};

use entities::attributes::{DELETED_TIME, STAGE_VERSION};
use entities::points::{Point, sort_by_time};
use entities::{ExperimentState, RunItems, RunLocation, read_run_items, read_segment, run_stage, run_whole};
use key_schema::key_parts::metric_of_segment;
use key_schema::{Name, Segment, rows};
use mlflow_api::tracking::{LifecycleStage, RunOutputs};
use table::{Query, Table};

use super::record::{DatasetUse, MetricSummary, RunRecord};
use crate::Failure;

/// Reads a run with all its points, or returns `None` if it does not exist. Takes one request for
/// the document, one for its metrics, one per kind of rows, and at least one for the segments: one
/// per MB.
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
    histories(table, at, &items, |metric, points| {
        record.metrics.insert(metric.to_owned(), MetricSummary::of(points));
        Ok(())
    })
    .await?;
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

/// Reads the histories of all metrics of a run, and passes each to `each`, with its points in the
/// order of MLflow's history. Takes one request per MB of segments, and at least one, because a
/// run's documents do not tell which metrics have segments.
///
/// # Errors
/// The table or a segment cannot be read, or `each` fails.
pub(super) async fn histories(
    table: &Table,
    at: &RunLocation,
    items: &RunItems,
    mut each: impl FnMut(&str, &[Point]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let latest = items.latest_metrics().map_err(|error| error.message)?;
    let mut unread: HashMap<String, &str> = latest.keys().map(|metric| (Name::from(*metric).text(), *metric)).collect();
    let mut complete = |metric: &str, mut points: Vec<Point>| {
        points.extend(items.metrics.waiting(&items.run, metric).map_err(|error| error.message)?);
        sort_by_time(&mut points);
        each(metric, &points)
    };
    let unreadable = || format!("cannot read a segment of run {}", at.run);
    // Segments are sorted by metric.
    let mut current: Option<(String, Vec<Point>)> = None;
    let mut next = Some(Query::of(rows::MetricSegment::all(&at.run)));
    while let Some(query) = next {
        let page =
            table.query_page(&query).await.map_err(|failure| format!("cannot read run {}: {failure:?}", at.run))?;
        for segment in &page.items {
            let key = segment.key().ok_or_else(unreadable)?;
            let metric = metric_of_segment(&key.sk).ok_or_else(unreadable)?;
            let points = read_segment(segment).map_err(|error| error.message)?.0;
            match &mut current {
                Some((name, before)) if name == metric => before.extend(points),
                _ => {
                    if let Some((name, points)) = current.replace((metric.to_owned(), points))
                        && let Some(metric) = unread.remove(&name)
                    {
                        complete(metric, points)?;
                    }
                }
            }
        }
        next = page.next.map(|start| query.starting_at(start));
    }
    if let Some((name, points)) = current
        && let Some(metric) = unread.remove(&name)
    {
        complete(metric, points)?;
    }
    let mut without_segments: Vec<&str> = unread.into_values().collect();
    without_segments.sort_unstable();
    without_segments.into_iter().try_for_each(|metric| complete(metric, Vec::new()))
}
