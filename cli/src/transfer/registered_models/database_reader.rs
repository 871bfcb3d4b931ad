//! Reads registered models from an MLflow database.

use std::collections::{BTreeMap, HashMap};

use mlflow_api::Workspace;
use mlflow_api::registry::ModelStage;

use super::{KIND, RegisteredModelRecord, VersionRecord};
use crate::Failure;
use crate::transfer::database::{Row, SqlValue};
use crate::transfer::import::ImportContext;
use crate::transfer::source::{Source, placeholders};

/// Number of versions that are read together.
const BATCH: usize = 200;
/// Stage of versions that MLflow has deleted. It keeps their rows, without their content.
const DELETED_STAGE: &str = "Deleted_Internal";

/// Reads the registered models of the context's scope, without fingerprints of their versions.
/// Reports those that cannot be imported, if `reports` is set. Takes four queries.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn models(context: &ImportContext, reports: bool) -> Result<Vec<RegisteredModelRecord>, Failure> {
    let source = &context.source;
    if !source.has_table("registered_models") {
        return Ok(Vec::new());
    }
    let workspace = source.column("registered_models", "workspace");
    let sql = format!("SELECT {workspace}, name, creation_time, last_updated_time, description FROM registered_models");
    let mut records = BTreeMap::new();
    for row in source.rows(&sql, Vec::new()).await? {
        let name = row.text(1)?;
        let workspace = match parse_workspace(&row) {
            Ok(workspace) => workspace,
            Err(reason) => {
                if reports {
                    context.report.omitted(KIND, &name, reason);
                }
                continue;
            }
        };
        if !context.scope.includes(&workspace) {
            continue;
        }
        let created = row.integer(2)?;
        let record = RegisteredModelRecord {
            workspace: workspace.clone(),
            name: name.clone(),
            created,
            updated: row.optional_integer(3)?.unwrap_or(created),
            description: row.text(4)?,
            tags: Vec::new(),
            aliases: BTreeMap::new(),
            last_version: 0,
            versions: BTreeMap::new(),
        };
        records.insert((workspace.as_str().to_owned(), name), record);
    }
    read_parts(source, &mut records).await?;
    Ok(records.into_values().collect())
}

fn parse_workspace(row: &Row) -> Result<Workspace, String> {
    match row.optional_text(0).map_err(|failure| failure.to_string())? {
        Some(name) => Workspace::parse(&name).map_err(|error| error.message),
        None => Ok(Workspace::default()),
    }
}

type Records = BTreeMap<(String, String), RegisteredModelRecord>;

async fn read_parts(source: &Source, records: &mut Records) -> Result<(), Failure> {
    let workspace = |row: &Row| Ok::<_, Failure>(row.optional_text(0)?.unwrap_or_else(|| "default".to_owned()));
    let column = source.column("registered_model_tags", "workspace");
    let sql = format!(r#"SELECT {column}, name, "key", value FROM registered_model_tags"#);
    for row in source.rows(&sql, Vec::new()).await? {
        if let Some(record) = records.get_mut(&(workspace(&row)?, row.text(1)?)) {
            record.tags.push((row.text(2)?, row.text(3)?));
        }
    }
    if source.has_table("registered_model_aliases") {
        let column = source.column("registered_model_aliases", "workspace");
        let sql = format!("SELECT {column}, name, alias, version FROM registered_model_aliases");
        for row in source.rows(&sql, Vec::new()).await? {
            if let Some(record) = records.get_mut(&(workspace(&row)?, row.text(1)?)) {
                record.aliases.insert(row.text(2)?, u32::try_from(row.integer(3)?)?);
            }
        }
    }
    let column = source.column("model_versions", "workspace");
    let sql = format!("SELECT {column}, name, max(version) FROM model_versions GROUP BY {column}, name");
    let sql = if column == "NULL" {
        "SELECT NULL, name, max(version) FROM model_versions GROUP BY name".to_owned()
    } else {
        sql
    };
    for row in source.rows(&sql, Vec::new()).await? {
        if let Some(record) = records.get_mut(&(workspace(&row)?, row.text(1)?)) {
            record.last_version = u32::try_from(row.integer(2)?)?;
        }
    }
    for record in records.values_mut() {
        record.tags.sort_unstable();
    }
    Ok(())
}

/// Reads the next versions of a model after a number, in ascending order. Returns an empty list at
/// the end. Takes two queries.
///
/// # Errors
/// The database cannot be read, or a version has a stage that MLflow does not have.
pub(super) async fn next_versions(
    source: &Source,
    model: &RegisteredModelRecord,
    after: u32,
) -> Result<Vec<VersionRecord>, Failure> {
    let columns =
        ["last_updated_time", "description", "current_stage", "source", "storage_location", "run_id", "run_link"];
    let columns = source.columns("model_versions", &columns);
    let (condition, mut arguments) = of_model(source, "model_versions", model);
    arguments.push(SqlValue::Integer(after.into()));
    arguments.push(DELETED_STAGE.into());
    let sql = format!(
        "SELECT version, creation_time, {columns} FROM model_versions WHERE {condition} AND version > ? AND (current_stage IS \
         NULL OR current_stage <> ?) ORDER BY version LIMIT {BATCH}"
    );
    let mut records = Vec::new();
    for row in source.rows(&sql, arguments).await? {
        let created = row.integer(1)?;
        let stage = row.optional_text(4)?.unwrap_or_else(|| ModelStage::None.name().to_owned());
        let source_uri = row.text(5)?;
        records.push(VersionRecord {
            number: u32::try_from(row.integer(0)?)?,
            created,
            updated: row.optional_integer(2)?.unwrap_or(created),
            description: row.optional_text(3)?,
            stage: ModelStage::from_name(&stage).ok_or_else(|| format!("version stage {stage} is unknown"))?,
            storage: row.optional_text(6)?.filter(|uri| !uri.is_empty()).unwrap_or_else(|| source_uri.clone()),
            source: source_uri,
            run: row.optional_text(7)?,
            run_link: row.optional_text(8)?,
            tags: Vec::new(),
        });
    }
    if records.is_empty() {
        return Ok(records);
    }
    let (condition, mut arguments) = of_model(source, "model_version_tags", model);
    arguments.extend(records.iter().map(|record| SqlValue::Integer(record.number.into())));
    let list = placeholders(records.len());
    let sql =
        format!(r#"SELECT version, "key", value FROM model_version_tags WHERE {condition} AND version IN {list}"#);
    let mut tags: HashMap<i64, Vec<(String, String)>> = HashMap::new();
    for row in source.rows(&sql, arguments).await? {
        tags.entry(row.integer(0)?).or_default().push((row.text(1)?, row.text(2)?));
    }
    for record in &mut records {
        record.tags = tags.remove(&record.number.into()).unwrap_or_default();
        record.tags.sort_unstable();
    }
    Ok(records)
}

/// Returns the condition that a row belongs to a model, and its arguments.
fn of_model(source: &Source, table: &str, model: &RegisteredModelRecord) -> (String, Vec<SqlValue>) {
    if source.column(table, "workspace") == "NULL" {
        return ("name = ?".to_owned(), vec![model.name.as_str().into()]);
    }
    ("workspace = ? AND name = ?".to_owned(), vec![model.workspace.as_str().into(), model.name.as_str().into()])
}
