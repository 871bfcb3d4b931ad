//! A webhook as it is stored.

use key_schema::attributes::{
    CHANGES, CREATED, DESCRIPTION, EVENTS, IMPORTED, NAME, SECRET, UPDATED, URL, WEBHOOK_STATUS,
};
use key_schema::{Key, Name, rows};
use mlflow_api::webhooks::{WebhookEvent, WebhookStatus};
use mlflow_api::{WebhookId, Workspace};
use table::{Item, bytes, bytes_set, number, text};

use crate::{now_ms, unreadable};

/// Purpose that the secrets of webhooks are bound to when they are sealed, so that they cannot be
/// opened as secrets of another kind.
pub const WEBHOOK_SECRET_PURPOSE: &str = "webhook";

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
    /// The events that the webhook subscribes to, in order.
    pub events: Vec<WebhookEvent>,
    /// Names of further events that the webhook subscribes to, which only a later version supports.
    pub unknown_events: Vec<String>,
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
    /// A hash of the record that the webhook was imported from, if it was imported.
    pub imported: Option<String>,
}

impl StoredWebhook {
    /// Returns the key of a webhook.
    #[must_use]
    pub fn key(workspace: &Workspace, id: WebhookId) -> Key {
        rows::Webhook::key(&Name::from(workspace.as_str()), &id)
    }

    /// Parses a webhook.
    ///
    /// # Errors
    /// Returns an error if the item is not a webhook.
    pub fn of(item: &Item) -> mlflow_api::Result<Self> {
        let read = || {
            let key = item.key()?;
            let (mut events, mut unknown_events) = (Vec::new(), Vec::new());
            for name in item.elements(EVENTS) {
                let name = std::str::from_utf8(name.as_ref()).ok()?;
                match WebhookEvent::parse(name) {
                    Some(event) => events.push(event),
                    None => unknown_events.push(name.to_owned()),
                }
            }
            events.sort_unstable();
            unknown_events.sort_unstable();
            Some(Self {
                id: rows::Webhook::parse(&key)?.webhook,
                name: item.get(NAME)?.to_owned(),
                description: item.get(DESCRIPTION).unwrap_or_default().to_owned(),
                url: item.get(URL)?.to_owned(),
                events,
                unknown_events,
                status: WebhookStatus::parse(item.get(WEBHOOK_STATUS)?)?,
                secret: item.bytes(SECRET).map(<[u8]>::to_vec),
                created: item.get(CREATED)?,
                updated: item.get(UPDATED)?,
                changes: item.get(CHANGES)?,
                imported: item.get(IMPORTED).map(str::to_owned),
            })
        };
        read().ok_or_else(|| unreadable(item, "a webhook"))
    }

    /// Returns the item of the webhook.
    #[must_use]
    pub fn item(&self, workspace: &Workspace) -> Item {
        let events = self.event_names().map(|name| name.as_bytes().to_vec());
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
        let item = self.imported.iter().fold(item, |item, imported| item.with(IMPORTED.name(), text(imported)));
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

    /// Returns the names of all events that the webhook subscribes to, including those that only a
    /// later version supports.
    pub fn event_names(&self) -> impl Iterator<Item = &str> {
        self.events.iter().map(|event| event.name()).chain(self.unknown_events.iter().map(String::as_str))
    }

    /// Checks whether the webhook is to receive an event of this name.
    #[must_use]
    pub fn receives(&self, event: &str) -> bool {
        self.is_active() && self.event_names().any(|name| name == event)
    }
}
