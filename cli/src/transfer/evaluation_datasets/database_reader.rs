//! Reads evaluation datasets from an MLflow database.

use std::collections::HashMap;

use evaluation::store::RecordFields;
use futures::stream::Stream;
use mlflow_api::json::JsonObject;
use mlflow_api::{Json, Workspace};

use super::{DatasetRecord, EvaluationDataset, KIND, RecordSum, record_id};
use crate::Failure;
use crate::transfer::database::{Row, SqlValue};
use crate::transfer::import::{IdKind, ImportContext, ImportScope};
use crate::transfer::source::{Source, placeholders};

/// Number of datasets per batch.
const BATCH: usize = 100;
/// Key under which MLflow wraps the outputs of a record in an object.
pub(super) const WRAPPED_OUTPUT: &str = "mlflow_wrapped";

/// Reads the next batch of datasets in the import's scope, ordered by id, starting after an id. The
/// records are not read. Returns an empty list at the end. Takes three queries.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn next_datasets(context: &ImportContext, after: &str) -> Result<Vec<EvaluationDataset>, Failure> {
    let source = &context.source;
    if !source.has_table("evaluation_datasets") {
        return Ok(Vec::new());
    }
    let workspace = source.column("evaluation_datasets", "workspace");
    let mut arguments = vec![SqlValue::from(after)];
    let condition = match &context.scope {
        ImportScope::Experiment(_) => return Ok(Vec::new()),
        ImportScope::Workspace(name) => {
            arguments.push(name.as_str().into());
            format!("AND COALESCE({workspace}, 'default') = ?")
        }
        ImportScope::All => String::new(),
    };
    let sql = format!(
        "SELECT dataset_id, {workspace}, name, \"schema\", profile, digest, created_time, last_update_time, created_by, \
         last_updated_by FROM evaluation_datasets WHERE dataset_id > ? {condition} ORDER BY dataset_id LIMIT {BATCH}"
    );
    let mut datasets = Vec::new();
    for row in source.rows(&sql, arguments).await? {
        datasets.push(dataset(&row)?);
    }
    if !datasets.is_empty() {
        read_tags_and_experiments(context, &mut datasets).await?;
    }
    Ok(datasets)
}

fn dataset(row: &Row) -> Result<EvaluationDataset, Failure> {
    let workspace = match row.optional_text(1)? {
        Some(name) => Workspace::parse(&name).map_err(|error| error.message)?,
        None => Workspace::default(),
    };
    Ok(EvaluationDataset {
        id: row.text(0)?,
        workspace,
        name: row.text(2)?,
        schema: row.optional_text(3)?,
        // The number of records is set after the records have been read.
        profile: row.optional_text(4)?.map(|_| 0),
        digest: row.text(5)?,
        created: row.integer(6)?,
        updated: row.integer(7)?,
        created_by: row.optional_text(8)?,
        updated_by: row.optional_text(9)?,
        tags: Vec::new(),
        experiments: Vec::new(),
        records: RecordSum::default(),
    })
}

async fn read_tags_and_experiments(context: &ImportContext, datasets: &mut [EvaluationDataset]) -> Result<(), Failure> {
    let source = &context.source;
    let ids: Vec<_> = datasets.iter().map(|dataset| SqlValue::from(dataset.id.as_str())).collect();
    let list = placeholders(ids.len());
    let mut by_id: HashMap<String, &mut EvaluationDataset> =
        datasets.iter_mut().map(|dataset| (dataset.id.clone(), dataset)).collect();
    let sql = format!("SELECT dataset_id, \"key\", value FROM evaluation_dataset_tags WHERE dataset_id IN {list}");
    for row in source.rows(&sql, ids.clone()).await? {
        let (Some(dataset), key) = (by_id.get_mut(&row.text(0)?), row.text(1)?) else { continue };
        match row.optional_text(2)? {
            Some(value) => dataset.tags.push((key, value)),
            None => context.report.omitted(KIND, &format!("tag {key} of {}", dataset.id), "because its value is null"),
        }
    }
    let sql = format!(
        "SELECT source_id, destination_id, created_time FROM entity_associations WHERE source_type = 'evaluation_dataset' \
         AND destination_type = 'experiment' AND source_id IN {list}"
    );
    for row in source.rows(&sql, ids).await? {
        if let Some(dataset) = by_id.get_mut(&row.text(0)?) {
            let experiment = context.remapped.resolve(IdKind::Experiment, &row.text(1)?);
            dataset.experiments.push((row.integer(2)?, experiment));
        }
    }
    for dataset in by_id.into_values() {
        dataset.tags.sort_unstable();
        dataset.experiments.sort_unstable();
    }
    Ok(())
}

/// Streams the rows of a dataset's records in no particular order. Other queries are blocked until
/// the stream ends.
pub(super) fn records(source: &Source, dataset: &str) -> impl Stream<Item = Result<Vec<Row>, Failure>> + use<> {
    let columns = [
        "dataset_record_id",
        "inputs",
        "outputs",
        "expectations",
        "tags",
        "source",
        "source_id",
        "created_time",
        "last_update_time",
        "created_by",
        "last_updated_by",
    ];
    let columns = source.columns("evaluation_dataset_records", &columns);
    let sql = format!("SELECT {columns} FROM evaluation_dataset_records WHERE dataset_id = ?");
    source.stream(sql, vec![dataset.into()])
}

/// A record of a dataset in the source, or the reason why this server cannot store it.
pub(super) struct ReadRecord {
    /// Id of the record in the source.
    pub(super) source_id: String,
    /// The record, with its inputs.
    pub(super) record: Result<(DatasetRecord, JsonObject), &'static str>,
}

/// Reads a record from its row.
///
/// # Errors
/// A column has an unexpected type.
pub(super) fn record(row: &Row) -> Result<ReadRecord, Failure> {
    let source_id = row.text(0)?;
    let created = row.integer(7)?;
    let record = match fields(row)? {
        Ok(fields) => {
            let inputs = fields.inputs.clone();
            let record = DatasetRecord {
                id: record_id(&source_id, created).to_string(),
                content: fields.content(),
                created,
                updated: row.integer(8)?,
                created_by: row.optional_text(9)?,
                updated_by: row.optional_text(10)?,
            };
            if (0..1 << 48).contains(&created) { Ok((record, inputs)) } else { Err("because its time is not valid") }
        }
        Err(reason) => Err(reason),
    };
    Ok(ReadRecord { source_id, record })
}

fn fields(row: &Row) -> Result<Result<RecordFields, &'static str>, Failure> {
    let mut columns = Vec::new();
    for column in 1..=5 {
        // MLflow stores a missing value either as an SQL `NULL` or as the JSON text `null`.
        match row.optional_text(column)?.map(|text| Json::parse(&text)) {
            None | Some(Some(Json::Null)) => columns.push(None),
            Some(Some(json)) => columns.push(Some(json)),
            Some(None) => return Ok(Err("because it is not valid JSON")),
        }
    }
    let source_id = row.optional_text(6)?.filter(|id| !id.is_empty());
    let mut columns = columns.into_iter();
    let mut next = || columns.next().flatten();
    let (inputs, outputs, expectations, tags, source) = (next(), next(), next(), next(), next());
    let outputs = match outputs {
        Some(Json::Object(mut wrapped)) => wrapped.remove(WRAPPED_OUTPUT).filter(|output| *output != Json::Null),
        _ => None,
    };
    let object = |json: Option<Json>| match json {
        None => Ok(None),
        Some(Json::Object(object)) => Ok(Some(object)),
        Some(_) => Err("because one of its fields is not an object"),
    };
    let (expectations, tags, source) = match (object(expectations), object(tags), object(source)) {
        (Ok(expectations), Ok(tags), Ok(source)) => (expectations, tags, source.filter(|source| !source.is_empty())),
        _ => return Ok(Err("because one of its fields is not an object")),
    };
    let Some(Json::Object(inputs)) = inputs else { return Ok(Err("because it has no inputs")) };
    let source_type = source.as_ref().and_then(|source| source.get("source_type")).map(Json::to_text);
    Ok(Ok(RecordFields {
        inputs,
        outputs,
        expectations,
        tags: tags.unwrap_or_default(),
        source_id: source_id.or_else(|| source.as_ref().and_then(id_in_source)),
        source_type,
        source,
    }))
}

/// Returns the id from the JSON of a record's source, for records whose id column is empty.
fn id_in_source(source: &JsonObject) -> Option<String> {
    let field = if source.get("source_type") == Some(&"TRACE".into()) { "trace_id" } else { "source_id" };
    match source.get("source_data")?.object()?.get(field)? {
        Json::Null => None,
        id => Some(id.to_text()),
    }
}
