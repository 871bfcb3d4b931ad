//! Exports evaluation datasets.

use std::fmt::Write;

use entities::listing;
use entities::workspaces::Workspaces;
use futures::stream::TryStreamExt;
use key_schema::{key_parts, rows};
use mlflow_api::json::JsonObject;
use mlflow_api::{EvaluationDatasetId, Json};
use rusqlite::params;
use sha2::{Digest, Sha256};
use table::Query;

use super::database_reader::WRAPPED_OUTPUT;
use super::{DatasetRecord, EvaluationDataset, table_reader};
use crate::Failure;
use crate::transfer::export::ExportContext;
use crate::transfer::import::replacement_digits_of;

/// Exports the evaluation datasets: all, or those of the experiment that is exported. Takes one
/// request per MB of lists, one per dataset, and one per MB of records.
///
/// # Errors
/// The table cannot be read, or the file cannot be written.
pub(crate) async fn export(context: &ExportContext) -> Result<(), Failure> {
    let lists: Vec<_> = if let Some(experiment) = context.experiment {
        vec![rows::ExperimentEvaluationDataset::all(&experiment.to_string().as_str().into()).range()]
    } else {
        let workspaces = Workspaces::new(context.table.clone()).names().await.map_err(|error| error.message)?;
        let list = |workspace: &mlflow_api::Workspace| {
            rows::WorkspaceEvaluationDataset::all(&workspace.as_str().into()).range()
        };
        workspaces.iter().map(list).collect()
    };
    for list in lists {
        let mut pages = std::pin::pin!(listing::pages(&context.table, Query::of(list)));
        loop {
            let page =
                pages.try_next().await.map_err(|failure| format!("cannot read a list of datasets: {failure:?}"))?;
            let Some(rows) = page else { break };
            for row in rows {
                if let Some(id) = row.key().and_then(|key| key_parts::listed_evaluation_dataset(&key.sk)) {
                    export_dataset(context, &id).await?;
                }
            }
        }
    }
    Ok(())
}

async fn export_dataset(context: &ExportContext, id: &EvaluationDatasetId) -> Result<(), Failure> {
    let document = context.table.get(&rows::EvaluationDataset::key(id)).await;
    let document = document.map_err(|failure| format!("cannot read evaluation dataset {id}: {failure:?}"))?;
    // Lists may have rows of datasets that were not created, or have been deleted.
    let Some(document) = document else { return Ok(()) };
    let dataset = table_reader::without_records(&context.table, id, &document).await?;
    insert_dataset(context, &dataset)?;
    let mut pages = std::pin::pin!(table_reader::records(&context.table, id));
    while let Some(records) = pages.try_next().await? {
        for record in records {
            insert_record(context, id, &record)?;
        }
    }
    Ok(())
}

fn insert_dataset(context: &ExportContext, dataset: &EvaluationDataset) -> Result<(), Failure> {
    let profile = dataset.profile.map(|records| match records {
        0 => "null".to_owned(),
        records => format!("{{\"num_records\": {records}}}"),
    });
    context.insert(
        "INSERT INTO evaluation_datasets (dataset_id, workspace, name, schema, profile, digest, created_time, \
         last_update_time, created_by, last_updated_by) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            dataset.id,
            dataset.workspace.as_str(),
            dataset.name,
            dataset.schema,
            profile,
            dataset.digest,
            dataset.created,
            dataset.updated,
            dataset.created_by,
            dataset.updated_by,
        ],
    )?;
    for (key, value) in &dataset.tags {
        context.insert(
            "INSERT INTO evaluation_dataset_tags (dataset_id, key, value) VALUES (?, ?, ?)",
            params![dataset.id, key, value],
        )?;
    }
    for (added, experiment) in &dataset.experiments {
        // The id depends only on the dataset and the experiment, so that two exports of the same
        // table are equal.
        let association = format!("a-{}", replacement_digits_of(&[&dataset.id, experiment]));
        context.insert(
            "INSERT INTO entity_associations (association_id, source_type, source_id, destination_type, destination_id, \
             created_time) VALUES (?, 'evaluation_dataset', ?, 'experiment', ?, ?)",
            params![association, dataset.id, experiment, added],
        )?;
    }
    Ok(())
}

fn insert_record(context: &ExportContext, id: &EvaluationDatasetId, record: &DatasetRecord) -> Result<(), Failure> {
    let Some(Json::Object(fields)) = Json::parse(&record.content) else {
        return Err(format!("record {} of dataset {id} is no JSON object", record.id).into());
    };
    let object = |field: &str| fields.get(field).map(Json::print);
    let plain = |field: &str| fields.get(field).map(Json::to_text);
    let wrapped = |output: &Json| {
        let entry = (WRAPPED_OUTPUT.to_owned(), output.clone());
        Json::Object([entry].into_iter().collect::<JsonObject>()).print()
    };
    let inputs = fields.get("inputs").map(Json::print_sorted).unwrap_or_default();
    let hash = Sha256::digest(inputs).iter().fold(String::new(), |mut digits, byte| {
        // The result is ignored because writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    });
    context.insert(
        "INSERT INTO evaluation_dataset_records (dataset_record_id, dataset_id, inputs, outputs, expectations, tags, \
         source, source_id, source_type, created_time, last_update_time, created_by, last_updated_by, input_hash) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            record.id,
            id.as_str(),
            object("inputs"),
            fields.get("outputs").map(wrapped),
            object("expectations"),
            object("tags"),
            object("source"),
            plain("source_id"),
            plain("source_type"),
            record.created,
            record.updated,
            record.created_by,
            record.updated_by,
            hash,
        ],
    )
}
