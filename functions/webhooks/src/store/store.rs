//! The store of webhooks, and its configuration.

use std::sync::Arc;
use std::time::Duration;

use access::{AuthorizerWrites, Scope};
use entities::webhooks::{SUBSCRIPTION_LEASE, WebhookDeliverer};
use outbound::{OutboundClient, OutboundPolicy};
use secrets::SecretKeys;
use table::Table;

/// The store of webhooks. Cheap to clone, and created once per process.
#[derive(Clone)]
pub struct Store {
    pub(super) table: Table,
    pub(super) authorizer_writes: AuthorizerWrites,
    pub(super) keys: Arc<SecretKeys>,
    pub(super) outbound: OutboundClient,
    pub(super) deliverer: Option<Arc<dyn WebhookDeliverer>>,
    /// Whether the server has workspaces. If so, the bodies of events contain the name of the
    /// workspace.
    pub(super) has_workspaces: bool,
    /// How long other processes cache subscriptions. Responses to changes are delayed by this time,
    /// so that a change has taken effect everywhere when the client receives the response.
    pub(super) lease: Duration,
}

impl Store {
    /// Creates a store over the table. By default, only public addresses are accepted, secrets
    /// cannot be stored, and test events cannot be sent.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self {
            table,
            authorizer_writes: AuthorizerWrites::nothing(),
            keys: Arc::default(),
            outbound: OutboundClient::new(OutboundPolicy::default()),
            deliverer: None,
            has_workspaces: false,
            lease: SUBSCRIPTION_LEASE,
        }
    }

    /// Sets the keys that seal secrets.
    #[must_use]
    pub fn with_keys(self, keys: Arc<SecretKeys>) -> Self {
        Self { keys, ..self }
    }

    /// Sets the client whose policy decides which addresses are allowed.
    #[must_use]
    pub fn with_outbound(self, outbound: OutboundClient) -> Self {
        Self { outbound, ..self }
    }

    /// Sets the delay of responses to changes, for tests.
    #[must_use]
    pub fn with_lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Sets whether the server has workspaces.
    #[must_use]
    pub fn with_workspaces(self, has_workspaces: bool) -> Self {
        Self { has_workspaces, ..self }
    }

    /// Sets the deliverer that sends test events.
    #[must_use]
    pub fn with_deliverer(self, deliverer: Arc<dyn WebhookDeliverer>) -> Self {
        Self { deliverer: Some(deliverer), ..self }
    }
}

impl service::DomainStore for Store {
    fn table(&self) -> &Table {
        &self.table
    }

    fn for_request(&self, scope: &Scope) -> Self {
        Self { authorizer_writes: scope.authorizer_writes().clone(), ..self.clone() }
    }
}
