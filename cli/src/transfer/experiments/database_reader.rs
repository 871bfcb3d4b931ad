//! Reads experiments from an MLflow database.

use std::collections::HashMap;

use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{ExperimentId, Workspace};

use super::ExperimentRecord;
use crate::Failure;
use crate::transfer::database::Row;
use crate::transfer::import::{ImportContext, ImportScope};
use crate::transfer::source::Source;

/// Returns the experiments of the context's scope, in the order of their ids. Takes three queries.
///
/// # Errors
/// The database cannot be read, or the experiment of the scope does not exist.
pub(super) async fn read(context: &ImportContext) -> Result<Vec<ExperimentRecord>, Failure> {
    let source = &context.source;
    let mut tags = read_tags(source).await?;
    let columns = ["workspace", "name", "artifact_location", "lifecycle_stage", "creation_time", "last_update_time"];
    let columns = source.columns("experiments", &columns);
    let sql = format!("SELECT experiment_id, {columns} FROM experiments ORDER BY experiment_id");
    let mut records = Vec::new();
    for row in source.rows(&sql, Vec::new()).await? {
        let id = row.integer(0)?;
        match parse(id, &row, &mut tags) {
            Ok(record) if is_in_scope(&record, &context.scope) => records.push(record),
            Ok(_) => {}
            Err(reason) => context.report.omitted(super::KIND, &id.to_string(), reason),
        }
    }
    match &context.scope {
        ImportScope::Experiment(id) if records.is_empty() => Err(format!("the database has no experiment {id}").into()),
        _ => Ok(records),
    }
}

fn is_in_scope(record: &ExperimentRecord, scope: &ImportScope) -> bool {
    match scope {
        ImportScope::All => true,
        ImportScope::Experiment(id) => record.id == *id,
        ImportScope::Workspace(workspace) => record.workspace == *workspace,
    }
}

type Tags = HashMap<i64, Vec<(String, String)>>;

async fn read_tags(source: &Source) -> Result<Tags, Failure> {
    let mut tags = Tags::new();
    for row in source.rows(r#"SELECT experiment_id, "key", value FROM experiment_tags"#, Vec::new()).await? {
        tags.entry(row.integer(0)?).or_default().push((row.text(1)?, row.text(2)?));
    }
    for tags in tags.values_mut() {
        tags.sort_unstable();
    }
    Ok(tags)
}

/// Returns the record of a row, or the reason why this server cannot store it.
fn parse(id: i64, row: &Row, tags: &mut Tags) -> Result<ExperimentRecord, String> {
    let number = u64::try_from(id).ok().and_then(ExperimentId::from_number);
    let failed = |failure: Failure| failure.to_string();
    let workspace = match row.optional_text(1).map_err(failed)? {
        Some(name) => Workspace::parse(&name).map_err(|error| error.message)?,
        None => Workspace::default(),
    };
    let stage = match row.optional_text(4).map_err(failed)?.as_deref() {
        None | Some("active") => LifecycleStage::Active,
        Some("deleted") => LifecycleStage::Deleted,
        Some(other) => return Err(format!("because its lifecycle stage is {other}")),
    };
    Ok(ExperimentRecord {
        id: number.ok_or("because its id has more than 60 bits")?,
        workspace,
        name: row.text(2).map_err(failed)?,
        artifact_location: row.text(3).map_err(failed)?,
        stage,
        created: row.integer(5).map_err(failed)?,
        updated: row.integer(6).map_err(failed)?,
        tags: tags.remove(&id).unwrap_or_default(),
    })
}
