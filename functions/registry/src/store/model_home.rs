//! Homes: the partitions that contain the rows of models.
//!
//! The row of a home contains its model's current name. A write to a version whose request was
//! planned with only the name of the model checks this row. Therefore a model that was renamed or
//! deleted is never changed under its old name.

use entities::{in_workspace, workspace_named};
use key_schema::{Key, ModelKey, rows};
use mlflow_api::{Error, Result, Workspace};
use table::{Condition, Item, Write, text};

use super::attributes::{ID, NAME, WORKSPACE};

/// Creates the row of a home.
pub(super) fn home_row(workspace: &Workspace, home: &ModelKey, id: &str, name: &str) -> Item {
    in_workspace(Item::new(home_key(home)).with(ID, text(id)).with(NAME, text(name)), workspace)
}

/// Checks whether the item of a model, or of its home, belongs to this workspace. The key does not
/// show that, because the key of a home contains only its original workspace.
pub(super) fn is_in(item: &Item, workspace: &Workspace) -> Result<bool> {
    Ok(workspace_named(item.get(WORKSPACE)).map_err(Error::internal)? == *workspace)
}

pub(super) fn home_key(home: &ModelKey) -> Key {
    rows::ModelHome::key(home)
}

/// Returns a check, to be part of a transaction, that the rows with this key belong to the model
/// with this name, and with this id if it is given.
pub(super) fn is_at_home(key: &ModelKey, name: &str, id: Option<&str>) -> Write {
    let is_named = Condition::Equals(NAME.into(), text(name));
    // The key contains the workspace in which the model was created. The model may have been moved
    // to another workspace since then, and a model of the original workspace may now have its name.
    let is_here = match key.workspace() {
        Some(workspace) => Condition::Equals(WORKSPACE.into(), text(workspace)),
        None => Condition::Missing(WORKSPACE.into()),
    };
    let condition = match id {
        Some(id) => is_named.and(is_here).and(Condition::Equals(ID.into(), text(id))),
        None => is_named.and(is_here),
    };
    Write::Check(home_key(key), condition)
}
