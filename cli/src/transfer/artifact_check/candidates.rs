//! Reads the artifact locations of entities from an MLflow database.

use std::collections::{BTreeMap, HashMap};

use mlflow_api::ExperimentId;
use mlflow_api::logged_models::ModelStatus;

use super::requirement::{FILES_TAG, MODELS_TAG, Requirement};
use crate::Failure;
use crate::transfer::database::SqlValue;
use crate::transfer::import::ImportContext;
use crate::transfer::source::placeholders;

/// Number of runs or models that are read together.
const BATCH: usize = 500;
/// Number of traces whose spans are read together. A trace may have tens of MB.
const TRACE_BATCH: usize = 20;
/// Pattern of spans that refer to attachments.
const ATTACHMENT_PATTERN: &str = "%mlflow-attachment://%";

/// An entity whose artifacts are checked.
pub(super) struct Candidate {
    pub(super) id: String,
    /// The artifact location, rewritten according to `--artifacts`.
    pub(super) location: String,
    pub(super) requirement: Requirement,
}

/// Reads the next runs of an experiment after an id, in the order of their ids. Returns an empty
/// list at the end. Takes two queries.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn next_runs(
    context: &ImportContext,
    experiment: ExperimentId,
    after: &str,
) -> Result<Vec<Candidate>, Failure> {
    let sql = format!(
        "SELECT run_uuid, artifact_uri FROM runs WHERE experiment_id = ? AND run_uuid > ? ORDER BY run_uuid LIMIT {BATCH}"
    );
    let number = SqlValue::Integer(i64::try_from(experiment.number())?);
    let rows = context.source.rows(&sql, vec![number, after.into()]).await?;
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
    for row in context.source.rows(&sql, arguments).await? {
        tags.insert((row.text(0)?, row.text(1)?), row.text(2)?);
    }
    let mut candidates = Vec::with_capacity(rows.len());
    for row in &rows {
        let id = row.text(0)?;
        let [models, files] = [MODELS_TAG, FILES_TAG].map(|tag| tags.remove(&(id.clone(), tag.to_owned())));
        let requirement = Requirement::of_run(models.as_deref(), files.as_deref());
        candidates.push(Candidate { id, location: context.artifact_location(&row.text(1)?), requirement });
    }
    Ok(candidates)
}

/// Reads the next logged models of an experiment after an id, in the order of their ids. Returns an
/// empty list at the end. Takes one query.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn next_logged_models(
    context: &ImportContext,
    experiment: ExperimentId,
    after: &str,
) -> Result<Vec<Candidate>, Failure> {
    if !context.source.has_table("logged_models") {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT model_id, artifact_location, status FROM logged_models WHERE experiment_id = ? AND model_id > ? ORDER BY \
         model_id LIMIT {BATCH}"
    );
    let number = SqlValue::Integer(i64::try_from(experiment.number())?);
    let mut candidates = Vec::new();
    for row in context.source.rows(&sql, vec![number, after.into()]).await? {
        // A model that is not ready may not have its files yet.
        let is_ready = ModelStatus::from_number(row.integer(2)?) == ModelStatus::Ready;
        let requirement = if is_ready { Requirement::AnyFile } else { Requirement::None };
        candidates.push(Candidate {
            id: row.text(0)?,
            location: context.artifact_location(&row.text(1)?),
            requirement,
        });
    }
    Ok(candidates)
}

/// Reads the next traces of an experiment whose spans refer to attachments, after an id, in the order
/// of their ids. Empty at the end. `location` is the artifact location of the experiment here,
/// below which the server looks for the files of its traces. Two queries.
///
/// Attachments of archived spans are not found, because the database does not contain these spans.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn next_traces(
    context: &ImportContext,
    experiment: ExperimentId,
    location: &str,
    after: &str,
) -> Result<Vec<Candidate>, Failure> {
    if !context.source.has_table("spans") {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT DISTINCT trace_id FROM spans WHERE experiment_id = ? AND trace_id > ? AND content LIKE ? ORDER BY \
         trace_id LIMIT {TRACE_BATCH}"
    );
    let number = SqlValue::Integer(i64::try_from(experiment.number())?);
    let rows = context.source.rows(&sql, vec![number, after.into(), ATTACHMENT_PATTERN.into()]).await?;
    let ids = rows.iter().map(|row| row.text(0)).collect::<Result<Vec<_>, _>>()?;
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let sql =
        format!("SELECT trace_id, content FROM spans WHERE trace_id IN {} AND content LIKE ?", placeholders(ids.len()));
    let mut arguments: Vec<SqlValue> = ids.iter().map(|id| id.as_str().into()).collect();
    arguments.push(ATTACHMENT_PATTERN.into());
    let mut contents: BTreeMap<String, String> = BTreeMap::new();
    for row in context.source.rows(&sql, arguments).await? {
        *contents.entry(row.text(0)?).or_default() += &row.text(1)?;
    }
    let location = location.trim_end_matches('/');
    let candidates = contents.into_iter().map(|(id, content)| Candidate {
        location: format!("{location}/traces/{id}/artifacts"),
        requirement: Requirement::of_trace(&content),
        id,
    });
    Ok(candidates.collect())
}
