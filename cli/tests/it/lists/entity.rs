//! Finding entities in responses.

use std::collections::BTreeSet;

use serde_json::Value;

/// A kind of entity that has a single read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Experiment,
    Run,
    LoggedModel,
    Trace,
    Assessment,
    /// A registered model or a prompt.
    Model,
    /// A version of either.
    Version,
    Scorer,
    ScorerVersion,
    Dataset,
    McpServer,
    McpVersion,
    Skill,
    SkillVersion,
    Workspace,
    Role,
}

/// An entity: its kind and its id.
pub(super) type Entity = (Kind, String);

/// The place of entities of a kind in a response: names of fields, where `*` stands for every
/// element of an array.
pub(super) type Place = (Kind, &'static str);

/// Returns the entities at these places in a response.
pub(super) fn entities(answer: &Value, places: &[Place]) -> BTreeSet<Entity> {
    let mut found = BTreeSet::new();
    for (kind, path) in places {
        let mut values = vec![answer];
        for part in path.split('.') {
            values = values.into_iter().flat_map(|value| children(value, part)).collect();
        }
        found.extend(values.into_iter().filter_map(|value| id(*kind, value)).map(|id| (*kind, id)));
    }
    found
}

fn children<'v>(value: &'v Value, part: &str) -> Vec<&'v Value> {
    match (part, value) {
        ("*", Value::Array(items)) => items.iter().collect(),
        (_, Value::Object(fields)) => fields.get(part).filter(|found| !found.is_null()).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Returns the id of an entity in a response, given the entity's object, or a text that is the id.
fn id(kind: Kind, value: &Value) -> Option<String> {
    let plain = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let of = |pointers: &[&str]| pointers.iter().find_map(|pointer| value.pointer(pointer).and_then(plain));
    let joined = |pointers: &[&str]| {
        let parts: Option<Vec<_>> = pointers.iter().map(|pointer| of(&[pointer])).collect();
        parts.map(|parts| parts.join("/"))
    };
    match kind {
        Kind::Experiment => of(&["", "/experiment_id", "/experimentId"]),
        // An experiment's artifact directory contains `models` and `traces` besides the
        // directories of its runs. Only run ids have 32 characters.
        Kind::Run => of(&["", "/info/run_id", "/info/runId"]).filter(|id| id.len() == 32),
        Kind::LoggedModel => of(&["", "/info/model_id"]),
        Kind::Trace => of(&["", "/trace_id", "/request_id", "/trace_info/trace_id"]),
        Kind::Assessment => of(&["/assessment_id"]),
        Kind::Model | Kind::McpServer | Kind::Workspace => of(&["/name"]),
        Kind::Version | Kind::McpVersion => joined(&["/name", "/version"]),
        Kind::Skill => joined(&["/organization", "/name"]),
        Kind::SkillVersion => joined(&["/organization", "/name", "/version"]),
        Kind::Scorer => joined(&["/experiment_id", "/scorer_name"]),
        Kind::ScorerVersion => joined(&["/experiment_id", "/scorer_name", "/scorer_version"]),
        Kind::Dataset => of(&["/dataset_id"]),
        Kind::Role => of(&["/role_id", "/id"]),
    }
}

/// Returns the names of the fields in a response whose arrays may contain several entities.
pub(super) fn arrays_of_entities(answer: &Value) -> BTreeSet<String> {
    const IDS: [&str; 13] = [
        "experiment_id",
        "run_id",
        "runId",
        "model_id",
        "modelId",
        "trace_id",
        "request_id",
        "dataset_id",
        "assessment_id",
        "scorer_name",
        "version",
        "username",
        "role_id",
    ];
    let is_entity = |item: &Value| {
        ["info", "trace_info"].iter().any(|part| item[*part].is_object()) || IDS.iter().any(|id| !item[*id].is_null())
    };
    let mut found = BTreeSet::new();
    match answer {
        Value::Object(fields) => {
            for (name, value) in fields {
                let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                let are_ids = name.ends_with("_ids") && items.iter().any(Value::is_string);
                if are_ids || items.iter().any(is_entity) {
                    found.insert(name.clone());
                }
                found.extend(arrays_of_entities(value));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| found.extend(arrays_of_entities(item))),
        _ => {}
    }
    found
}
