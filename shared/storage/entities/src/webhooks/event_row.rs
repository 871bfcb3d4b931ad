//! The rows of events.
//!
//! An event is written in the transaction of the call that it reports. A transaction has at most 4
//! MB, and a creation may need almost all of them, so a large body is written before the
//! transaction, in parts. If the transaction then fails, the parts expire.

use key_schema::attributes::{BODY, CREATED, EXPIRES, HOOK, MODEL, NAME, PARTS, WEBHOOKS};
use key_schema::{Key, ModelKey, Ordinal, rows};
use mlflow_api::webhooks::WebhookEvent;
use mlflow_api::{WebhookEventId, WebhookId, Workspace};
use table::{Condition, Item, Result, Table, Write, bytes_set, number, text};

use crate::{in_workspace, now_ms, unreadable, workspace_named};

/// How long events are stored, in seconds: up to a day in the stream, a day of attempts, and 14 days
/// in which a failed delivery can be repeated.
pub const EVENT_RETENTION_SECONDS: i64 = 16 * 24 * 60 * 60;
/// Size of a body, in bytes, above which it is stored in parts.
pub const MAX_INLINE_BODY_BYTES: usize = 100_000;
/// Maximum size of a part, in bytes. An item has at most 400 KB.
const MAX_PART_BYTES: usize = 380_000;

/// Returns the id of a new event.
#[must_use]
pub fn new_event_id() -> WebhookEventId {
    WebhookEventId::new(now_ms(), rand::random())
}

/// An event that is about to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewEvent<'a> {
    /// The id. It is the same for every attempt of the call, so that a repeated transaction writes
    /// the same row.
    pub id: WebhookEventId,
    /// The workspace.
    pub workspace: &'a Workspace,
    /// The model that the event is about. Events of a model are delivered in order.
    pub model: &'a ModelKey,
    /// The event.
    pub event: WebhookEvent,
    /// The webhooks that subscribe to the event, at least one.
    pub webhooks: &'a [WebhookId],
    /// The body of the deliveries.
    pub body: &'a str,
    /// Time in ms at which the call was received.
    pub created: i64,
}

impl NewEvent<'_> {
    /// Returns the write of the event's row, for the transaction of its call. If the body is large,
    /// first writes its parts.
    ///
    /// # Errors
    /// Returns an error if the parts cannot be written.
    pub async fn write(&self, table: &Table) -> Result<Write> {
        let expires = self.created / 1_000 + EVENT_RETENTION_SECONDS;
        let webhooks = self.webhooks.iter().map(|webhook| webhook.to_string().into_bytes());
        let item = Item::new(rows::WebhookEvent::key(self.model, &self.id))
            .with(HOOK.name(), number(1))
            .with(NAME.name(), text(self.event.name()))
            .with(MODEL.name(), text(self.model.to_attribute()))
            .with(WEBHOOKS.name(), bytes_set(webhooks))
            .with(CREATED.name(), number(self.created))
            .with(EXPIRES.name(), number(expires));
        let item = in_workspace(item, self.workspace);
        if self.body.len() <= MAX_INLINE_BODY_BYTES {
            return Ok(Write::Put(item.with(BODY.name(), text(self.body)), Condition::Always));
        }
        let mut parts = Vec::new();
        for (number_of_part, part) in (0..).zip(body_parts(self.body)) {
            let key = rows::WebhookEventPart::key(self.model, &self.id, &Ordinal(number_of_part));
            parts.push(Item::new(key).with(BODY.name(), text(part)).with(EXPIRES.name(), number(expires)));
        }
        let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        table.write_many(parts, &[]).await?;
        Ok(Write::Put(item.with(PARTS.name(), number(count)), Condition::Always))
    }
}

/// Splits a body into parts, between characters.
fn body_parts(body: &str) -> impl Iterator<Item = &str> {
    let mut rest = body;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (part, others) = rest.split_at(rest.floor_char_boundary(MAX_PART_BYTES));
        rest = others;
        Some(part)
    })
}

/// An event as it is stored, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// The id.
    pub id: WebhookEventId,
    /// The workspace.
    pub workspace: Workspace,
    /// The model that the event is about.
    pub model: ModelKey,
    /// The name of the event. A later version may have stored an event whose name this version does
    /// not know. This version delivers it nevertheless.
    pub name: String,
    /// The webhooks that subscribed to the event when it was written.
    pub webhooks: Vec<WebhookId>,
    /// Time in ms at which the call was received.
    pub created: i64,
    body: Option<String>,
    parts: u32,
}

impl StoredEvent {
    /// Returns the key of an event.
    #[must_use]
    pub fn key(model: &ModelKey, id: WebhookEventId) -> Key {
        rows::WebhookEvent::key(model, &id)
    }

    /// Parses an event.
    ///
    /// # Errors
    /// Returns an error if the item is not an event.
    pub fn of(item: &Item) -> mlflow_api::Result<Self> {
        let workspace = workspace_named(item.get(key_schema::attributes::WORKSPACE))?;
        let read = || {
            let webhooks = item.elements(WEBHOOKS).iter();
            Some(Self {
                id: rows::WebhookEvent::parse(&item.key()?)?.event,
                workspace,
                model: ModelKey::from(item.get(MODEL)?),
                name: item.get(NAME)?.to_owned(),
                webhooks: webhooks.filter_map(|id| WebhookId::parse(std::str::from_utf8(id.as_ref()).ok()?)).collect(),
                created: item.get(CREATED)?,
                body: item.get(BODY).map(str::to_owned),
                parts: item.get(PARTS).unwrap_or_default(),
            })
        };
        read().ok_or_else(|| unreadable(item, "an event"))
    }

    /// Returns the body of the event's deliveries. Returns `None` if a part of the body is missing.
    /// Takes no request unless the body has parts.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn body(&self, table: &Table) -> Result<Option<String>> {
        if let Some(body) = &self.body {
            return Ok(Some(body.clone()));
        }
        let keys: Vec<_> =
            (0..self.parts).map(|part| rows::WebhookEventPart::key(&self.model, &self.id, &Ordinal(part))).collect();
        let parts = table.get_many(&keys).await?;
        Ok(keys.iter().map(|key| parts.get(key)?.get(BODY)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_PART_BYTES, body_parts};

    #[test]
    fn a_body_is_split_between_characters() {
        let body = "é".repeat(MAX_PART_BYTES);
        let parts: Vec<_> = body_parts(&body).collect();
        assert_eq!(parts.len(), 2);
        assert_eq!(parts.concat(), body);
        let body = format!("a{body}");
        assert!(body_parts(&body).all(|part| part.len() <= MAX_PART_BYTES));
        assert_eq!(body_parts(&body).collect::<String>(), body);
    }
}
