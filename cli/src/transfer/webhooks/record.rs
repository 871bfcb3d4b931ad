//! Records of webhooks.

use std::collections::BTreeSet;

use entities::webhooks::StoredWebhook;
use mlflow_api::Workspace;
use mlflow_api::webhooks::WebhookStatus;
use serde::Serialize;

/// A webhook of an MLflow database. The fingerprint leaves out the status and the secret,
/// because a webhook may be imported or exported disabled and without its secret. Changes of them
/// are detected nevertheless, because every change updates the time of the last update.
#[derive(Clone, Debug, Serialize)]
pub(super) struct WebhookRecord {
    pub(super) workspace: Workspace,
    /// The id in the source.
    #[serde(skip)]
    pub(super) source_id: String,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) url: String,
    /// The names of the events.
    pub(super) events: BTreeSet<String>,
    #[serde(skip)]
    pub(super) status: WebhookStatus,
    /// The secret as MLflow encrypts it.
    #[serde(skip)]
    pub(super) secret: Option<String>,
    pub(super) created: i64,
    pub(super) updated: i64,
}

impl WebhookRecord {
    /// Returns the record of a webhook in the table, without its secret.
    pub(super) fn of(workspace: &Workspace, webhook: StoredWebhook) -> Self {
        Self {
            workspace: workspace.clone(),
            source_id: webhook.id.to_string(),
            events: webhook.event_names().map(str::to_owned).collect(),
            name: webhook.name,
            description: webhook.description,
            url: webhook.url,
            status: webhook.status,
            secret: None,
            created: webhook.created,
            updated: webhook.updated,
        }
    }
}
