//! Changes of webhooks. Each change also writes the row with the subscriptions of the workspace.
//! Every process that runs calls of the model registry caches this row for a second.

use entities::webhooks::{StoredWebhook, WorkspaceSubscriptions, new_webhook_id};
use entities::{if_closed, now_ms};
use key_schema::attributes::CHANGES;
use mlflow_api::webhooks::{
    MAX_WEBHOOKS, WebhookEntry, WebhookEvent, WebhookStatus, check_description, check_events, check_name,
};
use mlflow_api::{Error, ErrorCode, Result, WebhookId, Workspace};
use table::{ChangePlan, Condition, Item, Write, number};

use super::Store;
use super::target_url::check_url;
use super::webhook_reads::{entry, parse_id, webhook_not_found};

/// A webhook to create.
#[derive(Clone, Debug, Default)]
pub struct NewWebhook {
    /// Name.
    pub name: String,
    /// URL that events are sent to.
    pub url: String,
    /// Events as sent.
    pub events: Vec<WebhookEvent>,
    /// Description. May be empty.
    pub description: String,
    /// Secret that signs deliveries. Empty for none.
    pub secret: String,
    /// Status.
    pub status: WebhookStatus,
}

/// A change of a webhook. `None` leaves a field as it is.
#[derive(Clone, Debug, Default)]
pub struct WebhookChange {
    /// Name.
    pub name: Option<String>,
    /// URL.
    pub url: Option<String>,
    /// Events as sent.
    pub events: Option<Vec<WebhookEvent>>,
    /// Description. An empty text removes it.
    pub description: Option<String>,
    /// Secret. An empty text removes it.
    pub secret: Option<String>,
    /// Status.
    pub status: Option<WebhookStatus>,
}

/// A change that has been checked.
struct CheckedChange {
    change: WebhookChange,
    /// The events, sorted. `None` leaves them as they are.
    events: Option<Vec<WebhookEvent>>,
    /// The secret of the change, sealed. `None` if the change has no secret or an empty one.
    sealed: Option<Vec<u8>>,
}

impl CheckedChange {
    /// Returns the webhook with the change applied at `now`, in ms.
    fn applied_to(&self, webhook: StoredWebhook, now: i64) -> StoredWebhook {
        let Self { change, events, sealed } = self;
        let WebhookChange { name, url, description, secret, status, .. } = change;
        StoredWebhook {
            name: name.clone().unwrap_or(webhook.name),
            url: url.clone().unwrap_or(webhook.url),
            description: description.clone().unwrap_or(webhook.description),
            // New events replace all stored ones, including those that only a later version
            // supports.
            unknown_events: if events.is_some() { Vec::new() } else { webhook.unknown_events },
            events: events.clone().unwrap_or(webhook.events),
            secret: if secret.is_some() { sealed.clone() } else { webhook.secret },
            status: status.unwrap_or(webhook.status),
            updated: now,
            changes: webhook.changes + 1,
            ..webhook
        }
    }
}

impl Store {
    /// Delays the outcome of a change until every process uses the new subscriptions. Errors of the
    /// client are not delayed, because nothing has changed. The exception is the error that the
    /// webhook does not exist, because an earlier attempt of the request may have deleted it.
    async fn once_known<T>(&self, outcome: Result<T>) -> Result<T> {
        let is_settled = outcome
            .as_ref()
            .is_err_and(|error| error.code.http_status() < 500 && error.code != ErrorCode::ResourceDoesNotExist);
        if !is_settled {
            runtime::clock::sleep(self.lease).await;
        }
        outcome
    }

    /// Creates a webhook, and returns it a second later. Takes two requests and costs four write
    /// units for up to 1 KB. Checking the URL and sealing the secret take requests to other
    /// services.
    pub async fn webhook_create(&self, workspace: &Workspace, new: NewWebhook) -> Result<WebhookEntry> {
        check_name(&new.name)?;
        check_url(&self.outbound, &new.url).await?;
        let events = check_events(new.events)?;
        check_description(&new.description)?;
        let id = new_webhook_id();
        let secret = self.sealed(workspace, id, &new.secret).await?;
        let now = now_ms();
        let webhook = StoredWebhook {
            id,
            name: new.name,
            description: new.description,
            url: new.url,
            events,
            unknown_events: Vec::new(),
            status: new.status,
            secret,
            created: now,
            updated: now,
            changes: 0,
            imported: None,
        };
        let webhook = &webhook;
        let created = self.table.change("the webhooks of a workspace", |refusal| async move {
            let check = self.authorizer_writes.workspace_open_condition(workspace);
            // The order of the writes is the webhook, the subscriptions, and the check of the
            // workspace.
            let closed = if_closed(workspace, refusal.0.get(2).filter(|_| check.is_some()));
            if let Some(closed) = closed {
                return Err(closed);
            }
            let subscriptions = self.subscriptions_after(workspace, refusal.item(1)).await?;
            if subscriptions.count() as usize >= MAX_WEBHOOKS {
                return Err(Error::invalid(format!(
                    "A workspace has at most {MAX_WEBHOOKS} webhooks. Delete one that is not needed any more."
                )));
            }
            let others = std::iter::once(subscriptions.with_change(workspace, None, Some(webhook))).chain(check);
            Ok::<_, Error>(ChangePlan::Create(webhook.item(workspace), others.collect(), ()))
        });
        self.once_known(created.await).await?;
        Ok(entry(webhook.clone()))
    }

    /// Changes a webhook, and returns it a second later. Takes three requests and costs four write
    /// units for up to 1 KB. Checking a URL and sealing a secret take requests to other services.
    pub async fn webhook_update(&self, workspace: &Workspace, id: &str, change: WebhookChange) -> Result<WebhookEntry> {
        let found = match self.webhook_find(workspace, id).await {
            Ok(found) => found,
            Err(error) => return self.once_known(Err(error)).await,
        };
        let checked = self.checked(workspace, found.id, change).await?;
        let checked = &checked;
        let changed = self.webhook_replace(workspace, found.id, |webhook| Some(checked.applied_to(webhook, now_ms())));
        let webhook = self.once_known(changed.await).await?;
        webhook.map(entry).ok_or_else(|| webhook_not_found(id))
    }

    /// Deletes a webhook, and returns a second later. Takes two requests and costs four write
    /// units. Pending deliveries to the webhook are not attempted any more.
    pub async fn webhook_delete(&self, workspace: &Workspace, id: &str) -> Result<()> {
        let deleted = match parse_id(id) {
            Ok(id) => self.webhook_replace(workspace, id, |_| None).await.map(drop),
            Err(error) => Err(error),
        };
        self.once_known(deleted).await
    }

    /// Checks a change in MLflow's order, and seals its secret.
    async fn checked(&self, workspace: &Workspace, id: WebhookId, mut change: WebhookChange) -> Result<CheckedChange> {
        if let Some(name) = &change.name {
            check_name(name)?;
        }
        if let Some(url) = &change.url {
            check_url(&self.outbound, url).await?;
        }
        let events = change.events.take().map(check_events).transpose()?;
        if let Some(description) = &change.description {
            check_description(description)?;
        }
        let sealed = self.sealed(workspace, id, change.secret.as_deref().unwrap_or_default()).await?;
        Ok(CheckedChange { change, events, sealed })
    }

    /// Replaces a webhook by the one that `change` returns, or deletes it if `change` returns
    /// `None`. Returns the new state. Takes two requests.
    async fn webhook_replace(
        &self,
        workspace: &Workspace,
        id: WebhookId,
        change: impl Fn(StoredWebhook) -> Option<StoredWebhook>,
    ) -> Result<Option<StoredWebhook>> {
        let change = &change;
        let key = &StoredWebhook::key(workspace, id);
        self.table
            .change("a webhook", |refusal| async move {
                let check = self.authorizer_writes.workspace_open_condition(workspace);
                // The transaction writes the webhook and the subscriptions, and checks the
                // workspace third.
                let closed = if_closed(workspace, refusal.0.get(2).filter(|_| check.is_some()));
                if let Some(closed) = closed {
                    return Err(closed);
                }
                let of_workspace = WorkspaceSubscriptions::key(workspace);
                let items = self.table.get_many(&[key.clone(), of_workspace.clone()]).await?;
                let item = items.get(key).ok_or_else(|| webhook_not_found(&id.to_string()))?;
                let before = StoredWebhook::of(item)?;
                let after = change(before.clone());
                let unchanged = Condition::Equals(CHANGES.into(), number(before.changes));
                let of_webhook = match &after {
                    Some(after) => Write::Put(after.item(workspace), unchanged),
                    None => Write::Delete(key.clone(), unchanged),
                };
                let subscriptions = WorkspaceSubscriptions::of(items.get(&of_workspace));
                let of_subscriptions = subscriptions.with_change(workspace, Some(&before), after.as_ref());
                let writes = [of_webhook, of_subscriptions].into_iter().chain(check);
                Ok::<_, Error>(ChangePlan::Write(writes.collect(), after))
            })
            .await
    }

    /// Returns the subscriptions of the workspace. Parses the item that came with a failed
    /// condition, if there is one, and otherwise takes one request.
    async fn subscriptions_after(&self, workspace: &Workspace, item: Option<Item>) -> Result<WorkspaceSubscriptions> {
        let item = match item {
            Some(item) => Some(item),
            None => self.table.get(&WorkspaceSubscriptions::key(workspace)).await?,
        };
        Ok(WorkspaceSubscriptions::of(item.as_ref()))
    }
}
