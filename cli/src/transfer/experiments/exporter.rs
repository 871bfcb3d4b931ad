//! Exports experiments.

use entities::attributes::STAGE_VERSION;
use entities::workspaces::Workspaces;
use key_schema::rows;
use mlflow_api::ExperimentId;
use run_index::RunIndex;
use rusqlite::params;

use super::{ExportedExperiment, table_reader};
use crate::Failure;
use crate::transfer::export::ExportContext;

/// Number of experiments that are read together.
const BATCH: usize = 100;

/// Exports the experiments without their contents, and returns them. Takes one request per 100
/// experiments, and one per MB of their names.
///
/// # Errors
/// The table cannot be read, or the experiment that was requested does not exist.
pub(crate) async fn export(context: &ExportContext) -> Result<Vec<ExportedExperiment>, Failure> {
    let ids = match context.experiment {
        Some(id) => vec![id],
        None => all(context).await?,
    };
    let mut exported = Vec::new();
    for ids in ids.chunks(BATCH) {
        let keys: Vec<_> = ids.iter().map(rows::Experiment::key).collect();
        let items =
            context.table.get_many(&keys).await.map_err(|failure| format!("cannot read experiments: {failure:?}"))?;
        for (id, key) in ids.iter().zip(&keys) {
            match items.get(key) {
                Some(document) => {
                    let record = table_reader::record(&context.table, *id, document).await?;
                    exported.push(ExportedExperiment {
                        record,
                        stage_version: document.get(STAGE_VERSION).unwrap_or_default(),
                    });
                }
                None if context.experiment.is_some() => return Err(id.not_found().message.into()),
                // The experiment was removed after the list was read.
                None => {}
            }
        }
    }
    for ExportedExperiment { record, .. } in &exported {
        let id = i64::try_from(record.id.number())?;
        context.insert(
            "INSERT INTO experiments (experiment_id, name, artifact_location, lifecycle_stage, creation_time, \
             last_update_time, workspace) VALUES (?, ?, ?, ?, ?, ?, ?)",
            params![
                id,
                record.name,
                record.artifact_location,
                record.stage.name(),
                record.created,
                record.updated,
                record.workspace.as_str()
            ],
        )?;
        for (key, value) in &record.tags {
            context.insert(
                "INSERT INTO experiment_tags (experiment_id, key, value) VALUES (?, ?, ?)",
                params![id, key, value],
            )?;
        }
    }
    Ok(exported)
}

/// Returns the ids of all experiments, in all workspaces.
async fn all(context: &ExportContext) -> Result<Vec<ExperimentId>, Failure> {
    let index = RunIndex::new(context.table.clone());
    let mut ids = Vec::new();
    for workspace in Workspaces::new(context.table.clone()).names().await.map_err(|error| error.message)? {
        ids.extend(
            index.experiments(&workspace).await.map_err(|failure| format!("cannot read experiments: {failure:?}"))?,
        );
    }
    ids.sort_unstable();
    Ok(ids)
}
