//! Validation of serialized scorers, as in MLflow's `_validate_serialized_scorer_payload`
//! (`handlers.py`) and `scorer_utils.py`.

use std::collections::BTreeSet;

use mlflow_api::json::{JsonError, JsonObject, MAX_DEPTH, MAX_TEXT_VALUES};
use mlflow_api::{Error, Json, Result, python};

/// Options that determine where a scorer's language model client sends requests
/// (`GATEWAY_DESTINATION_KEYS` in MLflow's `validation.py`).
const DESTINATION_OPTIONS: [&str; 5] = ["api_base", "base_url", "custom_llm_provider", "fallbacks", "model_list"];

const NO_CUSTOM_SCORERS: &str = "\
Custom scorer registration (using @scorer decorator) is disabled by default outside of Databricks tracking environments due to \
security concerns. Custom scorers require arbitrary code execution during deserialization.\n\nTo use custom scorers:\n\
1. Configure MLflow to use a Databricks tracking URI, or\n\
2. Manage your custom scorer code in a source code repository (e.g., GitHub) and import it directly, or\n\
3. On a self-managed MLflow server (or local environment) that you trust to run the scorer's code, set the \
MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS environment variable to true, or\n\
4. Use built-in scorers or make_judge() scorers instead.";

/// Rejects texts that are not JSON, scorers that contain code, and scorers that could make a server
/// send requests to a destination of their choice.
pub(super) fn check(serialized: &str) -> Result<()> {
    let scorer = Json::read(serialized).map_err(|unreadable| match unreadable {
        JsonError::NoJson => Error::invalid("serialized_scorer must be valid JSON"),
        JsonError::TooDeep => {
            Error::invalid(format!("serialized_scorer has more than {MAX_DEPTH} levels of nested arrays and objects."))
        }
        JsonError::TooMany => Error::invalid(format!("serialized_scorer has more than {MAX_TEXT_VALUES} JSON values.")),
    })?;
    if has_code(&scorer) {
        return Err(Error::invalid(NO_CUSTOM_SCORERS));
    }
    check_third_parties(&scorer)
}

/// Rejects invalid models, and models of a gateway, because this server has no gateway.
pub(super) fn check_model(serialized: &str) -> Result<()> {
    match gateway_endpoint(serialized)? {
        None => Ok(()),
        Some(name) => Err(Error::not_found(format!("GatewayEndpoint not found (name='{name}')"))),
    }
}

/// Returns the gateway endpoint that the scorer uses as its model, if any.
pub(super) fn gateway_endpoint(serialized: &str) -> Result<Option<String>> {
    let scorer = Json::parse(serialized);
    let scorer = scorer.as_ref().and_then(Json::object).ok_or_else(|| not_an_object("A serialized scorer"))?;
    let model = match model_of(scorer)? {
        None | Some(Json::Null) => return Ok(None),
        Some(Json::Text(model)) => model,
        Some(other) => {
            return Err(Error::invalid(format!("Scorer model must be a string, got {}.", other.type_name())));
        }
    };
    if model.trim().is_empty() {
        return Err(Error::invalid("Scorer model cannot be empty or contain only whitespace."));
    }
    let endpoint = model.split_once(":/").filter(|(provider, _)| *provider == "gateway");
    let endpoint = endpoint.map(|(_, path)| path.trim_start_matches('/')).filter(|path| !path.is_empty());
    Ok(endpoint.map(str::to_owned))
}

/// Returns the model in a serialized scorer. The field that contains the model depends on the kind
/// of scorer.
fn model_of(scorer: &JsonObject) -> Result<Option<&Json>> {
    let part = |name: &str| match scorer.get(name).filter(|part| part.is_true()) {
        None => Ok(None),
        Some(Json::Object(part)) => Ok(Some(part)),
        Some(_) => Err(not_an_object(&format!("'{name}' of a serialized scorer"))),
    };
    for name in ["instructions_judge_pydantic_data", "builtin_scorer_pydantic_data"] {
        if let Some(part) = part(name)? {
            return Ok(part.get("model"));
        }
    }
    if let Some(memory) = part("memory_augmented_judge_data")? {
        return match memory.get("base_judge") {
            None => Ok(None),
            Some(Json::Object(judge)) => model_of(judge),
            Some(_) => Err(not_an_object("'base_judge' of a serialized scorer")),
        };
    }
    Ok(part("third_party_scorer_data")?.and_then(|part| part.get("model")))
}

fn not_an_object(what: &str) -> Error {
    Error::invalid(format!("{what} must be a JSON object."))
}

/// Checks whether a value contains code at any depth.
fn has_code(value: &Json) -> bool {
    match value {
        Json::Object(object) => {
            object.get("call_source").is_some_and(|code| *code != Json::Null)
                || object.iter().any(|(_, value)| has_code(value))
        }
        Json::List(items) => items.iter().any(has_code),
        _ => false,
    }
}

/// Checks the options of scorers from third-party libraries, at any depth of the value.
fn check_third_parties(value: &Json) -> Result<()> {
    match value {
        Json::Object(object) => {
            if let Some(Json::Object(data)) = object.get("third_party_scorer_data") {
                check_options(data.get("kwargs").unwrap_or(&Json::Null))?;
            }
            object.iter().try_for_each(|(_, value)| check_third_parties(value))
        }
        Json::List(items) => items.iter().try_for_each(check_third_parties),
        _ => Ok(()),
    }
}

fn check_options(options: &Json) -> Result<()> {
    if !matches!(options, Json::Null | Json::Object(_)) {
        return Err(Error::invalid(format!(
            "third_party_scorer_data.kwargs must be a JSON object, got {}.",
            options.type_name()
        )));
    }
    let mut found = BTreeSet::new();
    destinations(options, &mut found);
    if found.is_empty() {
        return Ok(());
    }
    let found: Vec<_> = found.into_iter().map(python::repr).collect();
    Err(Error::invalid(format!(
        "third_party_scorer_data.kwargs must not contain {}: these options choose where the scorer's LLM client sends \
         requests. Configure the judge endpoint on the server instead, for example through a gateway endpoint \
         ('gateway:/<name>') or the provider's environment variables.",
        found.join(", ")
    )))
}

/// Collects the options that determine a request's destination. Lists of pairs are treated like
/// objects, because Python can turn such lists into options as well.
fn destinations<'a>(value: &'a Json, found: &mut BTreeSet<&'a str>) {
    match value {
        Json::Object(object) => {
            for (key, value) in object.iter() {
                found.extend(DESTINATION_OPTIONS.contains(&key).then_some(key));
                destinations(value, found);
            }
        }
        Json::List(items) => {
            for item in items {
                if let Json::List(pair) = item
                    && let [Json::Text(key), _] = pair.as_slice()
                {
                    found.extend(DESTINATION_OPTIONS.contains(&key.as_str()).then_some(key.as_str()));
                }
                destinations(item, found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_destinations_are_refused_at_any_depth() {
        for (serialized, message) in [
            ("x", "serialized_scorer must be valid JSON"),
            (r#"{"a": [{"call_source": ""}]}"#, "Custom scorer registration"),
            (
                r#"{"third_party_scorer_data": {"kwargs": []}}"#,
                "third_party_scorer_data.kwargs must be a JSON object, got list.",
            ),
            (
                r#"[{"third_party_scorer_data": {"kwargs": {"a": [["base_url", 1]], "b": {"api_base": 2}}}}]"#,
                "third_party_scorer_data.kwargs must not contain 'api_base', 'base_url': these",
            ),
        ] {
            let found = check(serialized).unwrap_err().message;
            assert!(found.starts_with(message), "{found}");
        }
        for serialized in
            [r#"{"call_source": null}"#, r#"{"third_party_scorer_data": {"kwargs": {"a": ["base_url"]}}}"#, "[]"]
        {
            assert!(check(serialized).is_ok(), "{serialized}");
        }
    }

    #[test]
    fn models_are_found_where_scorers_keep_them() {
        for (serialized, endpoint) in [
            (r#"{"instructions_judge_pydantic_data": {"model": "openai:/x"}}"#, None),
            (
                r#"{"instructions_judge_pydantic_data": {}, "third_party_scorer_data": {"model": "gateway:/x"}}"#,
                Some("x"),
            ),
            (
                r#"{"memory_augmented_judge_data": {"base_judge": {"builtin_scorer_pydantic_data": {"model": "gateway:///x/y"}}}}"#,
                Some("x/y"),
            ),
            (r#"{"builtin_scorer_pydantic_data": {"model": "gateway:/"}}"#, None),
            (r#"{"name": "x"}"#, None),
        ] {
            assert_eq!(gateway_endpoint(serialized).unwrap().as_deref(), endpoint, "{serialized}");
        }
        for serialized in
            ["[]", r#"{"builtin_scorer_pydantic_data": {"model": " "}}"#, r#"{"builtin_scorer_pydantic_data": [1]}"#]
        {
            assert!(gateway_endpoint(serialized).is_err(), "{serialized}");
        }
    }
}
