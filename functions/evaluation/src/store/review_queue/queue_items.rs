//! The items that store review queues, and the items that store traces in queues.

use access::Granted;
use entities::attributes::{
    Attribute, CHANGES, COMPLETED, COMPLETED_BY, CREATED, CREATED_BY, NAME, QUEUE, QUEUES, REVIEW_STATUS, SCHEMAS,
    TYPE, TextSet, UPDATED, USERS,
};
use entities::unreadable;
use key_schema::{Descending, Key, Name, index, rows};
use mlflow_api::review_queues::{
    NewReviewQueue, ReviewItemType, ReviewQueue, ReviewQueueItem, ReviewQueueType, ReviewStatus,
};
use mlflow_api::{Error, ErrorCode, ExperimentId, Result, ReviewQueueId, TraceId};
use table::{Item, Update, bytes_set, number, text};

/// Returns the key of a review queue.
#[must_use]
pub fn queue_key(queue: &ReviewQueueId) -> Key {
    rows::ReviewQueue::key(&queue.experiment(), &Descending(queue.created()), queue)
}

/// Returns the key of the row that claims a name. Names that differ only in case have the same key.
#[must_use]
pub fn name_key(experiment: ExperimentId, name: &str) -> Key {
    rows::ReviewQueueName::key(&experiment, &Name::from(name.to_lowercase().as_str()))
}

/// Creates the row that claims the name of a queue.
#[must_use]
pub fn name_row(queue: &ReviewQueueId, name: &str) -> Item {
    Item::new(name_key(queue.experiment(), name))
        .with(NAME, text(name.to_lowercase()))
        .with(QUEUE, text(queue.as_str()))
}

/// Returns MLflow's error for a name that another queue of the experiment has.
pub(super) fn taken(name: &str) -> Error {
    Error::new(
        ErrorCode::ResourceAlreadyExists,
        format!("Review queue with name '{name}' already exists (names are case-insensitive)."),
    )
}

/// Fails unless the queue is in this experiment, for which the request has been granted access.
pub(super) fn check_experiment(experiment: &Granted<ExperimentId>, queue: &ReviewQueueId) -> Result<()> {
    if queue.experiment() == **experiment { Ok(()) } else { Err(ReviewQueueId::not_found(queue.as_str())) }
}

/// Returns the elements of a set of texts, sorted.
fn texts(item: &Item, attribute: Attribute<TextSet>) -> Vec<String> {
    let elements = item.elements(attribute).iter();
    let mut texts: Vec<_> = elements.filter_map(|bytes| String::from_utf8(bytes.as_ref().to_vec()).ok()).collect();
    texts.sort_unstable();
    texts
}

/// Returns the stored form of a set of texts, or `None` if it is empty, because DynamoDB has no
/// empty sets.
pub(super) fn text_set(texts: &[String]) -> Option<table::Value> {
    (!texts.is_empty()).then(|| bytes_set(texts.iter().map(|text| text.clone().into_bytes())))
}

/// Creates the item of a queue. `updated` is the time of its last change, in ms.
#[must_use]
pub fn queue_item(queue: &ReviewQueueId, new: &NewReviewQueue, owner: Option<&str>, updated: i64) -> Item {
    let item = Item::new(queue_key(queue))
        .with(NAME, text(&new.name))
        .with(TYPE, text(new.kind.name()))
        .with(UPDATED, number(updated))
        .with(CHANGES, number(0));
    let item = owner.into_iter().fold(item, |item, owner| item.with(CREATED_BY, text(owner)));
    let item = text_set(&new.users).into_iter().fold(item, |item, users| item.with(USERS, users));
    text_set(&new.schema_ids).into_iter().fold(item, |item, schemas| item.with(SCHEMAS, schemas))
}

/// Reads a review queue from its item.
///
/// # Errors
/// Returns an internal error if the item is invalid.
pub fn queue_of(item: &Item) -> Result<ReviewQueue> {
    let unreadable = || unreadable(item, "a review queue");
    let queue = item.key().as_ref().and_then(rows::ReviewQueue::parse).ok_or_else(unreadable)?.queue;
    Ok(ReviewQueue {
        queue_id: queue.to_string(),
        experiment_id: queue.experiment().to_string(),
        name: item.get(NAME).unwrap_or_default().to_owned(),
        queue_type: item.get(TYPE).and_then(ReviewQueueType::from_name).ok_or_else(unreadable)?,
        created_by: item.get(CREATED_BY).map(str::to_owned),
        creation_time_ms: queue.created(),
        last_update_time_ms: item.get(UPDATED).unwrap_or_default(),
        users: texts(item, USERS),
        schema_ids: texts(item, SCHEMAS),
    })
}

/// The state of a trace's review in a queue.
#[derive(Clone, Debug)]
pub struct ReviewItemState<'a> {
    /// Status.
    pub status: ReviewStatus,
    /// The user who has set the status, in lower case.
    pub completed_by: Option<&'a str>,
    /// When the status was set, in ms.
    pub completed: Option<i64>,
    /// When the trace was added to the queue, in ms.
    pub created: i64,
    /// When the item was last changed, in ms.
    pub updated: i64,
}

/// Creates the item of a trace in a queue.
#[must_use]
pub fn review_item(queue: &ReviewQueueId, trace: &TraceId, state: &ReviewItemState<'_>) -> Item {
    let item = Item::new(rows::ReviewItem::key(queue, trace))
        .with(REVIEW_STATUS, text(state.status.name()))
        .with(CREATED, number(state.created))
        .with(UPDATED, number(state.updated))
        .indexed(index::ReviewItemsByTime::key(&Descending(state.created), trace));
    let item = state.completed_by.into_iter().fold(item, |item, user| item.with(COMPLETED_BY, text(user)));
    state.completed.into_iter().fold(item, |item, time| item.with(COMPLETED, number(time)))
}

/// Creates the item of a trace that is added to a queue now, with a pending review.
pub(super) fn new_item(queue: &ReviewQueueId, trace: &TraceId, now: i64) -> Item {
    let state = ReviewItemState {
        status: ReviewStatus::Pending,
        completed_by: None,
        completed: None,
        created: now,
        updated: now,
    };
    review_item(queue, trace, &state)
}

/// Returns an update that adds the queue to the row that lists the queues of the trace.
#[must_use]
pub fn reviewed_trace(queue: &ReviewQueueId, trace: &TraceId) -> Update {
    Update::upsert(rows::ReviewedTrace::key(&queue.experiment(), trace)).add(QUEUES, only(queue))
}

/// Returns a set with this queue as its only element.
pub(super) fn only(queue: &ReviewQueueId) -> table::Value {
    bytes_set([queue.as_str().as_bytes().to_vec()])
}

/// Reads a trace in a queue from its item.
///
/// # Errors
/// Returns an internal error if the item is invalid.
pub fn item_of(item: &Item) -> Result<ReviewQueueItem> {
    let unreadable = || unreadable(item, "an item of a review queue");
    let row = item.key().as_ref().and_then(rows::ReviewItem::parse).ok_or_else(unreadable)?;
    Ok(ReviewQueueItem {
        queue_id: row.queue.to_string(),
        item_type: ReviewItemType::Trace,
        item_id: row.trace.to_string(),
        status: item.get(REVIEW_STATUS).and_then(ReviewStatus::from_name).ok_or_else(unreadable)?,
        completed_by: item.get(COMPLETED_BY).map(str::to_owned),
        completed_time_ms: item.get(COMPLETED),
        creation_time_ms: item.get(CREATED).unwrap_or_default(),
        last_update_time_ms: item.get(UPDATED).unwrap_or_default(),
    })
}
