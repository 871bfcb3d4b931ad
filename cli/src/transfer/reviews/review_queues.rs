//! Imports, verifies and exports review queues and their items.

use std::collections::{BTreeMap, HashSet};

use entities::attributes::{IMPORTED, QUEUE};
use entities::listing;
use evaluation::store::{
    ReviewItemState, review_item, review_item_of, review_queue_item, review_queue_key, review_queue_name_key,
    review_queue_name_row, review_queue_of, reviewed_trace, unreviewed_trace,
};
use futures::stream::TryStreamExt;
use key_schema::rows;
use mlflow_api::label_schemas::LabelSchema;
use mlflow_api::review_queues::{NewReviewQueue, ReviewQueue, ReviewQueueType, ReviewStatus, normalized_user};
use mlflow_api::{ExperimentId, LabelSchemaId, ReviewQueueId, TraceId};
use rusqlite::params;
use serde::Serialize;
use table::{Condition, Item, Query, Table, Write, text};

use super::ids::{self, NAME_SUFFIX};
use super::{SchemaIds, label_schemas};
use crate::Failure;
use crate::transfer::database::SqlValue;
use crate::transfer::experiments::{ExportedExperiment, ImportedExperiment};
use crate::transfer::export::ExportContext;
use crate::transfer::import::{IdKind, ImportContext, fingerprint, is_to_be_written, report_written, verify_entity};

/// Name of this kind of entity in reports.
const KIND: &str = "review queues";
/// Maximum number of items that one transaction writes. Each item takes two of the 100 writes of a
/// transaction.
const ITEMS_IN_TRANSACTION: usize = 50;

/// A review queue of an MLflow database.
#[derive(Clone, Debug, Serialize)]
struct QueueRecord {
    name: String,
    kind: &'static str,
    owner: Option<String>,
    /// Users, in lower case and sorted.
    users: Vec<String>,
    /// The ids of the queue's label schemas in the table, sorted.
    schemas: Vec<String>,
    created: i64,
    updated: i64,
    /// Items, by the id of their trace.
    items: BTreeMap<String, ItemRecord>,
}

/// A trace in a queue.
#[derive(Clone, Debug, Serialize)]
struct ItemRecord {
    status: &'static str,
    completed_by: Option<String>,
    completed: Option<i64>,
    created: i64,
    updated: i64,
}

impl ItemRecord {
    fn item(&self, queue: &ReviewQueueId, trace: &TraceId) -> Item {
        let state = ReviewItemState {
            status: ReviewStatus::from_name(self.status).unwrap_or(ReviewStatus::Pending),
            completed_by: self.completed_by.as_deref(),
            completed: self.completed,
            created: self.created,
            updated: self.updated,
        };
        review_item(queue, trace, &state)
    }
}

/// A review queue with its id in the table, and the document that the table already has for this
/// id.
struct PlannedQueue {
    id: ReviewQueueId,
    record: QueueRecord,
    document: Option<Item>,
}

/// Reads the review queues of an experiment with their items, and determines their ids in the
/// table. If `reports` is set, reports queues and items that cannot be imported. Takes four
/// queries. For each queue, it also takes the requests of [`plan`], and one per 100 items.
async fn planned(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    schemas: &SchemaIds,
    reports: bool,
) -> Result<Vec<PlannedQueue>, Failure> {
    let source = &context.source;
    if !source.has_table("review_queues") {
        return Ok(Vec::new());
    }
    let number = vec![SqlValue::Integer(i64::try_from(experiment.source_id.number())?)];
    let mut queues: BTreeMap<String, QueueRecord> = BTreeMap::new();
    let sql = "SELECT queue_id, name, queue_type, created_by, creation_time_ms, last_update_time_ms FROM review_queues \
               WHERE experiment_id = ?";
    for row in source.rows(sql, number.clone()).await? {
        let id = row.text(0)?;
        let Some(kind) = ReviewQueueType::from_name(&row.text(2)?.to_ascii_uppercase()) else {
            if reports {
                context.report.omitted(KIND, &id, "because its type is unknown");
            }
            continue;
        };
        let record = QueueRecord {
            name: row.text(1)?,
            kind: kind.name(),
            owner: row.optional_text(3)?,
            users: Vec::new(),
            schemas: Vec::new(),
            created: row.integer(4)?,
            updated: row.integer(5)?,
            items: BTreeMap::new(),
        };
        queues.insert(id, record);
    }
    if queues.is_empty() {
        return Ok(Vec::new());
    }
    let of = "queue_id IN (SELECT queue_id FROM review_queues WHERE experiment_id = ?)";
    let sql = format!("SELECT queue_id, user_id FROM review_queue_users WHERE {of}");
    for row in source.rows(&sql, number.clone()).await? {
        if let Some(queue) = queues.get_mut(&row.text(0)?) {
            queue.users.push(normalized_user(&row.text(1)?));
        }
    }
    let sql = format!("SELECT queue_id, schema_id FROM review_queue_label_schemas WHERE {of}");
    for row in source.rows(&sql, number.clone()).await? {
        if let Some(queue) = queues.get_mut(&row.text(0)?) {
            // A queue keeps the ids of deleted label schemas, on this server as in MLflow.
            let id = row.text(1)?;
            queue.schemas.push(schemas.get(&id).cloned().unwrap_or(id));
        }
    }
    let sql = format!(
        "SELECT queue_id, item_id, status, completed_by, completed_time_ms, creation_time_ms, last_update_time_ms FROM \
         review_queue_items WHERE {of}"
    );
    for row in source.rows(&sql, number).await? {
        let Some(queue) = queues.get_mut(&row.text(0)?) else { continue };
        let trace = context.remapped.resolve(IdKind::Trace, &row.text(1)?);
        let status = ReviewStatus::from_name(&row.text(2)?.to_ascii_uppercase()).unwrap_or(ReviewStatus::Pending);
        let record = ItemRecord {
            status: status.name(),
            completed_by: row.optional_text(3)?,
            completed: row.optional_integer(4)?,
            created: row.integer(5)?,
            updated: row.integer(6)?,
        };
        queue.items.insert(trace, record);
    }
    let mut planned = Vec::with_capacity(queues.len());
    for (source_id, mut record) in queues {
        record.users.sort_unstable();
        record.users.dedup();
        record.schemas.sort_unstable();
        record.schemas.dedup();
        omit_missing_traces(context, &mut record, reports).await?;
        planned.push(plan(context, experiment.id, &source_id, record).await?);
    }
    Ok(planned)
}

/// Removes items whose trace was not imported. Takes one request per 100 items. In a dry run, takes
/// no request and keeps all items, because no trace is imported.
async fn omit_missing_traces(context: &ImportContext, record: &mut QueueRecord, reports: bool) -> Result<(), Failure> {
    let mut kept: HashSet<String> = HashSet::new();
    let traces: Vec<_> = record.items.keys().filter_map(|id| TraceId::parse(id)).collect();
    if context.writer.is_dry_run() {
        kept.extend(traces.iter().map(ToString::to_string));
    } else {
        let keys: Vec<_> = traces.iter().map(rows::Trace::key).collect();
        let found = context.table.get_many(&keys).await;
        let found = found.map_err(|failure| format!("cannot read the traces of review queues: {failure:?}"))?;
        let is_there = |(_, key): &(&TraceId, &key_schema::Key)| found.contains_key(*key);
        kept.extend(traces.iter().zip(&keys).filter(is_there).map(|(trace, _)| trace.to_string()));
    }
    let missing = record.items.keys().filter(|id| !kept.contains(*id));
    if reports {
        for id in missing {
            context.report.omitted("items of review queues", id, "because their trace was not imported");
        }
    }
    record.items.retain(|id, _| kept.contains(id));
    Ok(())
}

/// Determines the id and the name of a queue in the table. If a client has created a queue with
/// this id or name, `--remap` changes both. Takes two requests, or four if the id or the name is
/// taken.
async fn plan(
    context: &ImportContext,
    experiment: ExperimentId,
    source_id: &str,
    mut record: QueueRecord,
) -> Result<PlannedQueue, Failure> {
    for is_taken in [false, true] {
        let id = ids::review_queue(experiment, source_id, record.created, is_taken);
        if is_taken {
            record.name.push_str(NAME_SUFFIX);
        }
        let failed = |failure: table::Failure| format!("cannot read review queues: {failure:?}");
        let claim = context.table.get(&review_queue_name_key(experiment, &record.name)).await.map_err(failed)?;
        let document = context.table.get(&review_queue_key(&id)).await.map_err(failed)?;
        let is_its = claim.is_none_or(|claim| claim.get(QUEUE) == Some(id.as_str()));
        if is_its && document.as_ref().is_none_or(|document| document.has(IMPORTED)) {
            return Ok(PlannedQueue { id, record, document });
        }
        if !context.remap {
            return Err(format!(
                "review queue {} cannot be imported: its name is taken. --remap imports it with another name",
                record.name
            )
            .into());
        }
    }
    Err(format!("review queue {} cannot be imported: its new name is taken too", record.name).into())
}

/// Reads a queue and its items from the table, given its document. Takes one request per MB of
/// items.
async fn read(table: &Table, document: &Item) -> Result<(ReviewQueue, QueueRecord), Failure> {
    let queue = review_queue_of(document).map_err(|error| error.message)?;
    let id = ReviewQueueId::parse(&queue.queue_id).ok_or("a review queue has no id")?;
    let items = table.query(Query::of(rows::ReviewItem::all(&id))).await;
    let mut record = QueueRecord {
        name: queue.name.clone(),
        kind: queue.queue_type.name(),
        owner: queue.created_by.clone(),
        users: queue.users.clone(),
        schemas: queue.schema_ids.clone(),
        created: queue.creation_time_ms,
        updated: queue.last_update_time_ms,
        items: BTreeMap::new(),
    };
    for item in items.map_err(|failure| format!("cannot read items of review queues: {failure:?}"))? {
        let item = review_item_of(&item).map_err(|error| error.message)?;
        let read = ItemRecord {
            status: item.status.name(),
            completed_by: item.completed_by,
            completed: item.completed_time_ms,
            created: item.creation_time_ms,
            updated: item.last_update_time_ms,
        };
        record.items.insert(item.item_id, read);
    }
    Ok((queue, record))
}

/// Computes the fingerprint of a queue from its items in the table.
async fn here(table: &Table, document: Option<&Item>) -> Result<String, Failure> {
    fingerprint(&read(table, document.ok_or("a review queue is missing")?).await?.1)
}

pub(super) async fn import(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    schemas: &SchemaIds,
) -> Result<(), Failure> {
    for PlannedQueue { id, record, document } in planned(context, experiment, schemas, true).await? {
        let (name, document) = ((KIND, record.name.as_str()), document.as_ref());
        let here = Box::pin(here(&context.table, document));
        if is_to_be_written(context, name, &fingerprint(&record)?, document, here).await? {
            write(context, &id, &record, document).await?;
            report_written(context, KIND, document);
        }
    }
    Ok(())
}

/// Writes a queue: first its items, and then its document together with the row that claims its
/// name. If the queue was imported before, also deletes its former name if it was renamed, and the
/// items that it no longer has.
async fn write(
    context: &ImportContext,
    id: &ReviewQueueId,
    record: &QueueRecord,
    document: Option<&Item>,
) -> Result<(), Failure> {
    let failed = |failure: table::Failure| format!("cannot write review queue {}: {failure:?}", record.name);
    let mut stale: Vec<TraceId> = Vec::new();
    let mut replaced_name = None;
    if let Some(document) = document {
        let (queue, replaced) = read(&context.table, document).await?;
        let gone = replaced.items.keys().filter(|trace| !record.items.contains_key(*trace));
        stale.extend(gone.filter_map(|trace| TraceId::parse(trace)));
        replaced_name = Some(queue.name).filter(|name| name.to_lowercase() != record.name.to_lowercase());
    }
    let items: Vec<_> = record.items.iter().filter_map(|(trace, item)| Some((TraceId::parse(trace)?, item))).collect();
    for items in items.chunks(ITEMS_IN_TRANSACTION) {
        let mut writes = Vec::with_capacity(items.len() * 2);
        for (trace, item) in items {
            writes.push(Write::Put(item.item(id, trace), Condition::Always));
            writes.push(Write::Update(reviewed_trace(id, trace)));
        }
        context.writer.transact(&writes).await.map_err(failed)?;
    }
    let new = NewReviewQueue {
        kind: ReviewQueueType::from_name(record.kind).ok_or("a review queue has no type")?,
        name: record.name.clone(),
        users: record.users.clone(),
        schema_ids: record.schemas.clone(),
    };
    let item = review_queue_item(id, &new, record.owner.as_deref(), record.updated);
    let mut writes = vec![
        Write::Put(review_queue_name_row(id, &record.name), Condition::Always),
        Write::Put(item.with(IMPORTED, text(fingerprint(record)?)), Condition::Always),
    ];
    let replaced_name = replaced_name.map(|name| review_queue_name_key(id.experiment(), &name));
    writes.extend(replaced_name.map(|key| Write::Delete(key, Condition::Always)));
    context.writer.transact(&writes).await.map_err(failed)?;
    for traces in stale.chunks(ITEMS_IN_TRANSACTION) {
        let mut writes = Vec::with_capacity(traces.len() * 2);
        for trace in traces {
            writes.push(Write::Delete(rows::ReviewItem::key(id, trace), Condition::Always));
            writes.push(Write::Update(unreviewed_trace(id, trace)));
        }
        context.writer.transact(&writes).await.map_err(failed)?;
    }
    Ok(())
}

pub(super) async fn verify(
    context: &ImportContext,
    experiment: &ImportedExperiment,
    schemas: &SchemaIds,
) -> Result<(), Failure> {
    for PlannedQueue { record, document, .. } in planned(context, experiment, schemas, false).await? {
        let (name, document) = ((KIND, record.name.as_str()), document.as_ref());
        let here = Box::pin(here(&context.table, document));
        verify_entity(context, name, &fingerprint(&record)?, document, here).await?;
    }
    Ok(())
}

pub(super) async fn export(context: &ExportContext, experiment: &ExportedExperiment) -> Result<(), Failure> {
    let id = experiment.record.id;
    let number = i64::try_from(id.number())?;
    let default = LabelSchemaId::default_of(id).to_string();
    let mut has_default = false;
    let mut pages = std::pin::pin!(listing::pages(&context.table, Query::of(rows::ReviewQueue::all(&id))));
    while let Some(page) =
        pages.try_next().await.map_err(|failure| format!("cannot read review queues: {failure:?}"))?
    {
        for item in page {
            let (queue, record) = read(&context.table, &item).await?;
            context.insert(
                "INSERT INTO review_queues (queue_id, experiment_id, name, queue_type, created_by, creation_time_ms, \
                 last_update_time_ms, name_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                params![
                    queue.queue_id,
                    number,
                    record.name,
                    record.kind.to_ascii_lowercase(),
                    record.owner,
                    record.created,
                    record.updated,
                    record.name.to_lowercase(),
                ],
            )?;
            for user in &record.users {
                let sql = "INSERT INTO review_queue_users (queue_id, user_id) VALUES (?, ?)";
                context.insert(sql, params![queue.queue_id, user])?;
            }
            for schema in &record.schemas {
                if *schema == default && !std::mem::replace(&mut has_default, true) {
                    // This server does not store the default label schema, but MLflow does.
                    label_schemas::insert(context, &LabelSchema::default_of(id))?;
                }
                let sql = "INSERT INTO review_queue_label_schemas (queue_id, schema_id) VALUES (?, ?)";
                context.insert(sql, params![queue.queue_id, schema])?;
            }
            for (trace, item) in &record.items {
                context.insert(
                    "INSERT INTO review_queue_items (queue_id, item_type, item_id, status, completed_by, \
                     completed_time_ms, creation_time_ms, last_update_time_ms) VALUES (?, 'trace', ?, ?, ?, ?, ?, ?)",
                    params![
                        queue.queue_id,
                        trace,
                        item.status.to_ascii_lowercase(),
                        item.completed_by,
                        item.completed,
                        item.created,
                        item.updated,
                    ],
                )?;
            }
        }
    }
    Ok(())
}
