//! The rows of a workspace that is deleted.

use key_schema::{KeyRange, Name, rows};
use mlflow_api::Workspace;

/// Returns the ranges of the webhooks of a workspace, and of their deliveries that have failed for
/// good. Pending deliveries are not part of them. They are removed without being sent when they are
/// due, because their webhook no longer exists.
#[must_use]
pub fn rows_of(workspace: &Workspace) -> [KeyRange; 2] {
    let name = Name::from(workspace.as_str());
    [rows::Webhook::all(&name).range(), rows::DeadDelivery::all(&name).range()]
}
