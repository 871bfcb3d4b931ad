//! Requests that log data to a run.

use serde_json::Value;

use crate::inputs::{DatasetInput, ModelInput};
use crate::key_value::KeyValue;
use crate::messages;
use crate::tracking::ModelOutput;

messages! {
    /// A point of a metric.
    MetricPoint {
        key: String,
        value: f64,
        timestamp: i64,
        step: i64,
        model_id: String,
        dataset_name: String,
        dataset_digest: String,
        run_id: String,
    }
    /// The request message of `runs/log-metric`.
    LogMetric {
        run_id: String [Required, Text],
        key: String [Required, Text],
        value: f64 [Required, Float],
        timestamp: i64 [Integer, Required],
        step: i64 [Integer],
        model_id: String [Text],
        dataset_name: String [Text],
        dataset_digest: String [Text],
        run_uuid: String,
    }
    /// The request message of `runs/log-parameter` and `runs/set-tag`.
    LogEntry {
        run_id: String [Required, Text],
        key: String [Required, Text],
        value: String [Text],
        run_uuid: String,
    }
    /// The request message of `runs/delete-tag`.
    DeleteRunTag {
        run_id: String [Required, Text],
        key: String [Required, Text],
    }
    /// The request message of `runs/log-batch`.
    LogBatch {
        run_id: String [Text, Required],
        metrics: Vec<MetricPoint> [List, Custom(|value| elements_have(value, "metrics", &["key", "value", "timestamp"]))],
        params: Vec<KeyValue> [List, Custom(|value| elements_have(value, "params", &["key"]))],
        tags: Vec<KeyValue> [List, Custom(|value| elements_have(value, "tags", &["key"]))],
    }
    /// The request message of `runs/log-model`.
    LogModel {
        run_id: String [Text, Required],
        model_json: String [Text, Required],
    }
    /// The request message of `runs/log-inputs`.
    LogInputs {
        run_id: String [Required, Text],
        datasets: Vec<DatasetInput> [List],
        models: Vec<ModelInput> [List],
    }
    /// The request message of `runs/outputs`.
    LogOutputs {
        run_id: String [Required, Text],
        models: Vec<ModelOutput> [Required, List],
    }
}

/// Checks that each element of a list has all of these fields.
fn elements_have(value: &Value, list: &str, fields: &[&str]) -> std::result::Result<(), Option<String>> {
    for (position, element) in value.as_array().ok_or(None)?.iter().enumerate() {
        for field in fields {
            let content = element.get(*field).unwrap_or(&Value::Null);
            if content.is_null() || content == "" {
                return Err(Some(format!("Missing value for required parameter '{list}[{position}].{field}'.")));
            }
        }
    }
    Ok(())
}
