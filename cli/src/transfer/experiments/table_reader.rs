//! Reads experiments from the table.

use entities::attributes::{CREATED, LOCATION, NAME, STAGE, TAG_ROWS, TAGS, UPDATED, WORKSPACE};
use entities::{entries, workspace_named};
use key_schema::rows;
use mlflow_api::ExperimentId;
use table::{Item, Query, Table};

use super::ExperimentRecord;
use crate::Failure;

/// Returns the record of an experiment, given its document. Takes one request if it has tags in
/// rows.
///
/// # Errors
/// The table or the document cannot be read.
pub(super) async fn record(table: &Table, id: ExperimentId, document: &Item) -> Result<ExperimentRecord, Failure> {
    let rows = if document.has(TAG_ROWS) {
        let rows = table.query(Query::of(rows::ExperimentTag::all(&id))).await;
        rows.map_err(|failure| format!("cannot read the tags of experiment {id}: {failure:?}"))?
    } else {
        Vec::new()
    };
    Ok(ExperimentRecord {
        id,
        workspace: workspace_named(document.get(WORKSPACE)).map_err(|error| error.message)?,
        name: document.get(NAME).unwrap_or_default().to_owned(),
        artifact_location: document.get(LOCATION).unwrap_or_default().to_owned(),
        stage: document.get(STAGE).unwrap_or_default(),
        created: document.get(CREATED).unwrap_or_default(),
        updated: document.get(UPDATED).unwrap_or_default(),
        tags: entries(document, TAGS, &rows).map_err(|error| error.message)?,
    })
}
