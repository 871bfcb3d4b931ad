//! Reads runs from the table.

use std::collections::{BTreeMap, HashMap};

use artifact_store::Archive;
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
/// The table, the archive or the run cannot be read.
pub(super) async fn record(
    table: &Table,
    archive: &Archive,
    at: &RunLocation,
    state: &ExperimentState,
) -> Result<Option<RunRecord>, Failure> {
    let failed = |failure: table::Failure| Failure::from(format!("cannot read run {}: {failure:?}", at.run));
    let Some(run) = table.get(&at.key()).await.map_err(failed)? else { return Ok(None) };
    let items = read_run_items(table, at, run, None).await.map_err(failed)?;
    let mut record = without_metrics(at, &items, state)?;
    histories(table, archive, at, &items, |metric, points| {
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
/// run's documents do not tell which metrics have segments. Long histories take one more for the
/// list of archived segments, and one request to the archive per up to 4 MB.
///
/// # Errors
/// The table, the archive or a segment cannot be read, or `each` fails.
pub(super) async fn histories(
    table: &Table,
    archive: &Archive,
    at: &RunLocation,
    items: &RunItems,
    mut each: impl FnMut(&str, &[Point]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let latest = items.latest_metrics().map_err(|error| error.message)?;
    let mut unread: HashMap<String, &str> = latest.keys().map(|metric| (Name::from(*metric).text(), *metric)).collect();
    let mut complete = async |metric: &str, mut points: Vec<Point>| {
        points.extend(items.metrics.waiting(&items.run, metric).map_err(|error| error.message)?);
        // Archived segments are read after those in the table, so that no segment is missed that is
        // archived in between.
        if items.metrics.may_be_archived(&items.run, metric).map_err(|error| error.message)? {
            let archived = metric_archive::read_archived_points(table, archive, at, metric).await;
            points.extend(archived.map_err(|error| unreadable_archive(&error))?);
        }
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
                        complete(metric, points).await?;
                    }
                }
            }
        }
        next = page.next.map(|start| query.starting_at(start));
    }
    if let Some((name, points)) = current
        && let Some(metric) = unread.remove(&name)
    {
        complete(metric, points).await?;
    }
    let mut without_segments: Vec<&str> = unread.into_values().collect();
    without_segments.sort_unstable();
    for metric in without_segments {
        complete(metric, Vec::new()).await?;
    }
    Ok(())
}

/// Describes an error of the archive. The option is the one of `import` and `export`.
fn unreadable_archive(error: &mlflow_api::Error) -> String {
    let cause = error.cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
    format!("{}{cause} Is --artifacts-destination where the server stores artifacts?", error.message)
}

#[cfg(test)]
mod tests {
    use artifact_store::ArtifactStore;
    use embedded_engine::Engine;
    use entities::SegmentEncoding;
    use metric_archive::archive_history;
    use metric_packing::HistoryPacker;
    use mlflow_api::tracking::RunStatus;
    use mlflow_api::{ExperimentId, RunId};
    use test_site::sample_metrics;
    use tracking::store::StoredRun;

    use super::*;

    async fn read(table: &Table, archive: &Archive, at: &RunLocation) -> Result<Vec<(String, Vec<Point>)>, Failure> {
        let run = table.get(&at.key()).await.unwrap().unwrap();
        let items = read_run_items(table, at, run, None).await.unwrap();
        let mut all = Vec::new();
        histories(table, archive, at, &items, |metric, points| {
            all.push((metric.to_owned(), points.to_vec()));
            Ok(())
        })
        .await?;
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(all)
    }

    #[tokio::test]
    async fn archived_histories_are_read_too() {
        let table = Table::new(Engine::memory().unwrap().client(), "table");
        table.create_if_missing().await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let archive = Archive::new(ArtifactStore::in_directory(directory.path()));
        let experiment = ExperimentId::DEFAULT;
        let at = RunLocation { experiment, run: RunId::new(1, experiment, 7) };
        let point = |step: u32| Point::new(i64::from(step) * 10, step.into(), sample_metrics::value(0, step));
        let points = |count: u32| (0..count).map(point).collect::<Vec<_>>();
        let long = "\u{1F600}#".repeat(120);
        let expected = [("a", 40_000), ("b", 9_000), ("c", 3), (&long, 20_000)]
            .map(|(name, count)| (name.to_owned(), points(count)));
        let mut packer = HistoryPacker::new(&at, SegmentEncoding::default());
        for (metric, points) in &expected {
            packer.add(metric, points.iter().copied());
        }
        let (mut items, documents) = packer.finish();
        items.extend(documents);
        let run = StoredRun {
            at: &at,
            name: "run",
            user: "",
            status: RunStatus::Finished,
            start_time: 1,
            end_time: Some(2),
            artifact_uri: None,
            own_stage: None,
            params: &[],
            tags: &[],
        };
        items.push(run.items().with_packed_metrics().document);
        table.write_many(items, &[]).await.unwrap();

        assert_eq!(read(&table, &archive, &at).await.unwrap(), expected);
        assert_eq!(archive_history(&table, &archive, &at, 2).await.unwrap(), 0);
        assert!(archive_history(&table, &archive, &at, 3).await.unwrap() > 20);
        assert_eq!(archive_history(&table, &archive, &at, 3).await.unwrap(), 0);
        assert_eq!(read(&table, &archive, &at).await.unwrap(), expected);
        let failure = read(&table, &Archive::default(), &at).await.unwrap_err().to_string();
        assert!(failure.ends_with("Is --artifacts-destination where the server stores artifacts?"), "{failure}");
    }
}
