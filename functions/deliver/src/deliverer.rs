//! The entry points of the function: delivering pending events, and testing a webhook.

use std::sync::Arc;
use std::time::Duration;

use entities::webhooks::{DeliveryRequest, QueueId, StoredWebhook, TestOutcome, TestRequest};
use futures::stream::{self, StreamExt};
use key_schema::ModelKey;
use mlflow_api::{WebhookId, Workspace};
use secrets::SecretKeys;
use serde::Deserialize;
use table::{Failure, Result, Table};
use tokio::time::timeout;

use crate::attempt::{AttemptFailure, attempt, uuid};
use crate::context::Context;
use crate::declaration::FUNCTION;
use crate::queue_delivery::Invocation;
use crate::sender::{SendFailure, Sender};
use crate::shutdown::Shutdown;

/// Maximum duration of an invocation. It is shorter than the timeout of the function, so that an
/// invocation that takes too long is logged as a failure. It is also shorter than the lease on a
/// queue, so that the invocation ends before another one can lease the queue.
const MAX_DURATION: Duration = Duration::from_secs(1).saturating_mul(FUNCTION.timeout - 5);
/// Number of queues that an invocation delivers from concurrently.
const CONCURRENCY: usize = 10;
/// Timeout for sending the event of a test.
const TEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of the response that a test returns, in characters.
const MAX_SHOWN_LENGTH: usize = 4_096;

/// The input of the function.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum DelivererEvent {
    /// A test of a webhook.
    Test(TestRequest),
    /// A webhook, and the models whose events may be due for delivery to it.
    Deliver(DeliveryRequest),
}

/// The function that delivers events and tests webhooks. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Deliverer {
    context: Context,
    max_duration: Duration,
    pub(crate) shutdown: Shutdown,
}

impl Deliverer {
    /// Creates the deliverer of a table.
    #[must_use]
    pub fn new(table: Table, sender: Arc<dyn Sender>, keys: Arc<SecretKeys>) -> Self {
        let context = Context { table: table.in_background(), sender, keys };
        Self { context, max_duration: MAX_DURATION, shutdown: Shutdown::new() }
    }

    /// Sets another limit for the duration of an invocation, for tests.
    #[must_use]
    pub fn with_max_duration(self, max_duration: Duration) -> Self {
        Self { max_duration, ..self }
    }

    /// Delivers the events that are due in the queues of a webhook. The events of a queue are
    /// delivered in order, and queues do not wait for each other.
    ///
    /// # Errors
    /// Returns the first failure to access the table, after all queues were tried, or a failure if
    /// the invocation takes too long. A later tick invokes the delivery of the affected queues
    /// again, at the latest after their leases have expired.
    pub async fn deliver(&self, request: &DeliveryRequest) -> Result<()> {
        let delivered = timeout(self.max_duration, self.deliver_queues(request));
        let delivered = async {
            let too_long = || Failure::Unavailable("an invocation has taken too long".to_owned());
            delivered.await.unwrap_or_else(|_| Err(too_long()))
        };
        Box::pin(service::log_work("deliver", delivered)).await
    }

    async fn deliver_queues(&self, request: &DeliveryRequest) -> Result<()> {
        let Some((workspace, webhook)) = request.webhook() else {
            return Err(Failure::Unexpected("the request names no webhook".to_owned()));
        };
        let invocation = Invocation::begin(self.shutdown.clone());
        let queues = request.models.iter().map(|model| {
            let queue = QueueId { workspace: workspace.clone(), webhook, model: ModelKey::from(model.as_str()) };
            let invocation = &invocation;
            async move { self.context.deliver_queue(&queue, invocation).await }
        });
        let outcomes = stream::iter(queues.collect::<Vec<_>>()).buffer_unordered(CONCURRENCY);
        let failures = outcomes.filter_map(async |outcome| {
            outcome.inspect_err(|failure| tracing::error!(?failure, "a queue could not be delivered")).err()
        });
        failures.collect::<Vec<_>>().await.into_iter().next().map_or(Ok(()), Err)
    }

    /// Makes a single attempt to send a body to a webhook, which may be disabled.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn test(&self, request: &TestRequest) -> Result<TestOutcome> {
        Box::pin(service::log_work("test", self.send_test(request))).await
    }

    async fn send_test(&self, request: &TestRequest) -> Result<TestOutcome> {
        let error = |error: String| TestOutcome { error: Some(error), ..TestOutcome::default() };
        let Some((workspace, id)) = request.webhook() else {
            return Err(Failure::Unexpected("the request names no webhook".to_owned()));
        };
        let Some(webhook) = self.webhook(&workspace, id).await? else {
            return Ok(error(format!("The webhook {id} has been deleted.")));
        };
        let delivery = uuid(rand::random());
        let through = (&*self.context.sender, &*self.context.keys);
        Ok(match attempt(through, &workspace, &webhook, (delivery, &request.body), TEST_TIMEOUT).await {
            Ok(response) => {
                let text = String::from_utf8_lossy(&response.body);
                let shown = || text.chars().take(MAX_SHOWN_LENGTH).collect();
                let body = self.context.sender.shows_responses().then(shown);
                TestOutcome { status: Some(response.status), body, error: None }
            }
            Err(AttemptFailure::Secret(cause)) => error(cause.to_string()),
            Err(AttemptFailure::Sending(
                SendFailure::Refused(cause) | SendFailure::Unresponsive(cause) | SendFailure::Broken(cause),
            )) => error(cause),
        })
    }

    async fn webhook(&self, workspace: &Workspace, id: WebhookId) -> Result<Option<StoredWebhook>> {
        let item = self.context.table.get(&StoredWebhook::key(workspace, id)).await?;
        item.map(|item| StoredWebhook::of(&item).map_err(|error| Failure::Unreadable(error.message))).transpose()
    }
}
