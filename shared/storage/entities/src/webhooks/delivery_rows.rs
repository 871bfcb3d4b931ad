//! The rows of pending deliveries, and of deliveries that have failed for good.

use key_schema::attributes::{ANSWER, ATTEMPTS, EVENT, EXPIRES, MODEL, PENDING_SINCE, UPDATED};
use key_schema::{Key, ModelKey, Name, SequenceNumber, Shard, rows};
use mlflow_api::{WebhookEventId, WebhookId, Workspace};
use table::{Condition, Failure, Item, Query, QueryPage, Result, Table, Update, number, text};

use super::event_row::EVENT_RETENTION_SECONDS;
use crate::{now_ms, unreadable};

/// How long a pending delivery is stored, in seconds: a day longer than its event.
const DELIVERY_RETENTION_SECONDS: i64 = EVENT_RETENTION_SECONDS + 24 * 60 * 60;
/// Maximum time that a delivery that has failed for good is stored, in seconds. It is stored for a
/// shorter time if its event expires earlier, because it cannot be repeated without the event.
const DEAD_RETENTION_SECONDS: i64 = 14 * 24 * 60 * 60;
/// Maximum length of the stored outcome of an attempt, in characters.
const MAX_ANSWER_LENGTH: usize = 500;
/// Factor that separates the sequence numbers of repeated deliveries of events that were created
/// within the same ms. Sequence numbers of repeated deliveries have at most 19 digits, and those of
/// DynamoDB's stream at least 21, so repeated deliveries sort before all others.
const NUMBERS_PER_MS: u128 = 1_000_000;

/// The queue that a delivery belongs to: a webhook, and the model that its events are about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId {
    /// The workspace.
    pub workspace: Workspace,
    /// The webhook.
    pub webhook: WebhookId,
    /// The model.
    pub model: ModelKey,
}

impl QueueId {
    fn workspace_name(&self) -> Name {
        Name::from(self.workspace.as_str())
    }

    /// Returns the key of the row that announces the queue.
    #[must_use]
    pub(super) fn key(&self) -> Key {
        let shard = Shard::of(&format!("{}#{}", self.webhook, self.model.to_attribute()));
        rows::WebhookQueue::key(&shard, &self.workspace_name(), &self.webhook, &self.model)
    }

    fn delivery_key(&self, number: &SequenceNumber) -> Key {
        rows::WebhookDelivery::key(&self.workspace_name(), &self.webhook, &self.model, number)
    }
}

/// A delivery that is pending, or that has failed for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDelivery {
    /// The key of its row.
    pub key: Key,
    /// The model that the event is about.
    pub model: ModelKey,
    /// The event.
    pub event: WebhookEventId,
    /// The number of attempts so far.
    pub attempts: u32,
    /// Time in ms at which the delivery became pending.
    pub pending_since: i64,
    /// The outcome of the last attempt, if there was one.
    pub answer: Option<String>,
    /// Time in ms at which the delivery failed for good. `None` if it is pending.
    pub died: Option<i64>,
}

impl StoredDelivery {
    /// Parses a delivery.
    ///
    /// # Errors
    /// Returns an error if the item is not a delivery.
    pub fn of(item: &Item) -> mlflow_api::Result<Self> {
        let read = || {
            Some(Self {
                key: item.key()?,
                model: ModelKey::from(item.get(MODEL)?),
                event: WebhookEventId::parse(item.get(EVENT)?)?,
                attempts: item.get(ATTEMPTS)?,
                pending_since: item.get(PENDING_SINCE)?,
                answer: item.get(ANSWER).map(str::to_owned),
                died: item.get(UPDATED),
            })
        };
        read().ok_or_else(|| unreadable(item, "a delivery"))
    }

    fn item(key: Key, delivery: &Self, expires: i64) -> Item {
        let item = Item::new(key)
            .with(MODEL.name(), text(delivery.model.to_attribute()))
            .with(EVENT.name(), text(delivery.event.to_string()))
            .with(ATTEMPTS.name(), number(delivery.attempts))
            .with(PENDING_SINCE.name(), number(delivery.pending_since))
            .with(EXPIRES.name(), number(expires));
        match &delivery.answer {
            Some(answer) => item.with(ANSWER.name(), text(answer)),
            None => item,
        }
    }

    /// Adds a delivery of an event that a record of the stream reports. A repeated call has no
    /// further effect, unless the delivery has completed in the meantime. Costs one write unit for
    /// names of usual length.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn add(table: &Table, queue: &QueueId, number: &SequenceNumber, event: WebhookEventId) -> Result<()> {
        match table.put(Self::new_item(queue, number, event), &Condition::item_missing()).await {
            // The delivery was added before. Its attempts are kept.
            Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    fn new_item(queue: &QueueId, number: &SequenceNumber, event: WebhookEventId) -> Item {
        let now = now_ms();
        let key = queue.delivery_key(number);
        let delivery = Self {
            key: key.clone(),
            model: queue.model.clone(),
            event,
            attempts: 0,
            pending_since: now,
            answer: None,
            died: None,
        };
        Self::item(key, &delivery, now / 1_000 + DELIVERY_RETENTION_SECONDS)
    }

    /// Adds a delivery that precedes the other pending deliveries of its queue, except repeated ones
    /// of earlier events.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn add_again(table: &Table, queue: &QueueId, event: WebhookEventId) -> Result<()> {
        let created = u128::try_from(event.created()).unwrap_or_default();
        let mut position = created * NUMBERS_PER_MS + event.bits() % NUMBERS_PER_MS;
        loop {
            let Some(number) = SequenceNumber::parse(&position.to_string()) else {
                return Err(Failure::Unexpected("the time of an event is not a time".to_owned()));
            };
            let item = Self::new_item(queue, &number, event);
            match table.put(item, &Condition::item_missing()).await {
                // Another event has this number.
                Err(Failure::Refused { item: Some(item), .. })
                    if item.get(EVENT) != Some(event.to_string().as_str()) =>
                {
                    position += 1;
                }
                Ok(()) | Err(Failure::Refused { .. }) => return Ok(()),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Reads the page of a queue's pending deliveries, oldest first, that follows `last`, or the
    /// first one. The page may contain unreadable rows. Returns `None` if `last` is the last page.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn pending(
        table: &Table,
        queue: &QueueId,
        last: Option<QueryPage>,
        limit: usize,
    ) -> Result<Option<QueryPage>> {
        let range = rows::WebhookDelivery::all(&queue.workspace_name(), &queue.webhook, &queue.model).range();
        next_page(table, Query::of(range).for_removal().limit(limit), last).await
    }

    /// Records a failed attempt. Does nothing if the delivery has completed in the meantime.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn record_attempt(&self, table: &Table, answer: &str) -> Result<()> {
        let update = Update::new(self.key.clone()).set(ATTEMPTS, number(self.attempts.saturating_add(1)));
        match table.apply(&update.set(ANSWER, text(bounded(answer)))).await {
            Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Removes the delivery, because it has completed.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn remove(&self, table: &Table) -> Result<()> {
        table.delete(&self.key, &Condition::Always).await
    }

    /// Moves the delivery to the deliveries that have failed for good. If the move is interrupted,
    /// the delivery is attempted again.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn bury(&self, table: &Table, queue: &QueueId, answer: &str) -> Result<()> {
        let now = now_ms();
        let key = rows::DeadDelivery::key(&queue.workspace_name(), &queue.webhook, &self.event);
        let dead = Self { attempts: self.attempts.saturating_add(1), answer: Some(bounded(answer)), ..self.clone() };
        let event_expires = self.event.created() / 1_000 + EVENT_RETENTION_SECONDS;
        let expires = event_expires.min(now / 1_000 + DEAD_RETENTION_SECONDS);
        let item = Self::item(key, &dead, expires).with(UPDATED.name(), number(now));
        table.put(item, &Condition::Always).await?;
        self.remove(table).await
    }

    /// Removes a delivery from those that have failed for good, unless it has failed again since it
    /// was read.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn remove_dead(&self, table: &Table) -> Result<()> {
        let is_same = match self.died {
            Some(died) => Condition::Equals(UPDATED.into(), number(died)),
            None => Condition::Missing(UPDATED.into()),
        };
        match table.delete(&self.key, &is_same).await {
            Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Returns the webhook of a delivery that has failed for good. `None` if the delivery is pending.
    #[must_use]
    pub fn dead_webhook(&self) -> Option<WebhookId> {
        rows::DeadDelivery::parse(&self.key).map(|row| row.webhook)
    }

    /// Reads the page of a workspace's deliveries that have failed for good that follows `last`, or
    /// the first one, ordered by webhook and then by event. The page may contain unreadable rows.
    /// Returns `None` if `last` is the last page.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn dead(table: &Table, workspace: &Workspace, last: Option<QueryPage>) -> Result<Option<QueryPage>> {
        let range = rows::DeadDelivery::all(&Name::from(workspace.as_str())).range();
        next_page(table, Query::of(range).for_removal(), last).await
    }
}

/// Reads the page that follows `last`, or the first page if `last` is `None`. Returns `None` if
/// `last` is the last page.
pub(super) async fn next_page(table: &Table, query: Query, last: Option<QueryPage>) -> Result<Option<QueryPage>> {
    match last {
        None => table.query_page(&query).await.map(Some),
        Some(QueryPage { next: Some(next), .. }) => table.query_page(&query.starting_at(next)).await.map(Some),
        Some(_) => Ok(None),
    }
}

fn bounded(answer: &str) -> String {
    answer.chars().take(MAX_ANSWER_LENGTH).collect()
}
