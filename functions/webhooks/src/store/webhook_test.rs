//! Tests of webhooks: one example event, sent by the function `deliver`.

use entities::now_ms;
use entities::webhooks::{DelivererFailure, TestRequest};
use mlflow_api::webhooks::{WebhookEvent, WebhookTestResult, example_body};
use mlflow_api::{Error, Result, Workspace};

use super::Store;

impl Store {
    /// Has the function `deliver` send an example event to a webhook. If `event` is `None`, uses
    /// the first event that the webhook subscribes to. The webhook may be disabled, and does not
    /// have to subscribe to `event`. Takes one request and one invocation.
    pub async fn webhook_test(
        &self,
        workspace: &Workspace,
        id: &str,
        event: Option<WebhookEvent>,
    ) -> Result<WebhookTestResult> {
        let webhook = self.webhook_find(workspace, id).await?;
        let first = || webhook.events.first().copied();
        let event = event.or_else(first).ok_or_else(|| Error::internal("a webhook has no events"))?;
        let Some(deliverer) = &self.deliverer else {
            let error = "Failed to test webhook: this server does not send events.".to_owned();
            return Ok(WebhookTestResult { error_message: Some(error), ..WebhookTestResult::default() });
        };
        let named = self.has_workspaces.then(|| workspace.as_str());
        let request = TestRequest {
            workspace: workspace.to_string(),
            webhook: webhook.id.to_string(),
            body: example_body(event, now_ms(), named),
        };
        let outcome = deliverer.test(request).await.map_err(|DelivererFailure(cause)| Error::unavailable(cause))?;
        Ok(WebhookTestResult {
            success: outcome.status.is_some_and(|status| status < 400),
            response_status: outcome.status.map(i32::from),
            response_body: outcome.body,
            error_message: outcome.error.map(|error| format!("Failed to test webhook: {error}")),
        })
    }
}
