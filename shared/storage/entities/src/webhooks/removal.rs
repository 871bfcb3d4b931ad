//! The rows of webhooks that are removed together with their workspace.

use key_schema::{KeyRange, Name, rows};
use mlflow_api::Workspace;

/// Returns two ranges of rows: the webhooks of a workspace, and the deliveries to these webhooks
/// that have failed for good. Pending deliveries are in other partitions. After the webhooks have
/// been removed, they are removed without being sent when they are due.
#[must_use]
pub fn rows_of(workspace: &Workspace) -> [KeyRange; 2] {
    let name = Name::from(workspace.as_str());
    [rows::Webhook::all(&name).range(), rows::DeadDelivery::all(&name).range()]
}
