//! Reads evaluation datasets from the table.

use entities::attributes::{
    CREATED, CREATED_BY, DIGEST, NAME, RECORDS, SCHEMA_VERSION, TAG_ROWS, TAGS, UPDATED, UPDATED_BY, WORKSPACE,
};
use entities::documents::content;
use entities::{entries, listing, workspace_named};
use evaluation::store::{dataset_part_key, experiments_with_times};
use futures::stream::{Stream, TryStreamExt};
use key_schema::rows;
use mlflow_api::EvaluationDatasetId;
use table::{Item, Query, Table};

use super::{DatasetRecord, EvaluationDataset, RecordSum};
use crate::Failure;

/// Returns a dataset, given its document. Takes one request per MB of records, one more if the
/// dataset has tags in rows, and one more if its schema is large.
///
/// # Errors
/// The table or the dataset cannot be read.
pub(super) async fn dataset(
    table: &Table,
    id: &EvaluationDatasetId,
    document: &Item,
) -> Result<EvaluationDataset, Failure> {
    let mut dataset = without_records(table, id, document).await?;
    let mut pages = std::pin::pin!(records(table, id));
    while let Some(page) = pages.try_next().await? {
        for record in page {
            dataset.records.add(&record)?;
        }
    }
    Ok(dataset)
}

/// Returns a dataset without its records.
///
/// # Errors
/// The table or the dataset cannot be read.
pub(super) async fn without_records(
    table: &Table,
    id: &EvaluationDatasetId,
    document: &Item,
) -> Result<EvaluationDataset, Failure> {
    let rows = if document.has(TAG_ROWS) {
        let rows = table.query(Query::of(rows::EvaluationDatasetTag::all(id))).await;
        rows.map_err(|failure| unreadable(id, &format!("{failure:?}")))?
    } else {
        Vec::new()
    };
    let schema = if document.has(SCHEMA_VERSION) {
        let schema = content::read(table, document, dataset_part_key(id)).await;
        schema.map_err(|error| unreadable(id, &error.message))?
    } else {
        None
    };
    Ok(EvaluationDataset {
        id: id.to_string(),
        workspace: workspace_named(document.get(WORKSPACE)).map_err(|error| error.message)?,
        name: document.get(NAME).unwrap_or_default().to_owned(),
        schema,
        profile: document.get(RECORDS),
        digest: document.get(DIGEST).unwrap_or_default().to_owned(),
        created: document.get(CREATED).unwrap_or_else(|| id.created()),
        updated: document.get(UPDATED).unwrap_or_default(),
        created_by: document.get(CREATED_BY).map(str::to_owned),
        updated_by: document.get(UPDATED_BY).map(str::to_owned),
        tags: entries(document, TAGS, &rows).map_err(|error| error.message)?,
        experiments: experiments_with_times(document),
        records: RecordSum::default(),
    })
}

/// Returns the records of a dataset in pages, in order. Takes one request per MB of records, and
/// one per large record.
pub(super) fn records<'a>(
    table: &'a Table,
    id: &'a EvaluationDatasetId,
) -> impl Stream<Item = Result<Vec<DatasetRecord>, Failure>> + 'a {
    listing::pages(table, Query::of(rows::EvaluationRecord::all(id)))
        .map_err(|failure| unreadable(id, &format!("{failure:?}")))
        .and_then(async |items| {
            let mut records = Vec::new();
            for item in items {
                let Some(row) = item.key().and_then(|key| rows::EvaluationRecord::parse(&key)) else { continue };
                let found = content::read_with_item(table, item, dataset_part_key(id)).await;
                // A record that was deleted in the meantime is left out.
                let Some((item, content)) = found.map_err(|error| unreadable(id, &error.message))? else { continue };
                records.push(DatasetRecord {
                    id: row.record.to_string(),
                    content,
                    created: row.record.created(),
                    updated: item.get(UPDATED).unwrap_or_default(),
                    created_by: item.get(CREATED_BY).map(str::to_owned),
                    updated_by: item.get(UPDATED_BY).map(str::to_owned),
                });
            }
            Ok(records)
        })
}

fn unreadable(id: &EvaluationDatasetId, why: &str) -> Failure {
    format!("cannot read evaluation dataset {id}: {why}").into()
}
