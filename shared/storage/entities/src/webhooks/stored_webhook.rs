//! A webhook as it is stored.

use key_schema::attributes::{CHANGES, CREATED, DESCRIPTION, EVENTS, NAME, SECRET, UPDATED, URL, WEBHOOK_STATUS};
use key_schema::{Key, Name, rows};
use mlflow_api::webhooks::{WebhookEvent, WebhookStatus};
use mlflow_api::{WebhookId, Workspace};
use table::{Item, bytes, bytes_set, number, text};

use crate::{now_ms, unreadable};

/// Returns the id of a new webhook.
#[must_use]
pub fn new_webhook_id() -> WebhookId {
    WebhookId::new(now_ms(), rand::random())
}

/// A webhook as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredWebhook {
    /// The id.
    pub id: WebhookId,
    /// The name.
    pub name: String,
    /// The description, possibly empty.
    pub description: String,
    /// The address that events are sent to.
    pub url: String,
    /// The events that it subscribes to, in order.
    pub events: Vec<WebhookEvent>,
    /// The status.
    pub status: WebhookStatus,
    /// The sealed secret, if deliveries are signed.
    pub secret: Option<Vec<u8>>,
    /// The creation time, in ms.
    pub created: i64,
    /// The time of the last change, in ms.
    pub updated: i64,
    /// The number of changes.
    pub changes: i64,
}

impl StoredWebhook {
    /// Returns the key of a webhook.
    #[must_use]
    pub fn key(workspace: &Workspace, id: WebhookId) -> Key {
        rows::Webhook::key(&Name::from(workspace.as_str()), &id)
    }

    /// Parses a webhook. Unknown events, which a later version may have stored, are omitted.
    ///
    /// # Errors
    /// Returns an error if the item is not a webhook.
    pub fn of(item: &Item) -> mlflow_api::Result<Self> {
        let read = || {
            let key = item.key()?;
            let mut events: Vec<_> = item.elements(EVENTS).iter().filter_map(event_of).collect();
            events.sort_unstable();
            Some(Self {
                id: rows::Webhook::parse(&key)?.webhook,
                name: item.get(NAME)?.to_owned(),
                description: item.get(DESCRIPTION).unwrap_or_default().to_owned(),
                url: item.get(URL)?.to_owned(),
                events,
                status: WebhookStatus::parse(item.get(WEBHOOK_STATUS)?)?,
                secret: item.bytes(SECRET).map(<[u8]>::to_vec),
                created: item.get(CREATED)?,
                updated: item.get(UPDATED)?,
                changes: item.get(CHANGES)?,
            })
        };
        read().ok_or_else(|| unreadable(item, "a webhook"))
    }

    /// Returns the item of the webhook.
    #[must_use]
    pub fn item(&self, workspace: &Workspace) -> Item {
        let events = self.events.iter().map(|event| event.name().as_bytes().to_vec());
        let item = Item::new(Self::key(workspace, self.id))
            .with(NAME.name(), text(&self.name))
            .with(URL.name(), text(&self.url))
            .with(EVENTS.name(), bytes_set(events))
            .with(WEBHOOK_STATUS.name(), text(self.status.name()))
            .with(CREATED.name(), number(self.created))
            .with(UPDATED.name(), number(self.updated))
            .with(CHANGES.name(), number(self.changes));
        let item =
            if self.description.is_empty() { item } else { item.with(DESCRIPTION.name(), text(&self.description)) };
        match &self.secret {
            Some(secret) => item.with(SECRET.name(), bytes(secret.clone())),
            None => item,
        }
    }

    /// Checks whether the webhook receives events.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.status == WebhookStatus::Active
    }

    /// Checks whether the webhook is to receive an event.
    #[must_use]
    pub fn receives(&self, event: WebhookEvent) -> bool {
        self.is_active() && self.events.contains(&event)
    }
}

fn event_of(name: &impl AsRef<[u8]>) -> Option<WebhookEvent> {
    WebhookEvent::parse(std::str::from_utf8(name.as_ref()).ok()?)
}
