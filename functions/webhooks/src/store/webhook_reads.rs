//! Reads of webhooks.

use entities::webhooks::StoredWebhook;
use key_schema::{KeyRange, rows};
use mlflow_api::webhooks::{ListWebhooksResponse, WebhookEntry};
use mlflow_api::{Error, Result, WebhookId, Workspace};
use search::{Fingerprint, decode_page_token, encode_page_token};
use table::Query;

use super::Store;

/// Returns MLflow's error for a webhook that does not exist.
pub(super) fn webhook_not_found(id: &str) -> Error {
    Error::not_found(format!("Webhook with ID {id} not found."))
}

/// Parses the id in a request. Fails with the error for missing webhooks if the text is not an id.
pub(super) fn parse_id(id: &str) -> Result<WebhookId> {
    WebhookId::parse(id).ok_or_else(|| webhook_not_found(id))
}

/// Returns a webhook as it is shown to clients.
pub(super) fn entry(webhook: StoredWebhook) -> WebhookEntry {
    WebhookEntry {
        webhook_id: webhook.id.to_string(),
        name: webhook.name,
        description: webhook.description,
        url: webhook.url,
        events: webhook.events,
        status: webhook.status,
        creation_timestamp: webhook.created,
        last_updated_timestamp: webhook.updated,
    }
}

impl Store {
    /// Reads a webhook. Takes one request.
    pub async fn webhook_get(&self, workspace: &Workspace, id: &str) -> Result<WebhookEntry> {
        self.webhook_find(workspace, id).await.map(entry)
    }

    /// Reads a webhook as it is stored. Takes one request.
    pub(super) async fn webhook_find(&self, workspace: &Workspace, id: &str) -> Result<StoredWebhook> {
        let key = StoredWebhook::key(workspace, parse_id(id)?);
        let item = self.table.get(&key).await?.ok_or_else(|| webhook_not_found(id))?;
        StoredWebhook::of(&item)
    }

    /// Returns a page of the webhooks of a workspace, newest first. Takes one request.
    pub async fn webhook_list(
        &self,
        workspace: &Workspace,
        page_size: usize,
        page_token: &str,
    ) -> Result<ListWebhooksResponse> {
        let fingerprint = Fingerprint::of_webhook_list(workspace.as_str());
        let after = decode_page_token::<String>(fingerprint, page_token)?;
        let after = after.map(|after| parse_id(&after)).transpose()?;
        let mut range = KeyRange::from(rows::Webhook::all(&workspace.as_str().into()));
        if let Some(last) = &after {
            range = range.until(&last.to_string());
        }
        // The range includes the last webhook of the previous page, which is removed below.
        let page = self.table.query_page(&Query::of(range).backwards().limit(page_size + 2)).await?;
        let webhooks = page.items.iter().map(StoredWebhook::of).collect::<Result<Vec<_>>>()?;
        let mut webhooks: Vec<_> =
            webhooks.into_iter().filter(|webhook| after.is_none_or(|last| webhook.id < last)).map(entry).collect();
        let has_more = webhooks.len() > page_size || page.next.is_some();
        webhooks.truncate(page_size);
        let last = webhooks.last().filter(|_| has_more);
        let next_page_token = last.map(|last| encode_page_token(fingerprint, &last.webhook_id)).transpose()?;
        Ok(ListWebhooksResponse { webhooks, next_page_token })
    }
}
