//! Reads logged models from an MLflow database.

use std::collections::HashMap;

use entities::points::Point;
use mlflow_api::ExperimentId;
use mlflow_api::tracking::LifecycleStage;

use super::{ModelPointRecord, ModelRecord};
use crate::Failure;
use crate::transfer::database::SqlValue;
use crate::transfer::source::{Source, placeholders};

/// Number of models that are read together. All points of a model are in memory at once, because
/// every response about a model contains them.
const BATCH: usize = 100;

/// Reads the next logged models of an experiment after an id, in the order of their ids. Returns an
/// empty list at the end. Takes four queries.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn next_models(
    source: &Source,
    experiment: ExperimentId,
    after: &str,
) -> Result<Vec<ModelRecord>, Failure> {
    if !source.has_table("logged_models") {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT model_id, name, model_type, source_run_id, status, lifecycle_stage, creation_timestamp_ms, \
         last_updated_timestamp_ms, artifact_location FROM logged_models WHERE experiment_id = ? AND model_id > ? ORDER BY \
         model_id LIMIT {BATCH}"
    );
    let experiment = SqlValue::Integer(i64::try_from(experiment.number())?);
    let mut records = Vec::new();
    for row in source.rows(&sql, vec![experiment, after.into()]).await? {
        let is_deleted = row.text(5)? == "deleted";
        records.push(ModelRecord {
            id: row.text(0)?,
            name: row.text(1)?,
            model_type: row.text(2)?,
            source_run: row.text(3)?,
            status: row.integer(4)?,
            stage: if is_deleted { LifecycleStage::Deleted } else { LifecycleStage::Active },
            created: row.integer(6)?,
            updated: row.integer(7)?,
            artifact_uri: row.text(8)?,
            params: Vec::new(),
            tags: Vec::new(),
            points: Vec::new(),
        });
    }
    if !records.is_empty() {
        read_parts(source, &mut records).await?;
    }
    Ok(records)
}

async fn read_parts(source: &Source, records: &mut [ModelRecord]) -> Result<(), Failure> {
    let ids: Vec<_> = records.iter().map(|record| SqlValue::from(record.id.as_str())).collect();
    let list = placeholders(ids.len());
    let mut by_id: HashMap<String, &mut ModelRecord> =
        records.iter_mut().map(|record| (record.id.clone(), record)).collect();
    let sql = format!("SELECT model_id, param_key, param_value FROM logged_model_params WHERE model_id IN {list}");
    for row in source.rows(&sql, ids.clone()).await? {
        if let Some(record) = by_id.get_mut(&row.text(0)?) {
            record.params.push((row.text(1)?, row.text(2)?));
        }
    }
    let sql = format!("SELECT model_id, tag_key, tag_value FROM logged_model_tags WHERE model_id IN {list}");
    for row in source.rows(&sql, ids.clone()).await? {
        if let Some(record) = by_id.get_mut(&row.text(0)?) {
            record.tags.push((row.text(1)?, row.text(2)?));
        }
    }
    let sql = format!(
        "SELECT model_id, metric_name, metric_timestamp_ms, metric_step, metric_value, run_id, dataset_name, dataset_digest \
         FROM logged_model_metrics WHERE model_id IN {list}"
    );
    for row in source.rows(&sql, ids).await? {
        if let Some(record) = by_id.get_mut(&row.text(0)?) {
            let (timestamp, step) = (row.integer(2)?, row.integer(3)?);
            record.points.push(ModelPointRecord {
                metric: row.text(1)?,
                timestamp,
                step,
                value_bits: Point::new(timestamp, step, row.number(4)?).value.to_bits(),
                run: row.text(5)?,
                dataset_name: row.text(6)?,
                dataset_digest: row.text(7)?,
            });
        }
    }
    for record in by_id.into_values() {
        record.params.sort_unstable();
        record.tags.sort_unstable();
        record.points.sort_unstable();
    }
    Ok(())
}
