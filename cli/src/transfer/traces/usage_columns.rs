//! Names, sessions, tokens and costs of traces, for which later schemas have columns in
//! `trace_info` instead of tags and metadata.
//!
//! Older schemas are read as if MLflow had upgraded them. The upgrade cuts off long names and
//! sessions, and keeps only valid numbers (`trace_analytics_backfill_75868b020152.py`).

use mlflow_api::limits::truncated;
use mlflow_api::python::json_spaced;
use mlflow_api::traces::{COST, MAX_METADATA_LENGTH, MAX_TAG_VALUE_LENGTH, NAME_TAG, SESSION, TOKEN_USAGE};
use serde_json::{Map, Value};
use traces::store::{COST_KEYS, TOKEN_KEYS, normalized_metadata};

use crate::Failure;
use crate::transfer::database::Row;

/// Metadata key of traces of requests that a gateway has served. The cost of such a trace is that
/// of its spans.
pub(super) const GATEWAY_ENDPOINT: &str = "mlflow.gateway.endpointId";

/// The columns of `trace_info`, in the order in which [`of_row`] reads them.
pub(super) const COLUMNS: [&str; 11] = [
    "trace_name",
    "session_id",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation_input_tokens_above_1hr",
    "input_cost",
    "output_cost",
    "total_cost",
];

type Entries = Vec<(String, String)>;

/// Replaces tags and metadata by the values of [`COLUMNS`], which begin at column `first` of the
/// row.
///
/// # Errors
/// A column has another type.
pub(super) fn of_row(row: &Row, first: usize, tags: &mut Entries, metadata: &mut Entries) -> Result<(), Failure> {
    tags.retain(|(key, _)| key != NAME_TAG);
    metadata.retain(|(key, _)| ![SESSION, TOKEN_USAGE, COST].contains(&key.as_str()));
    tags.extend(row.optional_text(first)?.map(|name| (NAME_TAG.to_owned(), name)));
    metadata.extend(row.optional_text(first + 1)?.map(|session| (SESSION.to_owned(), session)));
    let mut tokens = Map::new();
    for (column, key) in (first + 2..).zip(TOKEN_KEYS) {
        tokens.extend(row.optional_integer(column)?.map(|count| (key.to_owned(), count.into())));
    }
    let mut costs = Map::new();
    for (column, key) in (first + 2 + TOKEN_KEYS.len()..).zip(COST_KEYS) {
        costs.extend(row.optional_number(column)?.map(|cost| (key.to_owned(), cost.into())));
    }
    for (key, numbers) in [(TOKEN_USAGE, tokens), (COST, costs)] {
        if !numbers.is_empty() {
            metadata.push((key.to_owned(), json_spaced(&Value::Object(numbers))));
        }
    }
    Ok(())
}

/// Changes tags and metadata of an older schema as MLflow's upgrade does. `metrics` are the rows of
/// `trace_metrics`, which take precedence, and `span_cost` is the total cost of the spans.
pub(super) fn of_older_schema(
    tags: &mut Entries,
    metadata: &mut Entries,
    metrics: &[(String, Option<f64>)],
    span_cost: Option<f64>,
) {
    for (key, name) in tags.iter_mut() {
        if key == NAME_TAG {
            *name = truncated(MAX_TAG_VALUE_LENGTH, name).into_owned();
        }
    }
    let is_of_gateway = metadata.iter().any(|(key, _)| key == GATEWAY_ENDPOINT);
    let mut take = |key: &str| {
        let found = metadata.iter().position(|(name, _)| name == key)?;
        Some(metadata.remove(found).1)
    };
    let session = take(SESSION).map(|session| truncated(MAX_METADATA_LENGTH, &session).into_owned());
    let (mut tokens, mut cost) = (object(take(TOKEN_USAGE)), object(take(COST)));
    for (key, value) in metrics {
        if TOKEN_KEYS.contains(&key.as_str()) {
            tokens.insert(key.clone(), value.map_or(Value::Null, Value::from));
        }
    }
    let total = COST_KEYS[2];
    let has_total =
        normalized_metadata(COST, &Value::Object(cost.clone()).to_string()).is_some_and(|cost| cost.contains(total));
    if let Some(span_cost) = span_cost.filter(|_| is_of_gateway && !has_total) {
        cost.insert(total.to_owned(), span_cost.into());
    }
    metadata.extend(session.map(|session| (SESSION.to_owned(), session)));
    for (key, numbers) in [(TOKEN_USAGE, tokens), (COST, cost)] {
        let normalized = normalized_metadata(key, &Value::Object(numbers).to_string());
        metadata.extend(normalized.map(|value| (key.to_owned(), value)));
    }
}

fn object(text: Option<String>) -> Map<String, Value> {
    match text.and_then(|text| mlflow_api::json::read_value(text.as_bytes()).ok()) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

/// Returns the values of [`COLUMNS`] for a trace: its name and session, and its numbers.
pub(super) fn of_trace(tags: &Entries, metadata: &Entries) -> (Option<String>, Option<String>, Vec<Option<f64>>) {
    let value =
        |entries: &Entries, key: &str| entries.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
    let (tokens, costs) = (object(value(metadata, TOKEN_USAGE)), object(value(metadata, COST)));
    let numbers = TOKEN_KEYS.iter().map(|key| tokens.get(*key)).chain(COST_KEYS.iter().map(|key| costs.get(*key)));
    (value(tags, NAME_TAG), value(metadata, SESSION), numbers.map(|number| number.and_then(Value::as_f64)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(entries: &[(&str, &str)]) -> Entries {
        entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn an_older_schema_is_read_as_if_it_was_upgraded() {
        let mut tags = entries(&[(NAME_TAG, &"é".repeat(5_000)), ("a", "b")]);
        let usage = r#"{"input_tokens": "5", "output_tokens": 2.5, "total_tokens": 7, "other": 1}"#;
        let mut metadata =
            entries(&[(SESSION, &"s".repeat(300)), (TOKEN_USAGE, usage), (COST, "[]"), (GATEWAY_ENDPOINT, "e")]);
        of_older_schema(&mut tags, &mut metadata, &[("total_tokens".to_owned(), Some(9.0))], Some(0.25));
        assert_eq!(tags[0].1.chars().count(), MAX_TAG_VALUE_LENGTH);
        let expected = [
            (GATEWAY_ENDPOINT, "e"),
            (SESSION, &"s".repeat(250)),
            (TOKEN_USAGE, r#"{"input_tokens": 5, "total_tokens": 9}"#),
            (COST, r#"{"total_cost": 0.25}"#),
        ];
        assert_eq!(metadata, entries(&expected));
        let (name, session, numbers) = of_trace(&tags, &metadata);
        assert_eq!((name.as_deref(), session.map(|session| session.len())), (Some(tags[0].1.as_str()), Some(250)));
        let expected = [Some(5.0), None, Some(9.0), None, None, None, None, None, Some(0.25)];
        assert_eq!(numbers, expected);
    }
}
