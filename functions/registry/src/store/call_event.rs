//! Events of calls, for webhooks. The row of an event is written in the transaction of its call
//! (`docs/adr/0078-events-in-transactions.md`).
//!
//! A call first looks up who subscribes to its possible events ([`Store::call_events`]), which takes
//! no request while the process's cached answer is valid. If there are no subscribers, the call
//! proceeds as if there were no webhooks. Otherwise, its transaction contains the event's row, even
//! if it has nothing else to write.

use entities::now_ms;
use entities::webhooks::{NewEvent, Subscribers, new_event_id};
use key_schema::ModelKey;
use mlflow_api::webhooks::{EventData, WebhookEvent, event_body};
use mlflow_api::{Result, WebhookEventId, Workspace};
use table::{Item, Write};

use super::Store;

/// Number of writes that an event takes in the transaction of its call.
const EVENT_WRITES: usize = 1;

/// The events that a call may send. The id and the time of the event are chosen once, so that every
/// attempt of the call writes the same row.
pub(super) struct CallEvents {
    id: WebhookEventId,
    time: i64,
    workspace: Workspace,
    subscribers: Subscribers,
}

impl Store {
    /// Returns the events that a call of the current workspace may send, or `None` if no webhook
    /// subscribes to any of them. Takes no request if the process has looked up the subscriptions
    /// within the last second, and otherwise one, which costs one read unit.
    pub(super) async fn call_events(&self, possible: &[WebhookEvent]) -> Result<Option<CallEvents>> {
        let workspace = self.authorizer_writes.workspace();
        let subscribers = self.subscriptions.of(&workspace).await?;
        if !possible.iter().any(|event| subscribers.has(*event)) {
            return Ok(None);
        }
        Ok(Some(CallEvents { id: new_event_id(), time: now_ms(), workspace, subscribers }))
    }

    /// Returns the write of an event's row, to be part of the call's transaction, or `None` if no
    /// webhook subscribes to the event. If the event's body is large, first writes its parts. If
    /// the transaction is never sent, the parts expire.
    pub(super) async fn event_write(
        &self,
        events: Option<&CallEvents>,
        model: &ModelKey,
        data: &EventData<'_>,
    ) -> Result<Option<Write>> {
        let Some(events) = events else { return Ok(None) };
        let webhooks = events.subscribers.of(data.event());
        if webhooks.is_empty() {
            return Ok(None);
        }
        let named = self.has_workspaces.then(|| events.workspace.as_str());
        let body = event_body(data, events.time, named);
        let event = NewEvent {
            id: events.id,
            workspace: &events.workspace,
            model,
            event: data.event(),
            webhooks,
            body: &body,
            created: events.time,
        };
        Ok(Some(event.write(&self.table).await?))
    }
}

/// Adds the rows of a new entity's large tags to the writes that create it, and the row of an event.
///
/// # Errors
/// Returns `INVALID_PARAMETER_VALUE` if the rows do not fit into one transaction. There is always
/// room for an event, so that a request is not rejected because of a webhook.
pub(super) fn take_rows_and_event(writes: &mut Vec<Write>, rows: Vec<Item>, event: Option<Write>) -> Result<()> {
    entities::documents::take_all_rows_but(EVENT_WRITES, writes, rows)?;
    writes.extend(event);
    Ok(())
}
