//! The rows that announce queues with pending deliveries.
//!
//! A queue is created when a delivery is added, and removed when no delivery is left. A process
//! that delivers from a queue leases it, so that no other process delivers from it at the same
//! time. The counter `added` is incremented after each added delivery. A process that reads the
//! deliveries after it has leased the queue can therefore remove the queue without reading again,
//! on condition that `added` is unchanged.

use std::time::Duration;

use key_schema::attributes::{ADDED, DUE, LEASE_HOLDER, LEASE_UNTIL, MODEL, WORKSPACE};
use key_schema::{ModelKey, Shard, rows};
use table::{Condition, Failure, Item, Query, QueryPage, Result, Table, Update, Value, number, text};

use super::delivery_rows::{QueueId, next_page};
use crate::{in_workspace, now_ms, unreadable, workspace_named};

/// A queue with pending deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredQueue {
    /// The queue.
    pub id: QueueId,
    /// Time in ms at which the next attempt is due.
    pub due: i64,
    /// Time in ms until which a process leases the queue.
    pub leased_until: Option<i64>,
}

impl StoredQueue {
    /// Parses a queue.
    ///
    /// # Errors
    /// Returns an error if the item is not a queue.
    pub fn of(item: &Item) -> mlflow_api::Result<Self> {
        let workspace = workspace_named(item.get(WORKSPACE))?;
        let read = || {
            let webhook = rows::WebhookQueue::parse(&item.key()?)?.webhook;
            let id = QueueId { workspace, webhook, model: ModelKey::from(item.get(MODEL)?) };
            Some(Self { id, due: item.get(DUE)?, leased_until: item.get(LEASE_UNTIL) })
        };
        read().ok_or_else(|| unreadable(item, "a queue of deliveries"))
    }

    /// Checks whether an attempt is due, and no process leases the queue.
    #[must_use]
    pub fn is_due(&self, now: i64) -> bool {
        self.due <= now && self.leased_until.is_none_or(|until| until < now)
    }

    /// Announces that a delivery was added. If the queue exists already, its due time stays the
    /// same, so a queue that waits after a failed attempt continues to wait. Costs one write unit,
    /// or two if the queue exists already.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn announce(table: &Table, queue: &QueueId) -> Result<()> {
        // A loop, because the queue may be created or removed between two requests.
        loop {
            let item = Item::new(queue.key())
                .with(MODEL.name(), text(queue.model.to_attribute()))
                .with(DUE.name(), number(now_ms()))
                .with(ADDED.name(), number(1));
            let item = in_workspace(item, &queue.workspace);
            match table.put(item, &Condition::item_missing()).await {
                Err(Failure::Refused { .. }) => {}
                outcome => return outcome,
            }
            match table.apply(&Update::new(queue.key()).add(ADDED, number(1))).await {
                Err(Failure::Refused { .. }) => {}
                outcome => return outcome,
            }
        }
    }

    /// Reads the page of a shard's queues that follows `last`, or the first one. The page may
    /// contain unreadable rows. Returns `None` if `last` is the last page.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn page(table: &Table, shard: Shard, last: Option<QueryPage>, limit: usize) -> Result<Option<QueryPage>> {
        let query = Query::of(rows::WebhookQueue::all(&shard).range()).for_removal().limit(limit);
        next_page(table, query, last).await
    }

    /// Postpones the queue, if it is due and no process delivers from it.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn postpone(table: &Table, queue: &QueueId, until: i64) -> Result<()> {
        ignore_refusal(table.apply(&Update::new(queue.key()).set(DUE, number(until)).only_if(is_due(now_ms()))).await)
    }
}

fn is_due(now: i64) -> Condition {
    let is_free = vec![Condition::Missing(LEASE_UNTIL.into()), Condition::Below(LEASE_UNTIL.into(), number(now))];
    Condition::Below(DUE.into(), number(now.saturating_add(1))).and(Condition::Any(is_free))
}

/// The exclusive right of a process to deliver from a queue for a limited time.
#[derive(Clone, Debug)]
pub struct QueueLease {
    queue: QueueId,
    holder: String,
    added: Value,
}

impl QueueLease {
    /// Leases a queue. Returns `None` if it has been removed, is not due, or is leased.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn acquire(table: &Table, queue: &QueueId, duration: Duration) -> Result<Option<Self>> {
        let now = now_ms();
        let until = now.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX));
        let holder = format!("{:032x}", rand::random::<u128>());
        let update = Update::new(queue.key())
            .set(LEASE_HOLDER, text(&holder))
            .set(LEASE_UNTIL, number(until))
            .only_if(is_due(now));
        let item = match table.update(&update).await {
            Ok(item) => item,
            // An earlier attempt of this request may have succeeded.
            Err(Failure::Refused { item: Some(item), .. }) if item.get(LEASE_HOLDER) == Some(holder.as_str()) => item,
            Err(Failure::Refused { .. }) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        Ok(item.value(ADDED).map(|added| Self { queue: queue.clone(), holder, added: added.clone() }))
    }

    /// Ends the lease. The next attempt is due at the time `due`, in ms.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn release(self, table: &Table, due: i64) -> Result<()> {
        let update = Update::new(self.queue.key()).set(DUE, number(due)).remove(LEASE_HOLDER).remove(LEASE_UNTIL);
        ignore_refusal(table.apply(&update.only_if(self.is_held())).await)
    }

    /// Removes the queue, if no delivery was added since it was leased. Returns whether another
    /// delivery was added, in which case the lease is renewed in order to deliver it.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn remove_queue(&mut self, table: &Table) -> Result<bool> {
        let is_complete = Condition::Equals(ADDED.into(), self.added.clone());
        match table.delete(&self.queue.key(), &self.is_held().and(is_complete)).await {
            Err(Failure::Refused { item: Some(item), .. }) if item.get(LEASE_HOLDER) == Some(self.holder.as_str()) => {
                match item.value(ADDED) {
                    Some(added) => self.added = added.clone(),
                    None => return Ok(false),
                }
                Ok(true)
            }
            Ok(()) | Err(Failure::Refused { .. }) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    fn is_held(&self) -> Condition {
        Condition::Equals(LEASE_HOLDER.into(), text(&self.holder))
    }
}

fn ignore_refusal(outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(Failure::Refused { .. }) => Ok(()),
        outcome => outcome,
    }
}
