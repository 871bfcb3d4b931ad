//! Delivers the events of one queue, oldest first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use entities::attributes::POSTPONED_UNTIL;
use entities::webhooks::{QueueId, QueueLease, StoredDelivery, StoredEvent, StoredQueue, StoredWebhook};
use runtime::clock::{Moment, now_ms};
use table::{Failure, Item, Result, Update, number};

use crate::attempt::{Outcome, attempt, delivery_id};
use crate::context::Context;
use crate::retry_times::{MAX_AGE, delay, ms};
use crate::shutdown::Shutdown;

/// Timeout of an attempt, as in MLflow.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an invocation keeps starting attempts. The timeout of the function leaves enough time
/// after this for one more attempt and a few requests to the table.
const MAX_DURATION: Duration = Duration::from_secs(80);
/// How long a queue is leased: longer than an invocation may take, so that no other process delivers
/// from the queue while this one may still do so.
const LEASE: Duration = Duration::from_secs(150);
/// How long a queue is postponed if the table could not be accessed while events of the queue were
/// being delivered.
const FAILURE_PAUSE: Duration = Duration::from_mins(1);
/// How long the other queues of a webhook are postponed after its receiver has not responded to an
/// event. Without this pause, the queues of many models would each occupy a process until an
/// attempt times out.
const UNRESPONSIVE_PAUSE: Duration = Duration::from_mins(1);
/// Page size for pending deliveries.
const PAGE_SIZE: usize = 50;

/// The state that the queues of an invocation share.
#[derive(Debug)]
pub(crate) struct Invocation {
    begin: Moment,
    shutdown: Shutdown,
    /// Whether the receiver has failed to respond to any event in this invocation.
    is_unresponsive: AtomicBool,
}

impl Invocation {
    pub(crate) fn begin(shutdown: Shutdown) -> Self {
        Self { begin: Moment::now(), shutdown, is_unresponsive: AtomicBool::new(false) }
    }

    fn has_time(&self) -> bool {
        self.begin.age() < MAX_DURATION && !self.shutdown.has_begun()
    }
}

/// The result of reading a row that may be unreadable.
enum Reading<T> {
    Found(T),
    Missing,
    Unreadable(String),
}

/// Parses a row. A row that exists but is unreadable is not an error, unlike a failure to access
/// the table.
fn readable<T>(row: Result<Option<Item>>, parse: impl FnOnce(&Item) -> mlflow_api::Result<T>) -> Result<Reading<T>> {
    match row {
        Ok(None) => Ok(Reading::Missing),
        Ok(Some(item)) => Ok(parse(&item).map_or_else(|error| Reading::Unreadable(error.message), Reading::Found)),
        Err(Failure::Unreadable(cause)) => Ok(Reading::Unreadable(cause)),
        Err(failure) => Err(failure),
    }
}

/// What to do with a queue after an event has been handled.
enum Next {
    /// Continue with the next event of the queue.
    Event,
    /// Postpone the queue until this time, in ms.
    Wait(i64),
}

impl Context {
    /// Delivers the events of a queue, unless the queue is not due or another process is delivering
    /// from it.
    ///
    /// For one event of usual size, takes six requests, which cost three write units and three
    /// read units: to lease the queue, to read its deliveries, the webhook and the event, and to
    /// remove the delivery and the queue.
    pub(crate) async fn deliver_queue(&self, queue: &QueueId, invocation: &Invocation) -> Result<()> {
        if !invocation.has_time() {
            // The queue remains due, so the next tick requests its delivery again.
            return Ok(());
        }
        if invocation.is_unresponsive.load(Ordering::Relaxed) {
            return StoredQueue::postpone(&self.table, queue, now_ms() + ms(UNRESPONSIVE_PAUSE)).await;
        }
        let Some(mut lease) = QueueLease::acquire(&self.table, queue, LEASE).await? else { return Ok(()) };
        match self.deliver_leased(queue, &mut lease, invocation).await {
            Ok(Some(due)) => lease.release(&self.table, due).await,
            Ok(None) => Ok(()),
            Err(failure) => {
                // If this request fails as well, the queue remains leased until the lease expires.
                let released = lease.release(&self.table, now_ms() + ms(FAILURE_PAUSE)).await;
                released.unwrap_or_else(|error| tracing::warn!(?error, "a queue remains leased"));
                Err(failure)
            }
        }
    }

    /// Delivers the events of a leased queue. Returns when its next attempt is due, or `None` if the
    /// queue is empty and was removed.
    async fn deliver_leased(
        &self,
        queue: &QueueId,
        lease: &mut QueueLease,
        invocation: &Invocation,
    ) -> Result<Option<i64>> {
        loop {
            let mut last = None;
            while let Some(page) = StoredDelivery::pending(&self.table, queue, last, PAGE_SIZE).await? {
                for item in &page.items {
                    if !invocation.has_time() {
                        return Ok(Some(now_ms()));
                    }
                    if let Next::Wait(until) = self.deliver_event(queue, item, invocation).await? {
                        return Ok(Some(until));
                    }
                }
                last = Some(page);
            }
            if !lease.remove_queue(&self.table).await? {
                return Ok(None);
            }
        }
    }

    /// Makes one attempt to deliver an event, and records its outcome.
    async fn deliver_event(&self, queue: &QueueId, item: &Item, invocation: &Invocation) -> Result<Next> {
        let Ok(delivery) = StoredDelivery::of(item) else {
            // The row is left in place until it expires. It cannot become a dead delivery, because
            // its event is not known.
            tracing::error!(webhook = %queue.webhook, key = ?item.key(), "a pending delivery cannot be read, and is skipped");
            return Ok(Next::Event);
        };
        // The webhook is read for each event, because it may have been changed or deleted.
        let stored = self.table.get(&StoredWebhook::key(&queue.workspace, queue.webhook)).await;
        let (webhook, postponed) = match readable(stored, |item| {
            Ok((StoredWebhook::of(item)?, item.get(POSTPONED_UNTIL).unwrap_or_default()))
        })? {
            Reading::Found(webhook) => webhook,
            Reading::Missing => return self.drop_delivery(&delivery).await,
            Reading::Unreadable(cause) => {
                tracing::error!(webhook = %queue.webhook, cause, "a webhook cannot be read");
                let why = "the webhook cannot be read".to_owned();
                let outcome = Outcome::Retry { why, retry_after: None, is_unresponsive: false };
                return self.record(queue, &delivery, outcome, invocation).await;
            }
        };
        if delivery.attempts == 0 && postponed > now_ms() && webhook.is_active() {
            return Ok(Next::Wait(postponed));
        }
        let event = self.table.get(&StoredEvent::key(&queue.model, delivery.event)).await;
        let event = match readable(event, StoredEvent::of)? {
            Reading::Found(event) => event,
            Reading::Missing => {
                tracing::warn!(event = %delivery.event, "an event has expired before it was delivered");
                return self.drop_delivery(&delivery).await;
            }
            Reading::Unreadable(cause) => return self.give_up_unreadable(queue, &delivery, &cause).await,
        };
        if !webhook.receives(&event.name) {
            return self.drop_delivery(&delivery).await;
        }
        let body = match event.body(&self.table).await {
            Ok(Some(body)) => body,
            Ok(None) => {
                // The parts of a large body expire independently of the event's row.
                tracing::warn!(event = %delivery.event, "the body of an event has expired before it was delivered");
                return self.drop_delivery(&delivery).await;
            }
            Err(Failure::Unreadable(cause)) => return self.give_up_unreadable(queue, &delivery, &cause).await,
            Err(failure) => return Err(failure),
        };
        let id = delivery_id(delivery.event, queue.webhook);
        let through = (&*self.sender, &*self.keys);
        let sent = Box::pin(attempt(through, &queue.workspace, &webhook, (id, &body), ATTEMPT_TIMEOUT));
        match invocation.shutdown.unless_aborted(sent).await {
            Some(sent) => self.record(queue, &delivery, Outcome::of(sent), invocation).await,
            // The queue is due immediately, so that the next process makes the attempt again.
            None => Ok(Next::Wait(now_ms())),
        }
    }

    async fn drop_delivery(&self, delivery: &StoredDelivery) -> Result<Next> {
        delivery.remove(&self.table).await?;
        Ok(Next::Event)
    }

    /// Gives up on a delivery whose event cannot be read. `webhooks resend` can repeat the delivery
    /// once the event is readable again.
    async fn give_up_unreadable(&self, queue: &QueueId, delivery: &StoredDelivery, cause: &str) -> Result<Next> {
        tracing::error!(event = %delivery.event, cause, "an event cannot be read");
        self.give_up(queue, delivery, "the event cannot be read").await?;
        Ok(Next::Event)
    }

    async fn record(
        &self,
        queue: &QueueId,
        delivery: &StoredDelivery,
        outcome: Outcome,
        invocation: &Invocation,
    ) -> Result<Next> {
        let now = now_ms();
        match outcome {
            Outcome::Delivered => {
                delivery.remove(&self.table).await?;
                Ok(Next::Event)
            }
            Outcome::Final(why) => {
                self.give_up(queue, delivery, &why).await?;
                Ok(Next::Event)
            }
            Outcome::Retry { why, retry_after, is_unresponsive } => {
                if is_unresponsive {
                    self.pause_webhook(queue, now, invocation).await?;
                }
                if now.saturating_sub(delivery.pending_since) >= ms(MAX_AGE) {
                    self.give_up(queue, delivery, &why).await?;
                    // The event is given up, but the queue still waits: the next event would occupy
                    // the process for another timeout.
                    let pause = Next::Wait(now + ms(UNRESPONSIVE_PAUSE));
                    return Ok(if is_unresponsive { pause } else { Next::Event });
                }
                delivery.record_attempt(&self.table, &why).await?;
                Ok(Next::Wait(now + ms(delay(delivery.attempts.saturating_add(1), retry_after))))
            }
        }
    }

    /// Postpones those queues of a webhook whose next event has not been attempted yet, in this
    /// process and in others, because the receiver does not respond.
    async fn pause_webhook(&self, queue: &QueueId, now: i64, invocation: &Invocation) -> Result<()> {
        if invocation.is_unresponsive.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let webhook = StoredWebhook::key(&queue.workspace, queue.webhook);
        let update = Update::new(webhook).set(POSTPONED_UNTIL, number(now + ms(UNRESPONSIVE_PAUSE)));
        match self.table.apply(&update).await {
            // A refused update means that the webhook has been deleted in the meantime.
            Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    async fn give_up(&self, queue: &QueueId, delivery: &StoredDelivery, why: &str) -> Result<()> {
        tracing::warn!(webhook = %queue.webhook, event = %delivery.event, why, "a delivery has failed for good");
        delivery.bury(&self.table, queue, why).await
    }
}
