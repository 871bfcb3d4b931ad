//! Delivers events in the process of a local server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use entities::webhooks::{DelivererFailure, DeliveryRequest, TestOutcome, TestRequest, WebhookDeliverer};
use futures::future::BoxFuture;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::Deliverer;

/// Maximum number of concurrent invocations per webhook. Further requests to deliver are dropped,
/// because their queues remain due and the next tick requests their delivery again.
const MAX_INVOCATIONS: u32 = 4;
/// How long a shutdown waits for the release of leases, after it has abandoned the attempts in
/// flight.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);
/// Capacity of the map of running invocations, in webhooks. When the map is full, webhooks without
/// a running invocation are removed.
const MAX_COUNTED: usize = 1_000;

/// A replacement for the Lambda function that runs the deliverer in tasks of this process.
#[derive(Clone, Debug)]
pub struct LocalDeliverer {
    deliverer: Deliverer,
    running: Arc<Mutex<HashMap<String, Arc<Semaphore>>>>,
}

impl LocalDeliverer {
    /// Creates a local replacement for the Lambda function, which runs this deliverer.
    #[must_use]
    pub fn new(deliverer: Deliverer) -> Self {
        Self { deliverer, running: Arc::default() }
    }

    /// Ends all invocations, so that no queue is still leased when the process ends. Attempts in
    /// flight have the time `patience` to complete. After that, they are abandoned, and the next
    /// process makes them again.
    pub async fn shut_down(&self, patience: Duration) {
        self.deliverer.shutdown.begin();
        if timeout(patience, self.wait_until_idle()).await.is_ok() {
            return;
        }
        self.deliverer.shutdown.abort();
        if timeout(RELEASE_TIMEOUT, self.wait_until_idle()).await.is_err() {
            tracing::warn!("queues of deliveries remain leased, and wait until their leases expire");
        }
    }

    /// Waits until no invocation runs.
    pub async fn wait_until_idle(&self) {
        let running: Vec<_> = self.running.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        for permits in running {
            // The semaphore is never closed, so this cannot fail. All permits are available only
            // when no invocation runs.
            let _ = permits.acquire_many(MAX_INVOCATIONS).await;
        }
    }

    fn permits(&self, webhook: &str) -> Arc<Semaphore> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.len() >= MAX_COUNTED {
            running.retain(|_, permits| permits.available_permits() < MAX_INVOCATIONS as usize);
        }
        Arc::clone(
            running.entry(webhook.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(MAX_INVOCATIONS as usize))),
        )
    }
}

impl WebhookDeliverer for LocalDeliverer {
    fn deliver(&self, request: DeliveryRequest) -> BoxFuture<'_, Result<(), DelivererFailure>> {
        Box::pin(async move {
            let Ok(permit) = self.permits(&request.webhook).try_acquire_owned() else { return Ok(()) };
            let deliverer = self.deliverer.clone();
            tokio::spawn(async move {
                if let Err(failure) = deliverer.deliver(&request).await {
                    tracing::warn!(?failure, "events could not be delivered");
                }
                drop(permit);
            });
            Ok(())
        })
    }

    fn test(&self, request: TestRequest) -> BoxFuture<'_, Result<TestOutcome, DelivererFailure>> {
        Box::pin(async move {
            self.deliverer.test(&request).await.map_err(|failure| DelivererFailure(format!("{failure:?}")))
        })
    }
}
