//! Queues events for webhooks, and invokes the function that delivers them.
//!
//! For each webhook that has subscribed to an event, the indexer adds a row with the record's
//! sequence number to the queue of the webhook and the model. Events of a model are in one partition
//! of the table, so the stream reports them in the order in which they were committed, and the
//! function `deliver` sends them in this order. The rows are written before the function is invoked:
//! if the invocation fails, the next tick finds the queue.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use entities::attributes::{MODEL, WEBHOOKS, WORKSPACE};
use entities::webhooks::{DeliveryRequest, QueueId, StoredDelivery, StoredQueue, WebhookDeliverer};
use entities::{Moment, workspace_named};
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt, TryStreamExt};
use key_schema::{Key, ModelKey, SequenceNumber, Shard, rows};
use mlflow_api::{WebhookEventId, WebhookId, Workspace};
use serde_json::Value;
use table::{Result, Table};

/// Number of models whose events are queued concurrently.
const MODEL_CONCURRENCY: usize = 8;
/// Number of webhooks for which an event is queued concurrently.
const WEBHOOK_CONCURRENCY: usize = 8;
/// Number of concurrent requests to invoke the function `deliver`.
const INVOCATION_CONCURRENCY: usize = 8;
/// How long a tick keeps reading queues. Postponed runs are checked at the same time.
const MAX_TICK_DURATION: Duration = Duration::from_secs(30);
/// Interval of ticks, in ms.
const TICK_MS: i64 = 60_000;
/// Maximum number of queues in one invocation.
const MAX_QUEUES: usize = 100;
/// Maximum size of the names of the queues in one invocation. Lambda limits the payload to 256 KB.
const MAX_NAME_BYTES: usize = 100_000;
/// Page size for queues.
const PAGE_SIZE: usize = 1_000;
/// Number of recently queued events that a process remembers.
const REMEMBERED_EVENTS: usize = 10_000;

/// An event for webhooks, as a record of the stream reports it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AnnouncedEvent {
    id: WebhookEventId,
    workspace: Workspace,
    model: ModelKey,
    webhooks: Vec<WebhookId>,
    number: SequenceNumber,
}

impl AnnouncedEvent {
    /// Parses the new image of a record.
    pub(crate) fn of(key: &Key, image: &Value, number: &str) -> Option<Self> {
        let text = |name: &str| image.get(name)?.get("S")?.as_str();
        let webhooks = image.get(WEBHOOKS.name())?.get("BS")?.as_array()?;
        let webhook = |value: &Value| {
            let bytes = STANDARD.decode(value.as_str()?).ok()?;
            WebhookId::parse(std::str::from_utf8(&bytes).ok()?)
        };
        Some(Self {
            id: rows::WebhookEvent::parse(key)?.event,
            workspace: workspace_named(text(WORKSPACE.name())).ok()?,
            model: ModelKey::from(text(MODEL.name())?),
            webhooks: webhooks.iter().map(webhook).collect::<Option<_>>()?,
            number: SequenceNumber::parse(number)?,
        })
    }

    fn queue(&self, webhook: WebhookId) -> QueueId {
        QueueId { workspace: self.workspace.clone(), webhook, model: self.model.clone() }
    }
}

/// The queues of all webhooks.
#[derive(Clone, Debug)]
pub(crate) struct WebhookQueues {
    table: Table,
    pub(crate) deliverer: Option<Arc<dyn WebhookDeliverer>>,
    /// The events that this process has queued most recently. If a batch is delivered again because
    /// of other records, these events are skipped, so that they are not sent twice.
    queued: Arc<Mutex<VecDeque<WebhookEventId>>>,
}

impl WebhookQueues {
    pub(crate) fn of(table: Table) -> Self {
        Self { table, deliverer: None, queued: Arc::default() }
    }

    /// Queues events, and returns each with its outcome. If an event of a model cannot be queued, no
    /// later event of the model is queued, because it must not be delivered before the first one.
    /// The later events are returned with the same error.
    pub(crate) async fn add<'a>(&self, events: &[&'a AnnouncedEvent]) -> Vec<(&'a AnnouncedEvent, Result<()>)> {
        let mut by_model = BTreeMap::<_, Vec<_>>::new();
        for event in events {
            by_model.entry(&event.model).or_default().push(*event);
        }
        // The futures are boxed, because the compiler cannot prove that closures that borrow are `Send`.
        let models: Vec<BoxFuture<'_, _>> =
            by_model.into_values().map(|events| self.add_in_order(events).boxed()).collect();
        let outcomes: Vec<_> = stream::iter(models).buffer_unordered(MODEL_CONCURRENCY).concat().await;
        let complete = outcomes.iter().filter(|(_, outcome)| outcome.is_ok());
        let queues = complete.flat_map(|(event, _)| event.webhooks.iter().map(|webhook| event.queue(*webhook)));
        self.invoke(queues.collect()).await;
        outcomes
    }

    async fn add_in_order<'a>(&self, events: Vec<&'a AnnouncedEvent>) -> Vec<(&'a AnnouncedEvent, Result<()>)> {
        let mut outcomes: Vec<(_, Result<()>)> = Vec::new();
        for event in events {
            let outcome = match outcomes.last() {
                Some((_, Err(failure))) => Err(failure.clone()),
                _ => self.add_event(event).await,
            };
            outcomes.push((event, outcome));
        }
        outcomes
    }

    /// Queues one event. Costs two write units per webhook: the delivery and its queue.
    async fn add_event(&self, event: &AnnouncedEvent) -> Result<()> {
        if self.queued().contains(&event.id) {
            return Ok(());
        }
        let webhooks: Vec<BoxFuture<'_, _>> =
            event.webhooks.iter().map(|webhook| self.add_delivery(event, *webhook).boxed()).collect();
        stream::iter(webhooks).buffer_unordered(WEBHOOK_CONCURRENCY).try_collect::<Vec<()>>().await?;
        let mut queued = self.queued();
        if queued.len() >= REMEMBERED_EVENTS {
            queued.pop_front();
        }
        queued.push_back(event.id);
        Ok(())
    }

    async fn add_delivery(&self, event: &AnnouncedEvent, webhook: WebhookId) -> Result<()> {
        let queue = event.queue(webhook);
        StoredDelivery::add(&self.table, &queue, &event.number, event.id).await?;
        StoredQueue::announce(&self.table, &queue).await
    }

    fn queued(&self) -> MutexGuard<'_, VecDeque<WebhookEventId>> {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Invokes the delivery of all queues that are due. If there is not enough time for all of
    /// them, the next tick invokes the delivery of the others. Takes one request for each shard, or
    /// one per MB if the rows of a shard's queues are larger, and costs one read unit per 4 KB.
    pub(crate) async fn deliver_due(&self, now: i64) -> Result<()> {
        if self.deliverer.is_none() {
            return Ok(());
        }
        let begin = Moment::now();
        // Each tick begins with a different shard, so that no shard is always the last one, for
        // which the time may not suffice.
        let shards: Vec<_> = Shard::all().collect();
        let first = usize::try_from(now / TICK_MS).unwrap_or_default() % shards.len();
        for shard in shards.iter().cycle().skip(first).take(shards.len()) {
            let mut last = None;
            while let Some(page) = StoredQueue::page(&self.table, *shard, last, PAGE_SIZE).await? {
                let queues = page.items.iter().filter_map(|item| {
                    let queue = StoredQueue::of(item);
                    queue.inspect_err(|error| tracing::error!(?error, "a queue cannot be read")).ok()
                });
                let due = queues.filter(|queue| queue.is_due(now)).map(|queue| queue.id).collect();
                self.invoke(due).await;
                if begin.age() > MAX_TICK_DURATION {
                    tracing::warn!("further pending deliveries are left to the next tick");
                    return Ok(());
                }
                last = Some(page);
            }
        }
        Ok(())
    }

    /// Invokes the delivery of queues, with at most 100 queues of one webhook per invocation. A
    /// failure is only logged, because the next tick invokes the delivery again.
    async fn invoke(&self, queues: Vec<QueueId>) {
        let Some(deliverer) = &self.deliverer else { return };
        let invocations: Vec<_> =
            requests(queues.into_iter()).into_iter().map(|request| deliverer.deliver(request)).collect();
        let outcomes = stream::iter(invocations).buffer_unordered(INVOCATION_CONCURRENCY);
        outcomes
            .for_each(async |invoked| {
                if let Err(error) = invoked {
                    tracing::warn!(?error, "the delivery of events could not be invoked, and waits for the next tick");
                }
            })
            .await;
    }
}

/// Returns the requests for the delivery of queues.
fn requests(queues: impl Iterator<Item = QueueId>) -> Vec<DeliveryRequest> {
    let mut by_webhook = BTreeMap::<_, Vec<_>>::new();
    for QueueId { workspace, webhook, model } in queues {
        let models = by_webhook.entry((workspace.as_str().to_owned(), webhook)).or_default();
        models.push(model.to_attribute());
    }
    let mut requests = Vec::new();
    for ((workspace, webhook), mut models) in by_webhook {
        models.sort_unstable();
        models.dedup();
        let request =
            || DeliveryRequest { workspace: workspace.clone(), webhook: webhook.to_string(), models: Vec::new() };
        let (mut next, mut bytes) = (request(), 0);
        for model in models {
            if next.models.len() >= MAX_QUEUES || bytes + model.len() > MAX_NAME_BYTES {
                requests.push(std::mem::replace(&mut next, request()));
                bytes = 0;
            }
            bytes += model.len();
            next.models.push(model);
        }
        requests.push(next);
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invocation_has_one_webhook_and_at_most_100_queues() {
        let queue = |webhook: u128, model: usize| QueueId {
            workspace: Workspace::default(),
            webhook: WebhookId::new(1, webhook),
            model: ModelKey::from(format!("model {model}").as_str()),
        };
        let queues = (0..250).map(|model| queue(1, model)).chain([queue(2, 0), queue(2, 0)]);
        let sizes: Vec<_> = requests(queues).iter().map(|request| request.models.len()).collect();
        assert_eq!(sizes, [100, 100, 50, 1]);
        let long = |number: usize| QueueId {
            model: ModelKey::from(format!("{number}{}", "x".repeat(60_000)).as_str()),
            ..queue(1, 0)
        };
        assert_eq!(requests((0..3).map(long)).len(), 3);
    }
}
