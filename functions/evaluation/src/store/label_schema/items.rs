//! The items of label schemas.

use entities::attributes::{CHANGES, COMMENTS, INPUT, INSTRUCTION, NAME, SCHEMA, TYPE, UPDATED};
use entities::unreadable;
use key_schema::{Descending, Key, Name, rows};
use mlflow_api::label_schemas::{LabelInput, LabelSchema, LabelSchemaType};
use mlflow_api::{Error, ExperimentId, LabelSchemaId, Result};
use table::{Item, number, text};

/// A validated label schema that is to be created.
#[derive(Clone, Debug)]
pub struct NewLabelSchema {
    /// Name.
    pub name: String,
    /// The kind of assessment that a reviewer's answer is stored as.
    pub kind: LabelSchemaType,
    /// How reviewers enter an answer.
    pub input: LabelInput,
    /// Instruction for reviewers.
    pub instruction: Option<String>,
    /// Whether reviewers can add a comment.
    pub enable_comment: bool,
}

/// Returns the key of a label schema.
#[must_use]
pub fn schema_key(schema: &LabelSchemaId) -> Key {
    rows::LabelSchema::key(&schema.experiment(), &Descending(schema.created()), schema)
}

/// Returns the key of the row that claims a name.
#[must_use]
pub fn name_key(experiment: ExperimentId, name: &str) -> Key {
    rows::LabelSchemaName::key(&experiment, &Name::from(name))
}

/// Creates the row that claims the name of a schema.
#[must_use]
pub fn name_row(schema: &LabelSchemaId, name: &str) -> Item {
    Item::new(name_key(schema.experiment(), name)).with(NAME, text(name)).with(SCHEMA, text(schema.as_str()))
}

/// Returns the stored form of an input.
pub(super) fn input_text(input: &LabelInput) -> Result<String> {
    serde_json::to_string(input).map_err(Error::internal)
}

impl NewLabelSchema {
    /// Creates the item of a label schema. `updated` is the time of its last change, in ms.
    ///
    /// # Errors
    /// Returns an internal error if the input cannot be represented, which is a bug.
    pub fn item(&self, schema: &LabelSchemaId, updated: i64) -> Result<Item> {
        let item = Item::new(schema_key(schema))
            .with(NAME, text(&self.name))
            .with(TYPE, text(type_name(self.kind)))
            .with(INPUT, text(input_text(&self.input)?))
            .with(UPDATED, number(updated))
            .with(CHANGES, number(0));
        let item = self.instruction.iter().fold(item, |item, instruction| item.with(INSTRUCTION, text(instruction)));
        Ok(if self.enable_comment { item.with(COMMENTS, number(1)) } else { item })
    }
}

const fn type_name(kind: LabelSchemaType) -> &'static str {
    match kind {
        LabelSchemaType::Feedback => "FEEDBACK",
        LabelSchemaType::Expectation => "EXPECTATION",
    }
}

/// Reads a label schema from its item.
///
/// # Errors
/// Returns an internal error if the item is invalid.
pub fn schema_of(item: &Item) -> Result<LabelSchema> {
    let unreadable = || unreadable(item, "a label schema");
    let schema = item.key().as_ref().and_then(rows::LabelSchema::parse).ok_or_else(unreadable)?.schema;
    let kind = match item.get(TYPE) {
        Some("FEEDBACK") => LabelSchemaType::Feedback,
        Some("EXPECTATION") => LabelSchemaType::Expectation,
        _ => return Err(unreadable()),
    };
    let input = item.get(INPUT).and_then(|input| serde_json::from_str(input).ok()).ok_or_else(unreadable)?;
    Ok(LabelSchema {
        schema_id: schema.to_string(),
        experiment_id: schema.experiment().to_string(),
        name: item.get(NAME).unwrap_or_default().to_owned(),
        kind,
        instruction: item.get(INSTRUCTION).map(str::to_owned),
        enable_comment: item.get(COMMENTS) == Some(1),
        input,
        created_at: schema.created(),
        last_updated_at: item.get(UPDATED).unwrap_or_default(),
        is_default: false,
    })
}

/// Returns MLflow's error for a name that another schema of the experiment has.
pub(super) fn taken(name: &str, experiment: ExperimentId) -> Error {
    Error::new(
        mlflow_api::ErrorCode::ResourceAlreadyExists,
        format!("Label schema with name '{name}' already exists for experiment '{experiment}'."),
    )
}
