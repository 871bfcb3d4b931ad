//! Reads the artifact locations of entities from an MLflow database.

use std::collections::HashMap;

use mlflow_api::ExperimentId;
use mlflow_api::logged_models::ModelStatus;

use super::requirement::{FILES_TAG, MODELS_TAG, Requirement};
use crate::Failure;
use crate::transfer::database::SqlValue;
use crate::transfer::source::{Source, placeholders};

/// Number of runs or models that are read together.
const BATCH: usize = 500;

/// An entity whose artifacts are checked.
pub(super) struct Candidate {
    pub(super) id: String,
    /// The artifact location in the source.
    pub(super) location: String,
    pub(super) requirement: Requirement,
}

/// Reads the next runs of an experiment after an id, in the order of their ids. Returns an empty
/// list at the end. Takes two queries.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn next_runs(
    source: &Source,
    experiment: ExperimentId,
    after: &str,
) -> Result<Vec<Candidate>, Failure> {
    let sql = format!(
        "SELECT run_uuid, artifact_uri FROM runs WHERE experiment_id = ? AND run_uuid > ? ORDER BY run_uuid LIMIT {BATCH}"
    );
    let number = SqlValue::Integer(i64::try_from(experiment.number())?);
    let rows = source.rows(&sql, vec![number, after.into()]).await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let mut arguments = vec![MODELS_TAG.into(), FILES_TAG.into()];
    for row in &rows {
        arguments.push(row.text(0)?.as_str().into());
    }
    let sql = format!(
        r#"SELECT run_uuid, "key", value FROM tags WHERE "key" IN (?, ?) AND run_uuid IN {}"#,
        placeholders(rows.len())
    );
    let mut tags: HashMap<(String, String), String> = HashMap::new();
    for row in source.rows(&sql, arguments).await? {
        tags.insert((row.text(0)?, row.text(1)?), row.text(2)?);
    }
    let mut candidates = Vec::with_capacity(rows.len());
    for row in &rows {
        let id = row.text(0)?;
        let [models, files] = [MODELS_TAG, FILES_TAG].map(|tag| tags.remove(&(id.clone(), tag.to_owned())));
        let requirement = Requirement::of_run(models.as_deref(), files.as_deref());
        candidates.push(Candidate { id, location: row.text(1)?, requirement });
    }
    Ok(candidates)
}

/// Reads the next logged models of an experiment after an id, in the order of their ids. Returns an
/// empty list at the end. Takes one query.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn next_logged_models(
    source: &Source,
    experiment: ExperimentId,
    after: &str,
) -> Result<Vec<Candidate>, Failure> {
    if !source.has_table("logged_models") {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT model_id, artifact_location, status FROM logged_models WHERE experiment_id = ? AND model_id > ? ORDER BY \
         model_id LIMIT {BATCH}"
    );
    let number = SqlValue::Integer(i64::try_from(experiment.number())?);
    let mut candidates = Vec::new();
    for row in source.rows(&sql, vec![number, after.into()]).await? {
        // A model that is not ready may not have its files yet.
        let is_ready = ModelStatus::from_number(row.integer(2)?) == ModelStatus::Ready;
        let requirement = if is_ready { Requirement::AnyFile } else { Requirement::None };
        candidates.push(Candidate { id: row.text(0)?, location: row.text(1)?, requirement });
    }
    Ok(candidates)
}
