//! Handlers of `scorers/…`.

use mlflow_api::checks::Check::{Integer, List, Required, Text, TextItems};
use mlflow_api::message::Message;
use mlflow_api::scorers::{self as wire, OneOnlineConfig, OneScorer, OnlineConfigs, RegisteredScorer, Scorers};
use mlflow_api::tracking::Empty;
use mlflow_api::{Error, ExperimentId, Request, Result, limits, python};
use serde_json::{Map, Value};

use crate::store::{ScorerName, Store};

pub(crate) async fn register(store: Store, request: Request) -> Result<RegisteredScorer> {
    let message = request.message(
        wire::REGISTER_SCORER,
        &[("experiment_id", &[Required, Text]), ("name", &[Required, Text]), ("serialized_scorer", &[Required, Text])],
    )?;
    store.scorer_register(&scorer(&message), message.text("serialized_scorer")).await
}

pub(crate) async fn list(store: Store, request: Request) -> Result<Scorers> {
    let message =
        request.message(wire::LIST_SCORERS, &[("experiment_id", &[Text]), ("experiment_ids", &[List, TextItems])])?;
    let experiment = message.text("experiment_id");
    // An empty list finds nothing; no list finds everything.
    let has_list = message.has("experiment_ids");
    if !experiment.is_empty() && has_list {
        return Err(Error::invalid(
            "Cannot specify both 'experiment_id' and 'experiment_ids'. Use 'experiment_ids' to scope the query to \
             multiple experiments, or 'experiment_id' to scope it to a single experiment.",
        ));
    }
    let scorers = if has_list {
        let texts = message.texts("experiment_ids");
        texts.iter().try_for_each(|id| limits::experiment_id(id))?;
        let ids = texts.iter().map(|id| ExperimentId::parse(id));
        // One that no experiment can have is of none.
        let ids = ids.filter(|id| !matches!(id, Err(error) if error.code.http_status() == 404));
        store.scorer_list_of(&ids.collect::<Result<Vec<_>>>()?).await?
    } else if experiment.is_empty() {
        store.scorer_list_all().await?
    } else {
        store.scorer_list(experiment).await?
    };
    Ok(Scorers { scorers })
}

pub(crate) async fn versions(store: Store, request: Request) -> Result<Scorers> {
    let message = request
        .message(wire::LIST_SCORER_VERSIONS, &[("experiment_id", &[Required, Text]), ("name", &[Required, Text])])?;
    Ok(Scorers { scorers: store.scorer_versions(&scorer(&message)).await? })
}

pub(crate) async fn get(store: Store, request: Request) -> Result<OneScorer> {
    let message = one(&request)?;
    let scorer = store.scorer_get(&scorer(&message), message.optional_int("version")).await?;
    Ok(OneScorer { scorer })
}

pub(crate) async fn delete(store: Store, request: Request) -> Result<Empty> {
    let message = one(&request)?;
    store.scorer_delete(&scorer(&message), message.optional_int("version")).await?;
    Ok(Empty {})
}

pub(crate) async fn set_online_config(store: Store, request: Request) -> Result<OneOnlineConfig> {
    let fields = request.object(&[
        ("experiment_id", &[Required, Text]),
        ("name", &[Required, Text]),
        ("sample_rate", &[Required]),
        ("filter_string", &[]),
    ])?;
    let filter = match fields.get("filter_string") {
        None | Some(Value::Null) => None,
        Some(Value::String(filter)) => Some(filter.as_str()),
        Some(other) => {
            return Err(Error::invalid(format!(
                "Invalid value {} for parameter 'filter_string' supplied: Value was of type '{}'. Expected type 'str' or None.",
                python::data(other),
                python::type_name(other)
            )));
        }
    };
    let scorer = ScorerName { experiment: text(&fields, "experiment_id"), name: text(&fields, "name") };
    let rate = rate(fields.get("sample_rate").unwrap_or(&Value::Null))?;
    Ok(OneOnlineConfig { config: store.scorer_set_online_config(&scorer, rate, filter).await? })
}

pub(crate) async fn online_configs(store: Store, request: Request) -> Result<OnlineConfigs> {
    let fields = request.object(&[("scorer_ids", &[Required, List, TextItems])])?;
    let ids = fields.get("scorer_ids").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let ids: Vec<_> = ids.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    Ok(OnlineConfigs { configs: store.scorer_online_configs(&ids).await? })
}

/// The message of what is about one scorer, or one version of it.
fn one(request: &Request) -> Result<Message> {
    request.message(
        wire::ONE_SCORER,
        &[("experiment_id", &[Required, Text]), ("name", &[Required, Text]), ("version", &[Integer])],
    )
}

fn scorer(message: &Message) -> ScorerName<'_> {
    ScorerName { experiment: message.text("experiment_id"), name: message.text("name") }
}

fn text<'a>(fields: &'a Map<String, Value>, field: &str) -> &'a str {
    fields.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Python's `float` of a value.
fn rate(value: &Value) -> Result<f64> {
    let rate = match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::String(text) => python::parse_float(text),
        _ => None,
    };
    rate.ok_or_else(|| {
        Error::invalid(format!("Invalid value {} for parameter 'sample_rate' supplied.", python::json(value)))
    })
}
