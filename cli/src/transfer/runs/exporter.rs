//! Exports runs.

use entities::{ExperimentState, RunItems, RunLocation, read_all_runs};
use futures::stream::StreamExt;
use key_schema::rows;
use mlflow_api::tracking::LifecycleStage;
use rusqlite::params;
use table::Query;
use tracking::store::read_dataset;

use super::record::RunRecord;
use super::table_reader;
use crate::Failure;
use crate::transfer::experiments::ExportedExperiment;
use crate::transfer::export::ExportContext;

/// Exports the runs of an experiment, one page at a time. Takes one request per MB of documents and
/// rows. For each run, takes at least one more for its segments: one per MB.
///
/// # Errors
/// The table cannot be read, or the file cannot be written.
pub(crate) async fn export(context: &ExportContext, experiment: &ExportedExperiment) -> Result<(), Failure> {
    export_datasets(context, experiment).await?;
    let state = ExperimentState {
        stage: experiment.record.stage,
        version: experiment.stage_version,
        artifact_location: experiment.record.artifact_location.clone(),
    };
    let mut runs = std::pin::pin!(read_all_runs(&context.table, experiment.record.id));
    while let Some(run) = runs.next().await {
        let (at, items) = run.map_err(|error| error.message)?;
        export_run(context, &at, &items, &state).await?;
    }
    Ok(())
}

async fn export_datasets(context: &ExportContext, experiment: &ExportedExperiment) -> Result<(), Failure> {
    let id = experiment.record.id;
    let mut next = Some(Query::of(rows::Dataset::all(&id)));
    while let Some(query) = next {
        let page =
            context.table.query_page(&query).await.map_err(|failure| format!("cannot read datasets: {failure:?}"))?;
        for item in &page.items {
            let dataset = read_dataset(&context.table, id, item).await.map_err(|error| error.message)?;
            let optional = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            context.insert(
                "INSERT INTO datasets (dataset_uuid, experiment_id, name, digest, dataset_source_type, dataset_source, \
                 dataset_schema, dataset_profile) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                params![
                    dataset_uuid(experiment, &dataset.name, &dataset.digest),
                    i64::try_from(id.number())?,
                    dataset.name,
                    dataset.digest,
                    dataset.source_type,
                    dataset.source,
                    optional(&dataset.schema),
                    optional(&dataset.profile),
                ],
            )?;
        }
        next = page.next.map(|start| query.starting_at(start));
    }
    Ok(())
}

async fn export_run(
    context: &ExportContext,
    at: &RunLocation,
    items: &RunItems,
    state: &ExperimentState,
) -> Result<(), Failure> {
    let record = table_reader::without_metrics(at, items, state)?;
    let is_deleted = record.stage == LifecycleStage::Deleted;
    context.insert(
        "INSERT INTO runs (run_uuid, name, source_type, source_name, entry_point_name, user_id, status, start_time, end_time, \
         deleted_time, source_version, lifecycle_stage, artifact_uri, experiment_id) VALUES (?, ?, 'UNKNOWN', '', '', ?, ?, ?, \
         ?, ?, '', ?, ?, ?)",
        params![
            record.id,
            record.name,
            record.user,
            record.status.name(),
            record.start_time,
            record.end_time,
            record.deleted_time.filter(|_| is_deleted),
            record.stage.name(),
            record.artifact_uri,
            i64::try_from(at.experiment.number())?,
        ],
    )?;
    for (key, value) in &record.params {
        context.insert("INSERT INTO params (run_uuid, key, value) VALUES (?, ?, ?)", params![record.id, key, value])?;
    }
    for (key, value) in &record.tags {
        context.insert("INSERT INTO tags (run_uuid, key, value) VALUES (?, ?, ?)", params![record.id, key, value])?;
    }
    export_links(context, &record, at)?;
    export_metrics(context, at, items, &record.id).await
}

fn export_links(context: &ExportContext, record: &RunRecord, at: &RunLocation) -> Result<(), Failure> {
    let input = "INSERT INTO inputs (input_uuid, source_type, source_id, destination_type, destination_id, step) VALUES (?, ?, \
                 ?, ?, ?, ?)";
    for used in &record.datasets {
        let dataset = uuid(&["dataset", &at.experiment.to_string(), &used.name, &used.digest]);
        let id = uuid(&["input", &record.id, &dataset]);
        context.insert(input, params![id, "DATASET", dataset, "RUN", record.id, 0])?;
        for (name, value) in &used.tags {
            context.insert(
                "INSERT INTO input_tags (input_uuid, name, value) VALUES (?, ?, ?)",
                params![id, name, value],
            )?;
        }
    }
    for model in &record.model_inputs {
        let id = uuid(&["model input", &record.id, model]);
        context.insert(input, params![id, "RUN_INPUT", record.id, "MODEL_INPUT", model, 0])?;
    }
    for (model, step) in &record.model_outputs {
        let id = uuid(&["model output", &record.id, model]);
        context.insert(input, params![id, "RUN_OUTPUT", record.id, "MODEL_OUTPUT", model, step])?;
    }
    Ok(())
}

async fn export_metrics(context: &ExportContext, at: &RunLocation, items: &RunItems, id: &str) -> Result<(), Failure> {
    // MLflow stores NaN as 0, with a flag.
    let value = |value: f64| if value.is_nan() { 0.0 } else { value };
    for (metric, latest) in items.latest_metrics().map_err(|error| error.message)? {
        context.insert(
            "INSERT INTO latest_metrics (run_uuid, key, value, timestamp, step, is_nan) VALUES (?, ?, ?, ?, ?, ?)",
            params![id, metric, value(latest.value), latest.timestamp, latest.step, latest.value.is_nan()],
        )?;
    }
    table_reader::histories(&context.table, &context.archive, at, items, |metric, points| {
        points.iter().try_for_each(|point| {
            context.insert(
                "INSERT INTO metrics (run_uuid, key, value, timestamp, step, is_nan) VALUES (?, ?, ?, ?, ?, ?)",
                params![id, metric, value(point.value), point.timestamp, point.step, point.value.is_nan()],
            )
        })
    })
    .await
}

fn dataset_uuid(experiment: &ExportedExperiment, name: &str, digest: &str) -> String {
    uuid(&["dataset", &experiment.record.id.to_string(), name, digest])
}

/// Returns an id in the format of a UUID that depends only on these texts, so that two exports of
/// the same table are equal.
fn uuid(texts: &[&str]) -> String {
    let digits = crate::transfer::import::replacement_digits_of(texts);
    format!("{}-{}-4{}-a{}-{}", &digits[..8], &digits[8..12], &digits[13..16], &digits[17..20], &digits[20..])
}
