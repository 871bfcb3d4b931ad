//! The invocation of the function `deliver` through Lambda.

use std::time::Duration;

use futures::future::BoxFuture;
use runtime::aws::LambdaClient;
use serde::Serialize;

use super::deliverer::{DelivererFailure, DeliveryRequest, TestOutcome, TestRequest, WebhookDeliverer};

/// Timeout of a test. It is longer than the timeout of its attempt, and shorter than the timeout of
/// the function that responds to the client.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// The function `deliver` in AWS.
#[derive(Debug)]
pub struct LambdaDeliverer {
    client: LambdaClient,
    function: String,
}

impl LambdaDeliverer {
    /// Creates a client for the function of this name.
    #[must_use]
    pub fn new(client: LambdaClient, function: impl Into<String>) -> Self {
        Self { client, function: function.into() }
    }

    /// Creates a client for the function `deliver` of the stack that the function `own_name` of this
    /// process belongs to. Functions of a stack have the same prefix (`domains/src/template`).
    ///
    /// # Errors
    /// Returns an error if no region or no credentials are configured, or if the process is not the
    /// function `own_name`.
    pub async fn of_stack(own_name: &str) -> Result<Self, DelivererFailure> {
        let own = std::env::var("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default();
        let prefix = own
            .strip_suffix(own_name)
            .ok_or_else(|| DelivererFailure(format!("the name of the function {own:?} does not end in {own_name}")))?;
        let client = LambdaClient::from_environment().await.map_err(|error| DelivererFailure(error.to_string()))?;
        Ok(Self::new(client, format!("{prefix}deliver")))
    }
}

fn json(request: &impl Serialize) -> Result<Vec<u8>, DelivererFailure> {
    serde_json::to_vec(request).map_err(|error| DelivererFailure(error.to_string()))
}

impl WebhookDeliverer for LambdaDeliverer {
    fn deliver(&self, request: DeliveryRequest) -> BoxFuture<'_, Result<(), DelivererFailure>> {
        Box::pin(async move {
            let invoked = self.client.invoke_async(&self.function, json(&request)?).await;
            invoked.map_err(|error| DelivererFailure(error.to_string()))
        })
    }

    fn test(&self, request: TestRequest) -> BoxFuture<'_, Result<TestOutcome, DelivererFailure>> {
        Box::pin(async move {
            let answer = self.client.invoke(&self.function, json(&request)?, TEST_TIMEOUT).await;
            let answer = answer.map_err(|error| DelivererFailure(error.to_string()))?;
            serde_json::from_slice(&answer).map_err(|error| DelivererFailure(error.to_string()))
        })
    }
}
