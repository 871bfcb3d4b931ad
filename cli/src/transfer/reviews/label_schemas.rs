//! Imports, verifies and exports label schemas.

use std::future::ready;

use entities::attributes::{IMPORTED, SCHEMA};
use entities::listing;
use evaluation::store::{
    NewLabelSchema, label_schema_key, label_schema_name_key, label_schema_name_row, label_schema_of,
};
use futures::stream::TryStreamExt;
use key_schema::rows;
use mlflow_api::label_schemas::{LabelInput, LabelSchema, LabelSchemaType};
use mlflow_api::{ExperimentId, LabelSchemaId};
use rusqlite::params;
use serde::Serialize;
use serde_json::{Value, json};
use table::{Condition, Item, Query, Write, text};

use super::SchemaIds;
use super::ids::{self, NAME_SUFFIX};
use crate::Failure;
use crate::transfer::database::{Row, SqlValue};
use crate::transfer::experiments::{ExportedExperiment, ImportedExperiment};
use crate::transfer::export::ExportContext;
use crate::transfer::import::{ImportContext, fingerprint, is_to_be_written, report_written, verify_entity};

/// Name of this kind of entity in reports.
const KIND: &str = "label schemas";

/// A label schema of an MLflow database.
#[derive(Clone, Debug, Serialize)]
struct LabelSchemaRecord {
    name: String,
    kind: LabelSchemaType,
    instruction: Option<String>,
    enable_comment: bool,
    input: LabelInput,
    created: i64,
    updated: i64,
}

impl LabelSchemaRecord {
    fn of(schema: LabelSchema) -> Self {
        Self {
            name: schema.name,
            kind: schema.kind,
            instruction: schema.instruction,
            enable_comment: schema.enable_comment,
            input: schema.input,
            created: schema.created_at,
            updated: schema.last_updated_at,
        }
    }

    /// Reads a label schema from a row of the source. If the label schema cannot be imported, the
    /// inner error is the reason, as a clause that completes "not imported, ".
    fn read(row: &Row) -> Result<Result<Self, &'static str>, Failure> {
        let kind = match row.text(2)?.to_ascii_uppercase().as_str() {
            "FEEDBACK" => LabelSchemaType::Feedback,
            "EXPECTATION" => LabelSchemaType::Expectation,
            _ => return Ok(Err("because its type is unknown")),
        };
        let config: Value = serde_json::from_str(&row.text(6)?).unwrap_or_default();
        let Ok(input) = serde_json::from_value(json!({ row.text(5)?: config })) else {
            return Ok(Err("because its input is not valid"));
        };
        Ok(Ok(Self {
            name: row.text(1)?,
            kind,
            instruction: row.optional_text(3)?,
            enable_comment: row.boolean(4)?,
            input,
            created: row.integer(7)?,
            updated: row.integer(8)?,
        }))
    }

    fn item(&self, id: &LabelSchemaId) -> Result<Item, Failure> {
        let new = NewLabelSchema {
            name: self.name.clone(),
            kind: self.kind,
            input: self.input.clone(),
            instruction: self.instruction.clone(),
            enable_comment: self.enable_comment,
        };
        let item = new.item(id, self.updated).map_err(|error| error.message)?;
        Ok(item.with(IMPORTED, text(fingerprint(self)?)))
    }
}

/// A label schema with its id in the table, and the document that the table already has for this
/// id.
struct PlannedSchema {
    id: LabelSchemaId,
    record: LabelSchemaRecord,
    document: Option<Item>,
}

/// Reads the label schemas of an experiment, determines their ids in the table, and adds these to
/// `ids`. The default label schema is only added to `ids`, because this server does not store it.
/// If `reports` is set, reports label schemas that cannot be imported. Takes one query, and the
/// requests of [`plan`] for each label schema.
async fn planned(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    ids: &mut SchemaIds,
    reports: bool,
) -> Result<Vec<PlannedSchema>, Failure> {
    let source = &context.source;
    if !source.has_table("label_schemas") {
        return Ok(Vec::new());
    }
    let is_default = source.column("label_schemas", "is_default");
    let sql = format!(
        "SELECT schema_id, name, \"type\", instruction, enable_comment, input_type, input_config, created_time, \
         last_update_time, {is_default} FROM label_schemas WHERE experiment_id = ? ORDER BY schema_id"
    );
    let number = SqlValue::Integer(i64::try_from(experiment.source_id.number())?);
    let mut planned = Vec::new();
    for row in source.rows(&sql, vec![number]).await? {
        let source_id = row.text(0)?;
        if row.optional_integer(9)?.unwrap_or_default() != 0 {
            ids.insert(source_id, LabelSchemaId::default_of(experiment.id).to_string());
            continue;
        }
        let record = match LabelSchemaRecord::read(&row)? {
            Ok(record) => record,
            Err(reason) => {
                if reports {
                    context.report.omitted(KIND, &source_id, reason);
                }
                continue;
            }
        };
        let schema = plan(context, experiment.id, &source_id, record).await?;
        ids.insert(source_id, schema.id.to_string());
        planned.push(schema);
    }
    Ok(planned)
}

/// Determines the id and the name of a label schema in the table. If a client has created a label
/// schema with this id or name, `--remap` changes both. Takes two requests, or four if the id or
/// the name is taken.
async fn plan(
    context: &ImportContext,
    experiment: ExperimentId,
    source_id: &str,
    mut record: LabelSchemaRecord,
) -> Result<PlannedSchema, Failure> {
    for is_taken in [false, true] {
        let id = ids::label_schema(experiment, source_id, record.created, is_taken);
        if is_taken {
            record.name.push_str(NAME_SUFFIX);
        }
        let failed = |failure: table::Failure| format!("cannot read label schemas: {failure:?}");
        let claim = context.table.get(&label_schema_name_key(experiment, &record.name)).await.map_err(failed)?;
        let document = context.table.get(&label_schema_key(&id)).await.map_err(failed)?;
        let is_its = claim.is_none_or(|claim| claim.get(SCHEMA) == Some(id.as_str()));
        if is_its && document.as_ref().is_none_or(|document| document.has(IMPORTED)) {
            return Ok(PlannedSchema { id, record, document });
        }
        if !context.remap {
            return Err(format!(
                "label schema {} cannot be imported: its name is taken. --remap imports it with another name",
                record.name
            )
            .into());
        }
    }
    Err(format!("label schema {} cannot be imported: its new name is taken too", record.name).into())
}

/// Computes the fingerprint of a label schema from its document in the table.
fn here(document: Option<&Item>) -> Result<String, Failure> {
    let document = document.ok_or("a label schema is missing")?;
    fingerprint(&LabelSchemaRecord::of(label_schema_of(document).map_err(|error| error.message)?))
}

pub(super) async fn import(context: &ImportContext, experiment: &ImportedExperiment) -> Result<SchemaIds, Failure> {
    let mut ids = SchemaIds::new();
    for PlannedSchema { id, record, document } in planned(context, experiment, &mut ids, true).await? {
        let name = (KIND, record.name.as_str());
        let document = document.as_ref();
        if !is_to_be_written(context, name, &fingerprint(&record)?, document, ready(here(document))).await? {
            continue;
        }
        let mut writes = vec![
            Write::Put(label_schema_name_row(&id, &record.name), Condition::Always),
            Write::Put(record.item(&id)?, Condition::Always),
        ];
        let replaced = document.and_then(|document| label_schema_of(document).ok()).map(|schema| schema.name);
        if let Some(replaced) = replaced.filter(|replaced| *replaced != record.name) {
            writes.push(Write::Delete(label_schema_name_key(experiment.id, &replaced), Condition::Always));
        }
        let written = context.writer.transact(&writes).await;
        written.map_err(|failure| format!("cannot write label schema {}: {failure:?}", record.name))?;
        report_written(context, KIND, document);
    }
    Ok(ids)
}

pub(super) async fn verify(context: &ImportContext, experiment: &ImportedExperiment) -> Result<SchemaIds, Failure> {
    let mut ids = SchemaIds::new();
    for PlannedSchema { record, document, .. } in planned(context, experiment, &mut ids, false).await? {
        let (name, document) = ((KIND, record.name.as_str()), document.as_ref());
        verify_entity(context, name, &fingerprint(&record)?, document, ready(here(document))).await?;
    }
    Ok(ids)
}

pub(super) async fn export(context: &ExportContext, experiment: &ExportedExperiment) -> Result<(), Failure> {
    let id = experiment.record.id;
    let mut pages = std::pin::pin!(listing::pages(&context.table, Query::of(rows::LabelSchema::all(&id))));
    while let Some(page) =
        pages.try_next().await.map_err(|failure| format!("cannot read label schemas: {failure:?}"))?
    {
        for item in page {
            insert(context, &label_schema_of(&item).map_err(|error| error.message)?)?;
        }
    }
    Ok(())
}

/// Inserts a label schema into the exported database.
///
/// # Errors
/// The file cannot be written.
pub(super) fn insert(context: &ExportContext, schema: &LabelSchema) -> Result<(), Failure> {
    let input = serde_json::to_value(&schema.input)?;
    let (kind, config) = input.as_object().and_then(|input| input.iter().next()).ok_or("an input has no type")?;
    let of = serde_json::to_value(schema.kind)?;
    context.insert(
        "INSERT INTO label_schemas (schema_id, experiment_id, name, type, instruction, enable_comment, input_type, \
         input_config, created_time, last_update_time, is_default) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            schema.schema_id,
            schema.experiment_id.parse::<i64>()?,
            schema.name,
            of.as_str().unwrap_or_default().to_ascii_lowercase(),
            schema.instruction,
            schema.enable_comment,
            kind,
            config.to_string(),
            schema.created_at,
            schema.last_updated_at,
            schema.is_default,
        ],
    )
}
