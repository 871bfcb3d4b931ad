//! Exports webhooks.

use entities::listing;
use entities::webhooks::StoredWebhook;
use futures::stream::TryStreamExt;
use key_schema::rows;
use mlflow_api::Workspace;
use mlflow_api::webhooks::WebhookStatus;
use rusqlite::params;
use table::Query;

use crate::Failure;
use crate::transfer::export::ExportContext;

/// Exports the webhooks of all workspaces, unless only one experiment is exported. Webhooks with a
/// secret are exported disabled and without it, so that MLflow does not send events without a
/// signature. Takes one request per workspace.
///
/// # Errors
/// The table cannot be read, or the file cannot be written.
pub(crate) async fn export(context: &ExportContext) -> Result<(), Failure> {
    let mut without_secret = Vec::new();
    for workspace in context.workspaces().await? {
        let webhooks = Query::of(rows::Webhook::all(&workspace.as_str().into()));
        let mut pages = std::pin::pin!(listing::pages(&context.table, webhooks));
        while let Some(page) = pages.try_next().await.map_err(|failure| format!("cannot read webhooks: {failure:?}"))? {
            for item in page {
                let webhook = StoredWebhook::of(&item).map_err(|error| error.message)?;
                export_webhook(context, &workspace, &webhook)?;
                if webhook.secret.is_some() {
                    without_secret.push(webhook.name);
                }
            }
        }
    }
    if !without_secret.is_empty() {
        context.notice(format!(
            "webhooks: {} exported disabled and without their secrets, which exports never contain: {}",
            without_secret.len(),
            without_secret.join(", ")
        ));
    }
    Ok(())
}

fn export_webhook(context: &ExportContext, workspace: &Workspace, webhook: &StoredWebhook) -> Result<(), Failure> {
    let id = webhook.id.to_string();
    let status = if webhook.secret.is_some() { WebhookStatus::Disabled } else { webhook.status };
    context.insert(
        "INSERT INTO webhooks (webhook_id, name, description, url, status, creation_timestamp, \
         last_updated_timestamp, workspace) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            id,
            webhook.name,
            Some(&webhook.description).filter(|description| !description.is_empty()),
            webhook.url,
            status.name(),
            webhook.created,
            webhook.updated,
            workspace.as_str(),
        ],
    )?;
    for event in webhook.event_names() {
        // All names have two parts: the entity and the action.
        let (entity, action) = event.split_once('.').unwrap_or((event, ""));
        let sql = "INSERT INTO webhook_events (webhook_id, entity, action) VALUES (?, ?, ?)";
        context.insert(sql, params![id, entity, action])?;
    }
    Ok(())
}
