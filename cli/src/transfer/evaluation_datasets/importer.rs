//! Imports evaluation datasets.

use std::collections::HashSet;

use entities::attributes::{IMPORTED, RECORDS, SCHEMA_VERSION};
use entities::documents::content;
use evaluation::store::{DatasetItems, StoredDataset, StoredRecord, dataset_part_key, inputs_hash};
use futures::stream::StreamExt;
use key_schema::{Key, rows};
use mlflow_api::{DatasetRecordId, EvaluationDatasetId};
use table::{Item, number, text};

use super::database_reader::{self, ReadRecord};
use super::{DatasetRecord, EvaluationDataset, KIND, RECORD_KIND, RecordSum, stale_items, table_reader};
use crate::Failure;
use crate::transfer::import::{
    IdKind, ImportContext, ImportDecision, ORIGINAL_ID_TAG, fingerprint, replacement_digits,
};

/// Imports the evaluation datasets.
///
/// # Errors
/// The source cannot be read, the table cannot be read or written, or the id of a dataset is taken
/// and `--remap` is not given.
pub(crate) async fn import(context: &ImportContext) -> Result<(), Failure> {
    let mut after = String::new();
    loop {
        let datasets = database_reader::next_datasets(context, &after).await?;
        let Some(last) = datasets.last() else { return Ok(()) };
        after.clone_from(&last.id);
        for dataset in datasets {
            import_dataset(context, dataset).await?;
        }
    }
}

/// Imports a dataset. Takes one request to decide what to do, at least two write units per record,
/// and the write units of the document. A dataset that the table already has is also read.
async fn import_dataset(context: &ImportContext, mut dataset: EvaluationDataset) -> Result<(), Failure> {
    let source_id = dataset.id.clone();
    let Some(mut id) = valid_id(context, &dataset) else { return Ok(()) };
    let mut document = document(context, &id).await?;
    if document.as_ref().is_some_and(|document| !document.has(IMPORTED)) {
        if !context.remap {
            return Err(format!(
                "evaluation dataset {id} cannot be imported: its id is taken. --remap imports it with another id"
            )
            .into());
        }
        id = remapped(context, &mut dataset)?;
        document = self::document(context, &id).await?;
    }
    if let Some(document) = &document {
        sum_records(context, &source_id, &mut dataset, true).await?;
        match ImportDecision::of(Some(document), &fingerprint(&dataset)?) {
            ImportDecision::Unchanged => {
                context.report.unchanged(KIND, 1);
                return Ok(());
            }
            ImportDecision::Taken => {
                return Err(
                    format!("evaluation dataset {source_id} cannot be imported: its new id is taken too").into()
                );
            }
            ImportDecision::Changed => {
                let here = table_reader::dataset(&context.table, &id, document).await?;
                if document.get(IMPORTED) != Some(fingerprint(&here)?.as_str()) {
                    context.report.changed_here(KIND, id.as_str());
                    return Ok(());
                }
            }
            ImportDecision::Create | ImportDecision::Interrupted => {}
        }
        context.writer.begin_replacement(document).await?;
    }
    let mut written = document.is_some().then(HashSet::new);
    let sum = write_records(context, &source_id, &id, document.is_none(), &mut written).await?;
    set_records(&mut dataset, sum);
    write_dataset(context, &id, &dataset, &mut written).await?;
    match (document, written) {
        (Some(replaced), Some(written)) => {
            stale_items::delete(context, &id, &replaced, &written).await?;
            context.report.updated(KIND, 1);
        }
        _ => context.report.imported(KIND, 1),
    }
    Ok(())
}

/// Returns the id of a dataset, or reports why the dataset cannot be imported.
fn valid_id(context: &ImportContext, dataset: &EvaluationDataset) -> Option<EvaluationDatasetId> {
    let id = EvaluationDatasetId::parse(&dataset.id);
    if id.is_none() {
        context.report.omitted(KIND, &dataset.id, "because its id is not valid");
    } else if entities::documents::check_sizes(&dataset.tags).is_err() {
        context.report.omitted(KIND, &dataset.id, "because a tag is larger than 380 KB");
        return None;
    }
    id
}

async fn document(context: &ImportContext, id: &EvaluationDatasetId) -> Result<Option<Item>, Failure> {
    let found = context.table.get(&rows::EvaluationDataset::key(id)).await;
    found.map_err(|failure| format!("cannot read evaluation dataset {id}: {failure:?}").into())
}

/// Gives a dataset another id, and records the old one in a tag.
fn remapped(context: &ImportContext, dataset: &mut EvaluationDataset) -> Result<EvaluationDatasetId, Failure> {
    let id = format!("d-{}", replacement_digits(IdKind::EvaluationDataset, &dataset.id));
    context.remapped.insert(IdKind::EvaluationDataset, &dataset.id, &id);
    dataset.tags.push((ORIGINAL_ID_TAG.to_owned(), std::mem::replace(&mut dataset.id, id.clone())));
    dataset.tags.sort_unstable();
    EvaluationDatasetId::parse(&id).ok_or_else(|| "no id was found for an evaluation dataset".into())
}

fn set_records(dataset: &mut EvaluationDataset, sum: RecordSum) {
    dataset.records = sum;
    let count = u32::try_from(sum.count()).unwrap_or(u32::MAX);
    dataset.profile = (count > 0 || dataset.profile.is_some()).then_some(count);
}

/// Sets the number and the sum of a dataset's records, as read from the source. Records that cannot
/// be imported are left out, and reported if `reports` is set.
async fn sum_records(
    context: &ImportContext,
    source_id: &str,
    dataset: &mut EvaluationDataset,
    reports: bool,
) -> Result<(), Failure> {
    let mut sum = RecordSum::default();
    let mut rows = std::pin::pin!(database_reader::records(&context.source, source_id));
    while let Some(batch) = rows.next().await {
        for row in batch? {
            let read = database_reader::record(&row)?;
            match &read.record {
                Ok((record, _)) => sum.add(record)?,
                Err(reason) if reports => omit(context, source_id, &read, reason),
                Err(_) => {}
            }
        }
    }
    set_records(dataset, sum);
    Ok(())
}

fn omit(context: &ImportContext, dataset: &str, read: &ReadRecord, reason: &str) {
    context.report.omitted(RECORD_KIND, &format!("{} of {dataset}", read.source_id), reason);
}

/// Writes the records of a dataset, and returns their number and sum. Adds the keys of the written
/// items to `written`, unless it is `None`. Reports records that cannot be imported, if `reports`
/// is set.
async fn write_records(
    context: &ImportContext,
    source_id: &str,
    id: &EvaluationDatasetId,
    reports: bool,
    written: &mut Option<HashSet<Key>>,
) -> Result<RecordSum, Failure> {
    let mut sum = RecordSum::default();
    let mut rows = std::pin::pin!(database_reader::records(&context.source, source_id));
    while let Some(batch) = rows.next().await {
        let (mut parts, mut items) = (Vec::new(), Vec::new());
        for row in batch? {
            let read = database_reader::record(&row)?;
            match &read.record {
                Ok((record, inputs)) => {
                    sum.add(record)?;
                    let (of_record, [item, claim]) = record_items(id, record, inputs_hash(inputs))?;
                    parts.extend(of_record);
                    items.extend([item, claim]);
                }
                Err(reason) if reports => omit(context, source_id, &read, reason),
                Err(_) => {}
            }
        }
        if let Some(written) = written {
            written.extend(parts.iter().chain(&items).filter_map(Item::key));
        }
        context.writer.put_all(parts).await?;
        context.writer.put_all(items).await?;
    }
    Ok(sum)
}

/// Returns the items of a record: its parts, and then its own item and the claim of its inputs.
fn record_items(
    dataset: &EvaluationDatasetId,
    record: &DatasetRecord,
    inputs: key_schema::WideDigest,
) -> Result<(Vec<Item>, [Item; 2]), Failure> {
    let id = DatasetRecordId::parse(&record.id).ok_or("the id of a record is not valid")?;
    // The owner is the same in each import, so a repeated import writes the same parts.
    let owner = format!("{id} imported");
    let packed = content::pack(&owner, &record.content, content::MAX_INLINE_BYTES, dataset_part_key(dataset));
    let (item, claim) = StoredRecord {
        dataset,
        id: &id,
        inputs,
        packed: &packed,
        updated: record.updated,
        created_by: record.created_by.as_deref(),
        updated_by: record.updated_by.as_deref(),
    }
    .items();
    Ok((packed.parts, [item, claim]))
}

/// Writes the items of a dataset that are not records. The document is written last.
async fn write_dataset(
    context: &ImportContext,
    id: &EvaluationDatasetId,
    dataset: &EvaluationDataset,
    written: &mut Option<HashSet<Key>>,
) -> Result<(), Failure> {
    let experiments: Vec<_> = dataset.experiments.iter().map(|(time, name)| (name.as_str(), *time)).collect();
    let stored = StoredDataset {
        id,
        workspace: &dataset.workspace,
        name: &dataset.name,
        digest: &dataset.digest,
        created: dataset.created,
        updated: dataset.updated,
        created_by: dataset.created_by.as_deref(),
        updated_by: dataset.updated_by.as_deref(),
        experiments: &experiments,
        tags: &dataset.tags,
    };
    let DatasetItems { mut document, tags, experiments: lists, workspace } = stored.items();
    let mut others = tags;
    others.extend(lists);
    others.push(workspace);
    if let Some(schema) = &dataset.schema {
        let packed = content::pack("schema imported", schema, content::MAX_INLINE_BYTES, dataset_part_key(id));
        document = packed.on(document).with(SCHEMA_VERSION, number(1));
        others.extend(packed.parts);
    }
    if let Some(count) = dataset.profile {
        document = document.with(RECORDS, number(count));
    }
    if let Some(written) = written {
        written.extend(others.iter().chain([&document]).filter_map(Item::key));
    }
    context.writer.put_all(others).await?;
    context.writer.put_all(vec![document.with(IMPORTED, text(fingerprint(dataset)?))]).await
}

/// Compares the imported evaluation datasets with the source, and reports differences. Takes one
/// request per dataset, and those that read its content.
///
/// # Errors
/// The source or the table cannot be read.
pub(crate) async fn verify(context: &ImportContext) -> Result<(), Failure> {
    let mut after = String::new();
    loop {
        let datasets = database_reader::next_datasets(context, &after).await?;
        let Some(last) = datasets.last() else { return Ok(()) };
        after.clone_from(&last.id);
        for mut dataset in datasets {
            let source_id = dataset.id.clone();
            if context.remapped.resolve(IdKind::EvaluationDataset, &source_id) != source_id {
                remapped(context, &mut dataset)?;
            }
            let Some(id) = EvaluationDatasetId::parse(&dataset.id) else { continue };
            let Some(document) = document(context, &id).await? else {
                if entities::documents::check_sizes(&dataset.tags).is_ok() {
                    context.report.different(KIND, &format!("{source_id} is missing"));
                }
                continue;
            };
            sum_records(context, &source_id, &mut dataset, false).await?;
            // If the hash differs, the dataset was changed in the table, and is in the report
            // already.
            if document.get(IMPORTED) == Some(fingerprint(&dataset)?.as_str())
                && table_reader::dataset(&context.table, &id, &document).await? != dataset
            {
                context.report.different(KIND, &source_id);
            }
        }
    }
}
