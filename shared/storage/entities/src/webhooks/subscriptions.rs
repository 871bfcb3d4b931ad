//! The webhooks that subscribe to each event.
//!
//! Every call of the model registry that may send an event needs the subscriptions of its
//! workspace. They are stored in one row, which a process caches for a second. The response to a
//! change of a webhook is delayed by this second, so that no call that starts after the response
//! uses a stale cache.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use key_schema::attributes::{CHANGES, COUNT, SUBSCRIPTIONS};
use key_schema::{Key, Name, rows};
use mlflow_api::webhooks::WebhookEvent;
use mlflow_api::{WebhookId, Workspace};
use runtime::clock::Moment;
use table::{Condition, Item, Result, Table, Update, Write, map, number, text};

use super::StoredWebhook;

/// How long a process caches subscriptions.
pub const SUBSCRIPTION_LEASE: Duration = Duration::from_secs(1);
/// Maximum number of cached workspaces. When the cache is full, it is cleared.
const CACHE_CAPACITY: usize = 1_000;

/// The webhooks that subscribe to each event of a workspace. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscribers(Arc<BTreeMap<WebhookEvent, Vec<WebhookId>>>);

impl Subscribers {
    /// Checks whether any webhook subscribes to an event.
    #[must_use]
    pub fn has(&self, event: WebhookEvent) -> bool {
        self.0.contains_key(&event)
    }

    /// Returns the webhooks that subscribe to an event, oldest first.
    #[must_use]
    pub fn of(&self, event: WebhookEvent) -> &[WebhookId] {
        self.0.get(&event).map(Vec::as_slice).unwrap_or_default()
    }
}

/// A per-process cache of subscriptions. Cheap to clone; clones share the cache.
#[derive(Clone, Debug)]
pub struct Subscriptions {
    table: Table,
    lease: Duration,
    cache: Arc<Mutex<HashMap<Workspace, (Moment, Subscribers)>>>,
}

impl Subscriptions {
    /// Creates an empty cache for a table.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self::with_lease(table, SUBSCRIPTION_LEASE)
    }

    /// Creates an empty cache whose entries expire after this duration, for tests that do not
    /// change webhooks.
    #[must_use]
    pub fn with_lease(table: Table, lease: Duration) -> Self {
        Self { table, lease, cache: Arc::default() }
    }

    /// Returns the subscribers of a workspace. Takes no request if they were read within the last
    /// second, and otherwise one, which costs one read unit per 4 KB.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn of(&self, workspace: &Workspace) -> Result<Subscribers> {
        if let Some((read, subscribers)) = self.cache().get(workspace)
            && read.age() < self.lease
        {
            return Ok(subscribers.clone());
        }
        // The lease begins before the request is sent, because the row may change while the response
        // is in transit.
        let now = Moment::now();
        let row = self.table.get(&WorkspaceSubscriptions::key(workspace)).await?;
        let subscribers = WorkspaceSubscriptions::of(row.as_ref()).subscribers();
        let mut cache = self.cache();
        if cache.len() >= CACHE_CAPACITY && !cache.contains_key(workspace) {
            cache.clear();
        }
        cache.insert(workspace.clone(), (now, subscribers.clone()));
        Ok(subscribers)
    }

    fn cache(&self) -> MutexGuard<'_, HashMap<Workspace, (Moment, Subscribers)>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The row with the subscriptions of a workspace, for changing it together with a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceSubscriptions {
    /// The names of each active webhook's events. They may include names that only a later version
    /// supports.
    active: BTreeMap<WebhookId, Vec<String>>,
    count: u32,
    changes: Option<i64>,
}

impl WorkspaceSubscriptions {
    /// Returns the key of the row.
    #[must_use]
    pub fn key(workspace: &Workspace) -> Key {
        rows::WebhookSubscriptions::key(&Name::from(workspace.as_str()))
    }

    /// Parses the row. `None` stands for a workspace that never had a webhook.
    #[must_use]
    pub fn of(row: Option<&Item>) -> Self {
        let Some(row) = row else { return Self::default() };
        let entries = row.map(SUBSCRIPTIONS).into_iter().flatten();
        let active = entries.filter_map(|(id, names)| {
            let names = names.as_s().ok()?.split(' ');
            Some((WebhookId::parse(id)?, names.map(str::to_owned).collect()))
        });
        Self { active: active.collect(), count: row.get(COUNT).unwrap_or_default(), changes: row.get(CHANGES) }
    }

    /// Returns the number of webhooks of the workspace, including disabled ones.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the webhooks by event.
    #[must_use]
    pub fn subscribers(&self) -> Subscribers {
        let mut by_event = BTreeMap::<_, Vec<_>>::new();
        for (webhook, events) in &self.active {
            for event in events.iter().filter_map(|name| WebhookEvent::parse(name)) {
                by_event.entry(event).or_default().push(*webhook);
            }
        }
        Subscribers(Arc::new(by_event))
    }

    /// Returns the write that replaces `before` by `after`, where `None` stands for a webhook that
    /// does not exist. It is conditional on the row being as it was read.
    #[must_use]
    pub fn with_change(
        mut self,
        workspace: &Workspace,
        before: Option<&StoredWebhook>,
        after: Option<&StoredWebhook>,
    ) -> Write {
        if let Some(before) = before {
            self.active.remove(&before.id);
            self.count = self.count.saturating_sub(1);
        }
        if let Some(after) = after {
            self.count += 1;
            if after.is_active() {
                self.active.insert(after.id, after.event_names().map(str::to_owned).collect());
            }
        }
        let entries = self.active.iter().map(|(webhook, names)| (webhook.to_string(), text(names.join(" "))));
        let unchanged = match self.changes {
            Some(changes) => Condition::Equals(CHANGES.into(), number(changes)),
            None => Condition::Missing(CHANGES.into()),
        };
        let update = Update::upsert(Self::key(workspace)).only_if(unchanged);
        let update = update.set(SUBSCRIPTIONS, map(entries.collect())).set(COUNT, number(self.count));
        Write::Update(update.set(CHANGES, number(self.changes.unwrap_or_default() + 1)))
    }
}
