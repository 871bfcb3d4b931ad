//! The invocation of the function that delivers events. In AWS, it is invoked through Lambda; on a
//! laptop, it runs in the same process.

use std::fmt::Debug;

use futures::future::BoxFuture;
use mlflow_api::{WebhookId, Workspace};
use serde::{Deserialize, Serialize};

/// Why the function could not be invoked. The text is for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelivererFailure(pub String);

/// A request to attempt the pending deliveries of one webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryRequest {
    /// Name of the webhook's workspace.
    pub workspace: String,
    /// Id of the webhook.
    pub webhook: String,
    /// The models with pending deliveries, as written by `ModelKey::to_attribute`.
    pub models: Vec<String>,
}

/// A request to send one event to a webhook, in a single attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestRequest {
    /// Name of the webhook's workspace.
    pub workspace: String,
    /// Id of the webhook.
    pub webhook: String,
    /// The body to send.
    pub body: String,
}

/// The outcome of a single attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestOutcome {
    /// The receiver's status, if it responded.
    #[serde(default)]
    pub status: Option<u16>,
    /// The receiver's response, cut at 4,096 characters. Omitted where requests to private addresses
    /// are allowed.
    #[serde(default)]
    pub body: Option<String>,
    /// Why there was no response. The text is for the administrator who has requested the test.
    #[serde(default)]
    pub error: Option<String>,
}

/// Invokes the function that delivers events.
pub trait WebhookDeliverer: Debug + Send + Sync {
    /// Starts attempts of the pending deliveries, and does not wait for their outcome.
    ///
    /// # Errors
    /// Returns an error if the function cannot be invoked. The pending deliveries are attempted
    /// when a tick finds them.
    fn deliver(&self, request: DeliveryRequest) -> BoxFuture<'_, Result<(), DelivererFailure>>;

    /// Makes a single attempt, and returns its outcome.
    ///
    /// # Errors
    /// Returns an error if the function cannot be invoked.
    fn test(&self, request: TestRequest) -> BoxFuture<'_, Result<TestOutcome, DelivererFailure>>;
}

impl DeliveryRequest {
    /// Returns the workspace and the webhook, or `None` if one of them does not parse.
    #[must_use]
    pub fn webhook(&self) -> Option<(Workspace, WebhookId)> {
        Some((Workspace::stored(&self.workspace).ok()?, WebhookId::parse(&self.webhook)?))
    }
}

impl TestRequest {
    /// Returns the workspace and the webhook, or `None` if one of them does not parse.
    #[must_use]
    pub fn webhook(&self) -> Option<(Workspace, WebhookId)> {
        Some((Workspace::stored(&self.workspace).ok()?, WebhookId::parse(&self.webhook)?))
    }
}
