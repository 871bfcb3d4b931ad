//! Webhooks in a copy.
//!
//! A copy must not send the events of the original a second time, and its key for secrets may differ
//! from the key of the original. Webhooks are therefore copied disabled and without their secrets.
//! Events and deliveries are not copied.

use entities::attributes::{SECRET, SUBSCRIPTIONS, WEBHOOK_STATUS};
use key_schema::{Key, rows};
use mlflow_api::webhooks::WebhookStatus;
use table::{Item, map, text};

/// Returns whether an item belongs to an event or a delivery, which are not copied.
pub(super) fn is_transient(key: &Key) -> bool {
    rows::WebhookEvent::parse(key).is_some()
        || rows::WebhookEventPart::parse(key).is_some()
        || rows::WebhookDelivery::parse(key).is_some()
        || rows::WebhookQueue::parse(key).is_some()
        || rows::DeadDelivery::parse(key).is_some()
}

/// Returns the copy of an item. Items other than webhooks and subscriptions stay as they are.
pub(super) fn copied(mut item: Item) -> Item {
    let Some(key) = item.key() else { return item };
    if rows::Webhook::parse(&key).is_some() {
        item.take(SECRET);
        return item.with(WEBHOOK_STATUS.name(), text(WebhookStatus::Disabled.name()));
    }
    if rows::WebhookSubscriptions::parse(&key).is_some() {
        return item.with(SUBSCRIPTIONS.name(), map(table::Map::new()));
    }
    item
}

#[cfg(test)]
mod tests {
    use entities::webhooks::{StoredWebhook, WorkspaceSubscriptions, new_webhook_id};
    use mlflow_api::Workspace;
    use mlflow_api::webhooks::WebhookEvent;

    use super::*;

    #[test]
    fn a_copied_webhook_is_disabled_and_has_no_secret() {
        let workspace = Workspace::default();
        let webhook = StoredWebhook {
            id: new_webhook_id(),
            name: "hook".to_owned(),
            description: String::new(),
            url: "https://receiver.test".to_owned(),
            events: vec![WebhookEvent::PromptCreated],
            unknown_events: Vec::new(),
            status: WebhookStatus::Active,
            secret: Some(vec![1]),
            created: 1,
            updated: 2,
            changes: 3,
            imported: None,
        };
        let copy = StoredWebhook::of(&copied(webhook.item(&workspace))).unwrap();
        assert_eq!(copy, StoredWebhook { secret: None, status: WebhookStatus::Disabled, ..webhook });
        let subscriptions = Item::new(WorkspaceSubscriptions::key(&workspace))
            .with(SUBSCRIPTIONS.name(), map([(copy.id.to_string(), text("prompt.created"))].into()));
        let subscriptions = WorkspaceSubscriptions::of(Some(&copied(subscriptions)));
        assert!(!subscriptions.subscribers().has(WebhookEvent::PromptCreated));
        assert!(!is_transient(&StoredWebhook::key(&workspace, copy.id)));
    }
}
