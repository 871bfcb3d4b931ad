//! Reads runs from an MLflow database, without their points.

use std::collections::{BTreeMap, HashMap};

use mlflow_api::ExperimentId;
use mlflow_api::inputs::Dataset;
use mlflow_api::tracking::{LifecycleStage, RUN_NAME_TAG, RunStatus};

use super::record::{DatasetUse, RunRecord};
use crate::Failure;
use crate::transfer::database::{Row, SqlValue};
use crate::transfer::source::{Source, placeholders};

/// Number of runs that are read together.
const BATCH: usize = 200;

/// A run that was read. For a run that this server cannot store: its id, and the reason.
pub(super) type ReadRun = Result<RunRecord, (String, String)>;

/// Reads the next runs of an experiment after an id, in the order of their ids. Returns an empty
/// list at the end. Takes up to seven queries.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn next_runs(source: &Source, experiment: ExperimentId, after: &str) -> Result<Vec<ReadRun>, Failure> {
    let columns =
        ["name", "user_id", "status", "start_time", "end_time", "deleted_time", "artifact_uri", "lifecycle_stage"];
    let columns = source.columns("runs", &columns);
    let sql = format!(
        "SELECT run_uuid, {columns} FROM runs WHERE experiment_id = ? AND run_uuid > ? ORDER BY run_uuid LIMIT {BATCH}"
    );
    let experiment = SqlValue::Integer(i64::try_from(experiment.number())?);
    let rows = source.rows(&sql, vec![experiment, after.into()]).await?;
    let ids: Vec<_> = rows.iter().map(|row| row.text(0)).collect::<Result<_, _>>()?;
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut parts = RunParts::read(source, &ids).await?;
    let read = rows.iter().zip(ids).map(|(row, id)| parse(row, id.clone(), &mut parts).map_err(|reason| (id, reason)));
    Ok(read.collect())
}

fn parse(row: &Row, id: String, parts: &mut RunParts) -> Result<RunRecord, String> {
    let failed = |failure: Failure| failure.to_string();
    let status = match row.optional_text(3).map_err(failed)?.as_deref() {
        Some("RUNNING") => RunStatus::Running,
        None | Some("SCHEDULED") => RunStatus::Scheduled,
        Some("FINISHED") => RunStatus::Finished,
        Some("FAILED") => RunStatus::Failed,
        Some("KILLED") => RunStatus::Killed,
        Some(other) => return Err(format!("because its status is {other}")),
    };
    let stage = match row.optional_text(8).map_err(failed)?.as_deref() {
        None | Some("active") => LifecycleStage::Active,
        Some("deleted") => LifecycleStage::Deleted,
        Some(other) => return Err(format!("because its lifecycle stage is {other}")),
    };
    let is_deleted = stage == LifecycleStage::Deleted;
    let tags = parts.tags.remove(&id).unwrap_or_default();
    let mut name = row.text(1).map_err(failed)?;
    if let Some((_, tagged)) = tags.iter().find(|(key, _)| name.is_empty() && key == RUN_NAME_TAG) {
        name.clone_from(tagged);
    }
    Ok(RunRecord {
        name,
        user: row.text(2).map_err(failed)?,
        status,
        start_time: row.integer(4).map_err(failed)?,
        end_time: row.optional_integer(5).map_err(failed)?,
        stage,
        deleted_time: row.optional_integer(6).map_err(failed)?.filter(|_| is_deleted),
        artifact_uri: row.text(7).map_err(failed)?,
        params: parts.params.remove(&id).unwrap_or_default(),
        tags,
        datasets: parts.datasets.remove(&id).unwrap_or_default(),
        model_inputs: parts.model_inputs.remove(&id).unwrap_or_default(),
        model_outputs: parts.model_outputs.remove(&id).unwrap_or_default(),
        metrics: BTreeMap::new(),
        id,
    })
}

/// Parts of some runs, by the id of the run.
#[derive(Default)]
struct RunParts {
    params: HashMap<String, Vec<(String, String)>>,
    tags: HashMap<String, Vec<(String, String)>>,
    datasets: HashMap<String, Vec<DatasetUse>>,
    model_inputs: HashMap<String, Vec<String>>,
    model_outputs: HashMap<String, Vec<(String, i64)>>,
}

impl RunParts {
    async fn read(source: &Source, ids: &[String]) -> Result<Self, Failure> {
        let arguments: Vec<_> = ids.iter().map(|id| SqlValue::from(id.as_str())).collect();
        let list = placeholders(ids.len());
        let mut parts = Self::default();
        for (table, map) in [("params", &mut parts.params), ("tags", &mut parts.tags)] {
            let sql = format!(r#"SELECT run_uuid, "key", value FROM {table} WHERE run_uuid IN {list}"#);
            for row in source.rows(&sql, arguments.clone()).await? {
                map.entry(row.text(0)?).or_default().push((row.text(1)?, row.text(2)?));
            }
            for entries in map.values_mut() {
                entries.sort_unstable();
            }
        }
        if source.has_table("inputs") {
            parts.read_datasets(source, &list, &arguments).await?;
            parts.read_models(source, &list, &arguments).await?;
        }
        Ok(parts)
    }

    async fn read_datasets(&mut self, source: &Source, list: &str, arguments: &[SqlValue]) -> Result<(), Failure> {
        let sql = format!(
            "SELECT i.destination_id, d.name, d.digest, t.name, t.value FROM inputs i JOIN datasets d ON i.source_id = \
             d.dataset_uuid LEFT JOIN input_tags t ON t.input_uuid = i.input_uuid WHERE i.source_type = 'DATASET' AND \
             i.destination_type = 'RUN' AND i.destination_id IN {list}"
        );
        let mut uses: BTreeMap<(String, String, String), Vec<(String, String)>> = BTreeMap::new();
        for row in source.rows(&sql, arguments.to_vec()).await? {
            let tags = uses.entry((row.text(0)?, row.text(1)?, row.text(2)?)).or_default();
            if let Some(key) = row.optional_text(3)? {
                tags.push((key, row.text(4)?));
            }
        }
        for ((run, name, digest), mut tags) in uses {
            tags.sort_unstable();
            self.datasets.entry(run).or_default().push(DatasetUse { name, digest, tags });
        }
        Ok(())
    }

    async fn read_models(&mut self, source: &Source, list: &str, arguments: &[SqlValue]) -> Result<(), Failure> {
        let sql = format!(
            "SELECT source_id, destination_id FROM inputs WHERE source_type = 'RUN_INPUT' AND destination_type = \
             'MODEL_INPUT' AND source_id IN {list}"
        );
        for row in source.rows(&sql, arguments.to_vec()).await? {
            self.model_inputs.entry(row.text(0)?).or_default().push(row.text(1)?);
        }
        let step = source.column("inputs", "step");
        let sql = format!(
            "SELECT source_id, destination_id, {step} FROM inputs WHERE source_type = 'RUN_OUTPUT' AND destination_type = \
             'MODEL_OUTPUT' AND source_id IN {list}"
        );
        for row in source.rows(&sql, arguments.to_vec()).await? {
            self.model_outputs.entry(row.text(0)?).or_default().push((row.text(1)?, row.integer(2)?));
        }
        for models in self.model_inputs.values_mut() {
            models.sort_unstable();
        }
        for models in self.model_outputs.values_mut() {
            models.sort_unstable();
        }
        Ok(())
    }
}

/// A dataset of an experiment, with the contexts in which runs have used it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DatasetRecord {
    pub(super) dataset: Dataset,
    /// Contexts; `None` for uses without one. Sorted.
    pub(super) contexts: Vec<Option<String>>,
}

/// Reads the datasets of an experiment that runs have read. Takes two queries.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn datasets(source: &Source, experiment: ExperimentId) -> Result<Vec<DatasetRecord>, Failure> {
    if !source.has_table("datasets") {
        return Ok(Vec::new());
    }
    let experiment = SqlValue::Integer(i64::try_from(experiment.number())?);
    let sql = "SELECT DISTINCT d.dataset_uuid, t.value FROM datasets d JOIN inputs i ON i.source_id = d.dataset_uuid AND \
               i.source_type = 'DATASET' LEFT JOIN input_tags t ON t.input_uuid = i.input_uuid AND t.name = \
               'mlflow.data.context' WHERE d.experiment_id = ?";
    let mut contexts: HashMap<String, Vec<Option<String>>> = HashMap::new();
    for row in source.rows(sql, vec![experiment.clone()]).await? {
        contexts.entry(row.text(0)?).or_default().push(row.optional_text(1)?);
    }
    let sql = "SELECT dataset_uuid, name, digest, dataset_source_type, dataset_source, dataset_schema, dataset_profile FROM \
               datasets WHERE experiment_id = ? ORDER BY name, digest";
    let mut records = Vec::new();
    for row in source.rows(sql, vec![experiment]).await? {
        // Datasets remain in the database after their runs were permanently deleted. MLflow does
        // not show such datasets, so they are not imported.
        let Some(mut contexts) = contexts.remove(&row.text(0)?) else { continue };
        contexts.sort_unstable();
        let dataset = Dataset {
            name: row.text(1)?,
            digest: row.text(2)?,
            source_type: row.text(3)?,
            source: row.text(4)?,
            schema: row.text(5)?,
            profile: row.text(6)?,
        };
        records.push(DatasetRecord { dataset, contexts });
    }
    Ok(records)
}
