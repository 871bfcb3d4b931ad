//! Reads logged models from the table.

use entities::attributes::STAGE;
use entities::{ModelItems, ModelLocation, model_whole};

use super::{ModelPointRecord, ModelRecord};
use crate::Failure;

/// Returns the record of a logged model.
///
/// # Errors
/// The model cannot be read.
pub(super) fn record(at: &ModelLocation, items: &ModelItems) -> Result<ModelRecord, Failure> {
    let model = model_whole(at, items).map_err(|error| error.message)?;
    let pairs = |entries: Vec<mlflow_api::tracking::KeyValue>| {
        let mut pairs: Vec<_> = entries.into_iter().map(|entry| (entry.key, entry.value)).collect();
        pairs.sort_unstable();
        pairs
    };
    let mut points: Vec<_> = model
        .data
        .metrics
        .into_iter()
        .map(|point| ModelPointRecord {
            metric: point.key,
            timestamp: point.timestamp,
            step: point.step,
            value_bits: point.value.to_bits(),
            run: point.run_id,
            dataset_name: point.dataset_name,
            dataset_digest: point.dataset_digest,
        })
        .collect();
    points.sort_unstable();
    Ok(ModelRecord {
        id: at.model.to_string(),
        name: model.info.name,
        model_type: model.info.model_type,
        source_run: model.info.source_run_id,
        status: model.info.status.number(),
        stage: items.model.get(STAGE).unwrap_or_default(),
        created: model.info.creation_timestamp_ms,
        updated: model.info.last_updated_timestamp_ms,
        artifact_uri: model.info.artifact_uri,
        params: pairs(model.data.params),
        tags: pairs(model.info.tags),
        points,
    })
}
