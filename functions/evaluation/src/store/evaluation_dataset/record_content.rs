//! Records of evaluation datasets: parsing of what clients send, and merging, as in
//! `SqlEvaluationDatasetRecord.merge` and `upsert_dataset_records` of MLflow's SQL store.

use key_schema::WideDigest;
use mlflow_api::json::JsonObject;
use mlflow_api::{Error, ErrorCode, Json, Result};

/// The tag that contains the name of the user who created a record.
pub(super) const USER_TAG: &str = "mlflow.user";
const SOURCE_TYPES: [&str; 5] = ["UNSPECIFIED", "TRACE", "HUMAN", "DOCUMENT", "CODE"];

/// A record as a client sent it.
#[derive(Clone, Debug)]
pub(super) struct SentRecord {
    pub(super) inputs: JsonObject,
    /// The outputs. `None` if the client sent none. An explicit null is a value, not `None`.
    pub(super) outputs: Option<Json>,
    pub(super) expectations: Option<JsonObject>,
    tags: Option<JsonObject>,
    source: Option<RecordSource>,
    pub(super) user: UserTag,
}

/// The user of a record, according to the record's tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UserTag {
    /// The tag is missing.
    Missing,
    /// The tag is null, so there is no user.
    Null,
    /// The name of the user.
    Named(String),
}

impl UserTag {
    /// Returns the user of a record after these tags have been applied to it. `before` is its
    /// previous user.
    pub(super) fn after(&self, before: Option<String>) -> Option<String> {
        match self {
            Self::Missing => before,
            Self::Null => None,
            Self::Named(user) => Some(user.clone()),
        }
    }
}

/// The origin of a record.
#[derive(Clone, Debug)]
struct RecordSource {
    type_name: String,
    data: JsonObject,
    id: Option<String>,
}

impl SentRecord {
    /// Parses and checks a record.
    pub(super) fn read(record: Json) -> Result<Self> {
        let Json::Object(mut record) = record else {
            return Err(Error::invalid(format!("A record must be a JSON object, got {}.", record.type_name())));
        };
        let inputs = match record.remove("inputs") {
            None => JsonObject::default(),
            Some(Json::Null) => return Err(Error::invalid("inputs must be provided")),
            Some(inputs) => object("inputs", inputs)?,
        };
        let mut optional = |field: &str| match record.remove(field) {
            None | Some(Json::Null) => Ok(None),
            Some(value) => object(field, value).map(Some),
        };
        let (expectations, tags) = (optional("expectations")?, optional("tags")?);
        let user = match tags.as_ref().and_then(|tags| tags.get(USER_TAG)) {
            None => UserTag::Missing,
            Some(user) => column(USER_TAG, user)?.map_or(UserTag::Null, UserTag::Named),
        };
        let source = record.remove("source").filter(Json::is_true).map(RecordSource::read).transpose()?;
        Ok(Self { inputs, outputs: record.remove("outputs"), expectations, tags, source, user })
    }

    /// Returns the hash of the record's inputs.
    pub(super) fn inputs_hash(&self) -> WideDigest {
        inputs_hash(&self.inputs)
    }
}

/// Returns the hash of a record's inputs. Two inputs have equal hashes if Python prints them
/// identically once their keys are sorted.
#[must_use]
pub fn inputs_hash(inputs: &JsonObject) -> WideDigest {
    WideDigest::of_bytes(Json::Object(inputs.clone()).print_sorted().as_bytes())
}

/// The fields of a record's content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordFields {
    /// Inputs.
    pub inputs: JsonObject,
    /// Outputs.
    pub outputs: Option<Json>,
    /// Expectations.
    pub expectations: Option<JsonObject>,
    /// Tags.
    pub tags: JsonObject,
    /// Source: an object with `source_type` and `source_data`.
    pub source: Option<JsonObject>,
    /// Id of the source.
    pub source_id: Option<String>,
    /// Type of the source.
    pub source_type: Option<String>,
}

impl RecordFields {
    /// Returns the content in its stored form, which is JSON.
    #[must_use]
    pub fn content(self) -> String {
        Json::Object(self.into_object()).print()
    }

    fn into_object(self) -> JsonObject {
        let fields = [
            ("inputs", Some(Json::Object(self.inputs))),
            ("outputs", self.outputs),
            ("expectations", self.expectations.map(Json::Object)),
            ("tags", Some(Json::Object(self.tags))),
            ("source", self.source.map(Json::Object)),
            ("source_id", self.source_id.map(Json::Text)),
            ("source_type", self.source_type.map(Json::Text)),
        ];
        fields.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?))).collect()
    }
}

impl RecordSource {
    fn read(source: Json) -> Result<Self> {
        let mut source = object("source", source)?;
        let written = match source.remove("source_type") {
            Some(Json::Text(name)) => name.to_uppercase(),
            _ => return Err(Error::invalid("The 'source_type' of a record's source must be a text.")),
        };
        if !SOURCE_TYPES.contains(&written.as_str()) {
            return Err(Error::invalid(format!(
                "Invalid dataset record source type: {written}. Valid source types: {}",
                mlflow_api::python::repr_list(&SOURCE_TYPES)
            )));
        }
        let data = match source.remove("source_data") {
            None | Some(Json::Null) => JsonObject::default(),
            Some(data) => object("source_data", data)?,
        };
        if let Some((other, _)) = source.iter().next() {
            return Err(Error::invalid(format!("A record's source has no field '{other}'.")));
        }
        let id = data.get(if written == "TRACE" { "trace_id" } else { "source_id" });
        let id = id.map(|id| column("source_id", id)).transpose()?.flatten();
        Ok(Self { type_name: written, data, id })
    }
}

/// Returns the value of a field, which has to be a JSON object.
fn object(field: &str, value: Json) -> Result<JsonObject> {
    match value {
        Json::Object(object) => Ok(object),
        other => Err(Error::invalid(format!(
            "Attribute '{field}' does not accept objects of type <class '{}'>",
            other.type_name()
        ))),
    }
}

/// Converts a value in the way that MLflow's database converts it for a text column.
pub(crate) fn column(field: &str, value: &Json) -> Result<Option<String>> {
    match value {
        Json::Null => Ok(None),
        Json::Bool(value) => Ok(Some(u8::from(*value).to_string())),
        Json::List(_) | Json::Object(_) => {
            Err(Error::new(ErrorCode::BadRequest, format!("The value of '{field}' must be a text.")))
        }
        other => Ok(Some(other.to_text())),
    }
}

/// The stored content of a record: inputs, outputs, expectations, tags and source, with the names
/// and in the order of MLflow's response.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RecordContent(JsonObject);

impl RecordContent {
    /// Creates the content of a new record.
    pub(super) fn new(sent: &SentRecord) -> Self {
        let source = sent.source.as_ref().map(|source| {
            let entries = [
                ("source_type".to_owned(), Json::Text(source.type_name.clone())),
                ("source_data".to_owned(), Json::Object(source.data.clone())),
            ];
            entries.into_iter().collect()
        });
        let fields = RecordFields {
            inputs: sent.inputs.clone(),
            outputs: match &sent.outputs {
                None => Some(Json::Object(JsonObject::default())),
                Some(Json::Null) => None,
                Some(outputs) => Some(outputs.clone()),
            },
            expectations: sent.expectations.clone(),
            tags: sent.tags.clone().unwrap_or_default(),
            source,
            source_id: sent.source.as_ref().and_then(|source| source.id.clone()),
            source_type: sent.source.as_ref().map(|source| source.type_name.clone()),
        };
        Self(fields.into_object())
    }

    /// Parses the output of [`RecordContent::print`].
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Json::Object(content) = Json::parse(text)? { Some(Self(content)) } else { None }
    }

    /// Formats the content as JSON.
    pub(super) fn print(&self) -> String {
        Json::Object(self.0.clone()).print()
    }

    /// Merges a sent record with equal inputs into this content. Outputs are replaced if any were
    /// sent. Expectations and tags are added, and replace those with the same names. The source is
    /// kept.
    pub(super) fn merge(&mut self, sent: &SentRecord) {
        match &sent.outputs {
            None => {}
            Some(Json::Null) => {
                self.0.remove("outputs");
            }
            Some(outputs) => self.0.update([("outputs".to_owned(), outputs.clone())]),
        }
        for (field, entries) in [("expectations", &sent.expectations), ("tags", &sent.tags)] {
            let Some(entries) = entries.as_ref().filter(|entries| !entries.is_empty()) else { continue };
            let mut held = match self.0.get(field) {
                Some(Json::Object(held)) => held.clone(),
                _ => JsonObject::default(),
            };
            held.update(entries.clone());
            self.0.update([(field.to_owned(), Json::Object(held))]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(text: &str) -> SentRecord {
        SentRecord::read(Json::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn a_new_record_has_outputs_and_tags() {
        let content = RecordContent::new(&sent(
            r#"{"inputs": {"q": 1}, "source": {"source_type": "trace", "source_data": {"trace_id": "t"}}}"#,
        ));
        let printed = content.print();
        assert_eq!(
            printed,
            r#"{"inputs": {"q": 1}, "outputs": {}, "tags": {}, "source": {"source_type": "TRACE", "source_data": {"trace_id": "t"}}, "source_id": "t", "source_type": "TRACE"}"#
        );
        assert_eq!(RecordContent::parse(&printed), Some(content));
        assert_eq!(RecordContent::new(&sent(r#"{"outputs": null}"#)).print(), r#"{"inputs": {}, "tags": {}}"#);
    }

    #[test]
    fn merging_adds_and_replaces() {
        let mut content =
            RecordContent::new(&sent(r#"{"inputs": {"q": 1}, "expectations": {"a": 1}, "tags": {"t": "x"}}"#));
        content.merge(&sent(r#"{"inputs": {"q": 1}, "outputs": "o", "expectations": {"b": 2, "a": 3}}"#));
        assert_eq!(
            content.print(),
            r#"{"inputs": {"q": 1}, "outputs": "o", "expectations": {"a": 3, "b": 2}, "tags": {"t": "x"}}"#
        );
        content.merge(&sent(
            r#"{"outputs": null, "expectations": null, "tags": {"u": null}, "source": {"source_type": "CODE"}}"#,
        ));
        assert_eq!(
            content.print(),
            r#"{"inputs": {"q": 1}, "expectations": {"a": 3, "b": 2}, "tags": {"t": "x", "u": null}}"#
        );
    }

    #[test]
    fn inputs_are_the_same_in_any_order() {
        let hash = |text: &str| sent(text).inputs_hash();
        assert_eq!(
            hash(r#"{"inputs": {"a": 1, "b": {"d": 1, "c": 2}}}"#),
            hash(r#"{"inputs": {"b": {"c": 2, "d": 1}, "a": 1}}"#)
        );
        assert_ne!(hash(r#"{"inputs": {"a": 1}}"#), hash(r#"{"inputs": {"a": 1.0}}"#));
        assert_ne!(
            hash(r#"{"inputs": {"a": 123456789012345678901234567890}}"#),
            hash(r#"{"inputs": {"a": 123456789012345678901234567891}}"#)
        );
        assert_eq!(hash("{}"), hash(r#"{"inputs": {}}"#));
    }

    #[test]
    fn what_cannot_be_a_record() {
        for text in [
            "5",
            r#"{"inputs": null}"#,
            r#"{"inputs": []}"#,
            r#"{"expectations": ""}"#,
            r#"{"tags": []}"#,
            r#"{"tags": {"mlflow.user": []}}"#,
            r#"{"source": "x"}"#,
            r#"{"source": {"source_data": {}}}"#,
            r#"{"source": {"source_type": "NOPE"}}"#,
            r#"{"source": {"source_type": "HUMAN", "other": 1}}"#,
            r#"{"source": {"source_type": "HUMAN", "source_data": []}}"#,
            r#"{"source": {"source_type": "HUMAN", "source_data": {"source_id": {}}}}"#,
        ] {
            assert!(SentRecord::read(Json::parse(text).unwrap()).is_err(), "{text}");
        }
    }
}
