//! A table with webhooks, an indexer and the function `deliver`, in simulated time.

use std::sync::Arc;
use std::time::Duration;

use deliver::{Deliverer, LocalDeliverer};
use embedded_engine::StreamReader;
use entities::webhooks::{NewEvent, StoredDelivery, StoredWebhook, new_event_id, new_webhook_id};
use fts_indexer::{Indexer, StreamBatch, is_for_indexer};
use futures::future::LocalBoxFuture;
use key_schema::ModelKey;
use mlflow_api::webhooks::{WebhookEvent, WebhookStatus};
use mlflow_api::{WebhookId, Workspace};
use runtime::clock::{SimulatedClock, now_ms, sleep};
use secrets::SecretKeys;
use serde_json::Value;
use table::{Condition, Table};
use test_site::{TABLE, TestEnvironment};

use crate::receiver::Receivers;

pub(crate) const EVENT: WebhookEvent = WebhookEvent::ModelVersionCreated;

pub(crate) struct World {
    pub(crate) site: TestEnvironment,
    pub(crate) receivers: Arc<Receivers>,
    pub(crate) deliverer: Deliverer,
    local: LocalDeliverer,
    indexer: Indexer,
    stream: StreamReader,
}

/// Runs a test in simulated time.
pub(crate) fn simulated<'a>(test: impl Future<Output = ()> + 'a) -> LocalBoxFuture<'a, ()> {
    Box::pin(async move {
        let clock = SimulatedClock::begin();
        tokio::select! { () = test => {}, () = clock.drive() => {} }
    })
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|site| (site.table.clone(), site.table.clone()), SecretKeys::None).await
    }

    /// Returns a world whose indexer and function access the table through these two handles.
    pub(crate) async fn with(handles: impl FnOnce(&TestEnvironment) -> (Table, Table), keys: SecretKeys) -> Self {
        Self::configured(handles, keys, |deliverer| deliverer).await
    }

    /// Returns a world in which invocations have this maximum duration. It is measured in real
    /// time, not in simulated time.
    pub(crate) async fn limited_to(max_duration: Duration) -> Self {
        let handles = |site: &TestEnvironment| (site.table.clone(), site.table.clone());
        Self::configured(handles, SecretKeys::None, |deliverer| deliverer.with_max_duration(max_duration)).await
    }

    /// Replaces the function by one with the normal maximum duration of invocations.
    pub(crate) fn lift_limit(&mut self) {
        let table = self.site.table.clone();
        self.deliverer = Deliverer::new(table.clone(), self.receivers.clone(), Arc::new(SecretKeys::None));
        self.local = LocalDeliverer::new(self.deliverer.clone());
        self.indexer = Indexer::new(table).with_clock(now_ms).with_webhooks(Arc::new(self.local.clone()));
    }

    async fn configured(
        handles: impl FnOnce(&TestEnvironment) -> (Table, Table),
        keys: SecretKeys,
        configure: impl FnOnce(Deliverer) -> Deliverer,
    ) -> Self {
        let site = TestEnvironment::with_stream().await;
        let receivers = Arc::new(Receivers::default());
        let (of_indexer, of_function) = handles(&site);
        let deliverer = configure(Deliverer::new(of_function, receivers.clone(), Arc::new(keys)));
        let local = LocalDeliverer::new(deliverer.clone());
        let indexer = Indexer::new(of_indexer).with_clock(now_ms).with_webhooks(Arc::new(local.clone()));
        let stream = site.engine.stream(TABLE).await.unwrap().unwrap();
        Self { site, receivers, deliverer, local, indexer, stream }
    }

    pub(crate) async fn webhook(&self, url: &str) -> StoredWebhook {
        let now = now_ms();
        let webhook = StoredWebhook {
            id: new_webhook_id(),
            name: "hook".to_owned(),
            description: String::new(),
            url: url.to_owned(),
            events: vec![EVENT],
            unknown_events: Vec::new(),
            status: WebhookStatus::Active,
            secret: None,
            created: now,
            updated: now,
            changes: 0,
            imported: None,
        };
        self.put(&webhook).await;
        webhook
    }

    pub(crate) async fn put(&self, webhook: &StoredWebhook) {
        self.site.table.put(webhook.item(&Workspace::default()), &Condition::Always).await.unwrap();
    }

    /// Writes an event, as a call of the registry does.
    pub(crate) async fn event(&self, model: &str, body: &str, webhooks: &[WebhookId]) {
        let event = NewEvent {
            id: new_event_id(),
            workspace: &Workspace::default(),
            model: &ModelKey::from(model),
            event: EVENT,
            webhooks,
            body,
            created: now_ms(),
        };
        let write = event.write(&self.site.table).await.unwrap();
        self.site.table.transact(&[write]).await.unwrap();
    }

    /// Returns the records of the stream for the indexer, and removes them from the stream.
    pub(crate) async fn take_records(&self) -> Vec<Value> {
        let mut records = self.stream.oldest(1_000).await.unwrap();
        self.stream.forget_through(number(records.last().unwrap())).await.unwrap();
        records.retain(is_for_indexer);
        records
    }

    /// Has the indexer process all records of the stream, and waits until the invocations of the
    /// function that it caused have ended.
    pub(crate) async fn index(&self) {
        self.start().await;
        self.local.wait_until_idle().await;
    }

    pub(crate) async fn wait_until_idle(&self) {
        self.local.wait_until_idle().await;
    }

    /// Shuts the function down, as `serve` does when it ends.
    pub(crate) async fn shut_down(&self, patience: Duration) {
        self.local.shut_down(patience).await;
    }

    /// Has the indexer process the stream to its end, or until the indexer reports a failed record.
    /// The next call passes the failed batch to the indexer again.
    pub(crate) async fn start(&self) {
        loop {
            let mut records = self.stream.oldest(1_000).await.unwrap();
            let Some(last) = records.last().map(|last| number(last).to_owned()) else { return };
            records.retain(is_for_indexer);
            let is_any = !records.is_empty();
            let failures = self.indexer.handle(StreamBatch { records }).await.batch_item_failures;
            if is_any && !failures.is_empty() {
                return;
            }
            self.stream.forget_through(&last).await.unwrap();
        }
    }

    /// Has the indexer process the stream, and then runs a tick one minute later.
    pub(crate) async fn minute(&self) {
        self.index().await;
        sleep(Duration::from_mins(1)).await;
        self.tick().await;
        self.local.wait_until_idle().await;
    }

    /// Runs a tick, which invokes the function for queues that are due. Failures are ignored,
    /// because tests inject faults into the table.
    pub(crate) async fn tick(&self) {
        let _ = self.indexer.tick().await;
    }

    /// Lets the attempts to reach hanging receivers fail until no invocation runs.
    pub(crate) async fn end_hanging(&self) {
        let release = async {
            loop {
                self.receivers.end_hanging.notify_waiters();
                tokio::task::yield_now().await;
            }
        };
        tokio::select! { () = self.local.wait_until_idle() => {}, () = release => {} }
    }

    pub(crate) async fn minutes(&self, minutes: u32) {
        for _ in 0..minutes {
            self.minute().await;
        }
    }

    /// Returns the number of rows of queues and of pending deliveries.
    pub(crate) async fn pending(&self) -> usize {
        let is_pending = |item: &&Value| {
            let key = item["PK"]["S"].as_str().unwrap_or_default();
            key.starts_with("HOOK#QUEUE#") || key.starts_with("HOOK#TO#")
        };
        self.site.items().await.iter().filter(is_pending).count()
    }

    pub(crate) async fn dead(&self) -> Vec<StoredDelivery> {
        let page = StoredDelivery::dead(&self.site.table, &Workspace::default(), None).await.unwrap().unwrap();
        page.items.iter().map(|item| StoredDelivery::of(item).unwrap()).collect()
    }
}

fn number(record: &Value) -> &str {
    record["dynamodb"]["SequenceNumber"].as_str().unwrap()
}
