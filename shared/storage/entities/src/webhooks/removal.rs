//! Removes the webhooks of a workspace.

use key_schema::{Name, rows};
use mlflow_api::Workspace;
use table::{Result, Table};

use super::WorkspaceSubscriptions;

/// Removes all webhooks of a workspace, with their deliveries that have failed for good. Safe to
/// repeat. Pending deliveries are removed without being sent when they are due, because their
/// webhook no longer exists.
///
/// Takes one request to delete the subscriptions. For webhooks and failed deliveries, takes the
/// requests of [`Table::delete_range`].
///
/// # Errors
/// Returns an error if the table cannot be written.
pub async fn remove_all(table: &Table, workspace: &Workspace) -> Result<()> {
    let name = Name::from(workspace.as_str());
    // The subscriptions are removed first, so that calls write no more events.
    table.write_many(Vec::new(), &[WorkspaceSubscriptions::key(workspace)]).await?;
    table.delete_range(rows::Webhook::all(&name).range()).await?;
    table.delete_range(rows::DeadDelivery::all(&name).range()).await
}
