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

/// Timeout of an attempt, as in MLflow.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an invocation keeps starting attempts. The timeout of the function is longer than this
/// by the duration of one attempt and of a few requests to the table.
const MAX_DURATION: Duration = Duration::from_secs(80);
/// How long a queue is leased: longer than the timeout of the function, 120 seconds, so that no
/// other process delivers from the queue while this one may still do so.
const LEASE: Duration = Duration::from_secs(150);
/// How long the other queues of a webhook are postponed after its receiver has not responded to an
/// event. Without this pause, the queues of many models would each occupy a process until an
/// attempt times out.
const UNRESPONSIVE_PAUSE: Duration = Duration::from_mins(1);
/// Page size for pending deliveries. After all deliveries of a page were attempted, the oldest page
/// is read again, because delivered ones have been removed from it.
const PAGE_SIZE: usize = 50;

/// The state that the queues of an invocation share.
#[derive(Debug)]
pub(crate) struct Invocation {
    begin: Moment,
    /// Whether the receiver has failed to respond to any event in this invocation.
    is_unresponsive: AtomicBool,
}

impl Invocation {
    pub(crate) fn begin() -> Self {
        Self { begin: Moment::now(), is_unresponsive: AtomicBool::new(false) }
    }

    fn has_time(&self) -> bool {
        self.begin.age() < MAX_DURATION
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
        loop {
            let page = StoredDelivery::oldest(&self.table, queue, PAGE_SIZE).await?;
            for item in &page.items {
                if !invocation.has_time() {
                    return lease.release(&self.table, now_ms()).await;
                }
                if let Next::Wait(until) = self.deliver_event(queue, item, invocation).await? {
                    return lease.release(&self.table, until).await;
                }
            }
            if page.next.is_none() && !lease.remove_queue(&self.table).await? {
                return Ok(());
            }
        }
    }

    /// Makes one attempt to deliver an event, and records its outcome.
    async fn deliver_event(&self, queue: &QueueId, item: &Item, invocation: &Invocation) -> Result<Next> {
        let delivery = StoredDelivery::of(item).map_err(|error| Failure::Unreadable(error.message))?;
        // The webhook is read for each event, because it may have been changed or deleted.
        let stored = self.table.get(&StoredWebhook::key(&queue.workspace, queue.webhook)).await?;
        let Some(stored) = stored else {
            delivery.remove(&self.table).await?;
            return Ok(Next::Event);
        };
        let webhook = StoredWebhook::of(&stored).map_err(|error| Failure::Unreadable(error.message))?;
        let postponed = stored.get(POSTPONED_UNTIL).unwrap_or_default();
        if delivery.attempts == 0 && postponed > now_ms() && webhook.is_active() {
            return Ok(Next::Wait(postponed));
        }
        let event = self.table.get(&StoredEvent::key(&queue.model, delivery.event)).await?;
        let event = event.map(|item| StoredEvent::of(&item).map_err(|error| Failure::Unreadable(error.message)));
        let Some(event) = event.transpose()? else {
            tracing::warn!(event = %delivery.event, "an event has expired before it was delivered");
            delivery.remove(&self.table).await?;
            return Ok(Next::Event);
        };
        if !event.event.is_some_and(|name| webhook.receives(name)) {
            delivery.remove(&self.table).await?;
            return Ok(Next::Event);
        }
        let Some(body) = event.body(&self.table).await? else {
            // The parts of a large body expire independently of the event's row.
            tracing::warn!(event = %delivery.event, "the body of an event has expired before it was delivered");
            delivery.remove(&self.table).await?;
            return Ok(Next::Event);
        };
        let id = delivery_id(delivery.event, queue.webhook);
        let through = (&*self.sender, &*self.keys);
        let sent = attempt(through, &queue.workspace, &webhook, (id, &body), ATTEMPT_TIMEOUT).await;
        self.record(queue, &delivery, Outcome::of(sent), invocation).await
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
