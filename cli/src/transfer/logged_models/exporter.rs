//! Exports logged models.

use entities::{ModelItems, ModelLocation, group_by_model, read_model_segments};
use key_schema::rows;
use rusqlite::params;
use table::Query;

use super::table_reader;
use crate::Failure;
use crate::transfer::experiments::ExportedExperiment;
use crate::transfer::export::ExportContext;

/// Exports the logged models of an experiment. Takes one request per MB of documents and rows, and
/// one per MB of points for each model with segments.
///
/// # Errors
/// The table cannot be read, or the file cannot be written.
pub(crate) async fn export(context: &ExportContext, experiment: &ExportedExperiment) -> Result<(), Failure> {
    let id = experiment.record.id;
    let mut next = Some(Query::of(rows::LoggedModel::all(&id)));
    let mut unfinished = None;
    while let Some(query) = next {
        let page =
            context.table.query_page(&query).await.map_err(|failure| format!("cannot read models: {failure:?}"))?;
        let mut groups = group_by_model(id, unfinished.take(), page.items).map_err(|error| error.message)?;
        next = page.next.map(|start| query.starting_at(start));
        if next.is_some() {
            // The next page may contain more items of the last model.
            unfinished = groups.pop();
        }
        for (at, items) in groups {
            export_model(context, &at, items).await?;
        }
    }
    Ok(())
}

async fn export_model(context: &ExportContext, at: &ModelLocation, mut items: ModelItems) -> Result<(), Failure> {
    let segments = read_model_segments(&context.table, at, items.metrics.as_ref()).await;
    items.segments = segments.map_err(|failure| format!("cannot read logged model {}: {failure:?}", at.model))?;
    let record = table_reader::record(at, &items)?;
    let experiment = i64::try_from(at.experiment.number())?;
    let optional = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    context.insert(
        "INSERT INTO logged_models (model_id, experiment_id, name, artifact_location, creation_timestamp_ms, \
         last_updated_timestamp_ms, status, lifecycle_stage, model_type, source_run_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            record.id,
            experiment,
            record.name,
            record.artifact_uri,
            record.created,
            record.updated,
            record.status,
            record.stage.name(),
            record.model_type,
            record.source_run,
        ],
    )?;
    for (key, value) in &record.params {
        context.insert(
            "INSERT INTO logged_model_params (model_id, experiment_id, param_key, param_value) VALUES (?, ?, ?, ?)",
            params![record.id, experiment, key, value],
        )?;
    }
    for (key, value) in &record.tags {
        context.insert(
            "INSERT INTO logged_model_tags (model_id, experiment_id, tag_key, tag_value) VALUES (?, ?, ?, ?)",
            params![record.id, experiment, key, value],
        )?;
    }
    for point in &record.points {
        // The primary key of MLflow's table does not contain the value, so of several points that
        // differ only in their values, one is exported.
        context.insert(
            "INSERT OR IGNORE INTO logged_model_metrics (model_id, metric_name, metric_timestamp_ms, metric_step, \
             metric_value, experiment_id, run_id, dataset_name, dataset_digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                record.id,
                point.metric,
                point.timestamp,
                point.step,
                f64::from_bits(point.value_bits),
                experiment,
                point.run,
                optional(&point.dataset_name),
                optional(&point.dataset_digest),
            ],
        )?;
    }
    Ok(())
}
