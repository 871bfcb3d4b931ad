//! Homes: the partitions of models' rows.
//!
//! The row of a home has its model's current name. A write that goes to a version by name alone
//! checks it. So a model that was renamed or deleted is never changed under its old name.

use entities::{in_workspace, workspace_named};
use key_schema::{Key, ModelKey, rows};
use mlflow_api::{Error, Result, Workspace};
use table::{Condition, Item, Write, text};

use super::attributes::{ID, NAME, WORKSPACE};

/// The row of a home.
pub(super) fn home_row(workspace: &Workspace, home: &ModelKey, id: &str, name: &str) -> Item {
    in_workspace(Item::new(home_key(home)).with(ID, text(id)).with(NAME, text(name)), workspace)
}

/// Whether the item of a model, or of its home, belongs to this workspace. The key of a home only
/// has its original workspace.
pub(super) fn is_in(item: &Item, workspace: &Workspace) -> Result<bool> {
    Ok(workspace_named(item.get(WORKSPACE)).map_err(Error::internal)? == *workspace)
}

pub(super) fn home_key(home: &ModelKey) -> Key {
    rows::ModelHome::key(home)
}

/// A part of a transaction: the rows of this key are those of the model of this name, which has this id if that is known.
pub(super) fn is_at_home(key: &ModelKey, name: &str, id: Option<&str>) -> Write {
    let is_named = Condition::Equals(NAME.into(), text(name));
    // The key says where the model was made: it may have come elsewhere, and another one has its name here.
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
