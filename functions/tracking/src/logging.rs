//! Handlers of `runs/…` that log to a run.

use mlflow_api::checks::Check::{self, Custom, Float, Integer, List, Required, Text};
use mlflow_api::inputs::{DatasetInput, LOG_INPUTS, ModelInput};
use mlflow_api::message::Message;
use mlflow_api::tracking::{self as wire, Empty, ModelOutput};
use mlflow_api::{Error, Request, Result};
use serde_json::{Map, Value};

use crate::runs::run_id;
use crate::store::{Batch, LoggedMetric, MeasuredModel, Store};

pub(crate) async fn log_metric(store: Store, request: Request) -> Result<Empty> {
    let message = request.message(
        wire::LOG_METRIC,
        &[
            ("run_id", &[Required, Text]),
            ("key", &[Required, Text]),
            ("value", &[Required, Float]),
            ("timestamp", &[Integer, Required]),
            ("step", &[Integer]),
            ("model_id", &[Text]),
            ("dataset_name", &[Text]),
            ("dataset_digest", &[Text]),
        ],
    )?;
    store.run_log_metric(run_id(&message), &logged_metric(&message)?).await?;
    Ok(Empty {})
}

pub(crate) async fn log_param(store: Store, request: Request) -> Result<Empty> {
    let message = request
        .message(wire::LOG_PARAM, &[("run_id", &[Required, Text]), ("key", &[Required, Text]), ("value", &[Text])])?;
    store.run_log_param(run_id(&message), message.text("key"), message.text("value")).await?;
    Ok(Empty {})
}

pub(crate) async fn set_tag(store: Store, request: Request) -> Result<Empty> {
    let message = request
        .message(wire::SET_TAG, &[("run_id", &[Required, Text]), ("key", &[Required, Text]), ("value", &[Text])])?;
    store.run_set_tag(run_id(&message), message.text("key"), message.text("value")).await?;
    Ok(Empty {})
}

pub(crate) async fn delete_tag(store: Store, request: Request) -> Result<Empty> {
    let message = request.message(wire::DELETE_TAG, &[("run_id", &[Required, Text]), ("key", &[Required, Text])])?;
    store.run_delete_tag(message.text("run_id"), message.text("key")).await?;
    Ok(Empty {})
}

pub(crate) async fn log_batch(store: Store, request: Request) -> Result<Empty> {
    const METRICS: Check = Custom(|value| elements_have(value, "metrics", &["key", "value", "timestamp"]));
    const PARAMS: Check = Custom(|value| elements_have(value, "params", &["key"]));
    const TAGS: Check = Custom(|value| elements_have(value, "tags", &["key"]));
    let message = request.message(
        wire::LOG_BATCH,
        &[
            ("run_id", &[Text, Required]),
            ("metrics", &[List, METRICS]),
            ("params", &[List, PARAMS]),
            ("tags", &[List, TAGS]),
        ],
    )?;
    let batch = Batch {
        metrics: message.messages("metrics").map(logged_metric).collect::<Result<_>>()?,
        params: message.key_values("params"),
        tags: message.key_values("tags"),
    };
    store.run_log_batch(message.text("run_id"), &batch).await?;
    Ok(Empty {})
}

pub(crate) async fn log_model(store: Store, request: Request) -> Result<Empty> {
    let message =
        request.message(wire::LOG_MODEL, &[("run_id", &[Text, Required]), ("model_json", &[Text, Required])])?;
    let json = message.text("model_json");
    let model: Map<String, Value> = match serde_json::from_str(json) {
        Ok(Value::Object(model)) => model,
        _ => return Err(Error::invalid(format!("Malformed model info. \n {json} \n is not a valid JSON."))),
    };
    let missing: Vec<_> = ["artifact_path", "flavors", "run_id", "utc_time_created"]
        .into_iter()
        .filter(|field| !model.contains_key(*field))
        .map(mlflow_api::python::repr)
        .collect();
    if !missing.is_empty() {
        return Err(Error::invalid(format!("Model json is missing mandatory fields: {{{}}}", missing.join(", "))));
    }
    if !model.get("flavors").is_some_and(Value::is_object) {
        return Err(Error::invalid("The flavors of a model must be a JSON object."));
    }
    store.run_record_model(message.text("run_id"), &model).await?;
    Ok(Empty {})
}

pub(crate) async fn log_inputs(store: Store, request: Request) -> Result<Empty> {
    let message =
        request.message(LOG_INPUTS, &[("run_id", &[Required, Text]), ("datasets", &[List]), ("models", &[List])])?;
    let datasets: Vec<_> = message.messages("datasets").map(DatasetInput::of).collect();
    let models = message.messages("models").map(|model| ModelInput { model_id: model.text("model_id").to_owned() });
    store.run_log_inputs(message.text("run_id"), &datasets, &models.collect::<Vec<_>>()).await?;
    Ok(Empty {})
}

pub(crate) async fn log_outputs(store: Store, request: Request) -> Result<Empty> {
    let message =
        request.message(wire::LOG_OUTPUTS, &[("run_id", &[Required, Text]), ("models", &[Required, List])])?;
    let models: Vec<_> = message
        .messages("models")
        .map(|model| ModelOutput { model_id: model.text("model_id").to_owned(), step: model.int("step") })
        .collect();
    store.run_log_outputs(message.text("run_id"), &models).await?;
    Ok(Empty {})
}

fn logged_metric(message: &Message) -> Result<LoggedMetric> {
    if message.text("dataset_name").is_empty() != message.text("dataset_digest").is_empty() {
        return Err(Error::invalid("Both dataset_name and dataset_digest must be provided if one is provided"));
    }
    let part = |field| message.text(field).to_owned();
    let measured = MeasuredModel {
        model_id: part("model_id"),
        dataset_name: part("dataset_name"),
        dataset_digest: part("dataset_digest"),
    };
    Ok(LoggedMetric {
        key: part("key"),
        value: message.double("value"),
        timestamp: message.int("timestamp"),
        step: message.int("step"),
        model: Some(measured).filter(|measured| !measured.model_id.is_empty()),
    })
}

/// A check that each element of a list has these fields.
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
