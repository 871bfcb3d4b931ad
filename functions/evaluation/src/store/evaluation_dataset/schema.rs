//! The schema of an evaluation dataset: the names of the fields in its records, and for each field
//! the type of its first value (`_update_dataset_schema` in MLflow's SQL store).

use std::collections::HashSet;

use mlflow_api::Json;
use mlflow_api::json::JsonObject;

use super::record_content::SentRecord;

/// Returns the schema, extended by the fields of these records.
pub(super) fn updated_schema(schema: Option<&str>, records: &[SentRecord]) -> Option<String> {
    if records.is_empty() && schema.is_none() {
        return None;
    }
    let empty = || Json::Object(JsonObject::default());
    let mut schema = match schema.and_then(Json::parse) {
        Some(Json::Object(schema)) => schema,
        _ => [("inputs", empty()), ("outputs", empty()), ("expectations", empty()), ("version", "1.0".into())]
            .map(|(key, value)| (key.to_owned(), value))
            .into_iter()
            .collect(),
    };
    let mut inputs = SchemaFields::of(schema.get("inputs"));
    let mut expectations = SchemaFields::of(schema.get("expectations"));
    let mut output_fields = SchemaFields::of(schema.get("outputs"));
    // The type of the first output that was not an object, if there has been one.
    let mut output_type = schema.get("outputs").filter(|outputs| outputs.object().is_none()).cloned();
    for record in records {
        inputs.add(&record.inputs);
        if let Some(sent) = &record.expectations {
            expectations.add(sent);
        }
        // After the first output that is not an object, the type of the outputs is that output's
        // type. MLflow fails if an object follows.
        match &record.outputs {
            Some(Json::Object(sent)) if output_type.is_none() => output_fields.add(sent),
            None | Some(Json::Null | Json::Object(_)) => {}
            Some(sent) => {
                if output_type.is_none() && output_fields.object.is_empty() {
                    output_type = Some(Json::from(type_of(sent)));
                }
            }
        }
    }
    schema.update([
        ("inputs".to_owned(), Json::Object(inputs.object)),
        ("outputs".to_owned(), output_type.unwrap_or(Json::Object(output_fields.object))),
        ("expectations".to_owned(), Json::Object(expectations.object)),
    ]);
    Some(Json::Object(schema).print())
}

/// The fields of a part of the schema, with a set of their names for fast lookup. There may be as
/// many fields as records.
struct SchemaFields {
    object: JsonObject,
    names: HashSet<String>,
}

impl SchemaFields {
    fn of(part: Option<&Json>) -> Self {
        let object = part.and_then(Json::object).cloned().unwrap_or_default();
        let names = object.iter().map(|(key, _)| key.to_owned()).collect();
        Self { object, names }
    }

    fn add(&mut self, sent: &JsonObject) {
        let names = &mut self.names;
        let new: Vec<_> = sent
            .iter()
            .filter(|(key, _)| !names.contains(*key) && names.insert((*key).to_owned()))
            .map(|(key, value)| (key.to_owned(), Json::from(type_of(value))))
            .collect();
        self.object.extend(new);
    }
}

fn type_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Integer(_) => "integer",
        Json::Float(_) => "float",
        Json::Text(_) => "string",
        Json::List(_) => "array",
        Json::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(before: Option<&str>, records: &[&str]) -> Option<String> {
        let records: Vec<_> =
            records.iter().map(|text| SentRecord::read(Json::parse(text).unwrap()).unwrap()).collect();
        updated_schema(before, &records)
    }

    #[test]
    fn the_first_value_of_a_field_says_its_type() {
        assert_eq!(schema(None, &[]), None);
        let first = schema(None, &[r#"{"inputs": {"a": 1, "b": null}, "outputs": {"o": []}}"#]).unwrap();
        assert_eq!(
            first,
            r#"{"inputs": {"a": "integer", "b": "null"}, "outputs": {"o": "array"}, "expectations": {}, "version": "1.0"}"#
        );
        let second =
            schema(Some(&first), &[r#"{"inputs": {"a": "x"}, "expectations": {"e": {}, "f": 1.5, "g": true}}"#])
                .unwrap();
        assert_eq!(
            second,
            r#"{"inputs": {"a": "integer", "b": "null"}, "outputs": {"o": "array"}, "expectations": {"e": "object", "f": "float", "g": "boolean"}, "version": "1.0"}"#
        );
        assert_eq!(schema(Some(&second), &[]), Some(second));
    }

    #[test]
    fn an_output_that_is_no_object_stands_for_all() {
        let first = schema(None, &[r#"{"outputs": "text"}"#, r#"{"outputs": {"a": 1}}"#, r#"{"outputs": 5}"#]).unwrap();
        assert_eq!(first, r#"{"inputs": {}, "outputs": "string", "expectations": {}, "version": "1.0"}"#);
        let other = schema(None, &[r#"{"outputs": {"a": 1}}"#, r#"{"outputs": 5}"#]).unwrap();
        assert!(other.contains(r#""outputs": {"a": "integer"}"#), "{other}");
    }
}
