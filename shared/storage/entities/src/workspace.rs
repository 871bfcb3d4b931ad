//! The workspace of an item, and the identity of workspaces.

use key_schema::{Key, rows};
use mlflow_api::{Error, ErrorCode, Workspace};
use table::{Condition, Failure, Item, Table, Write, WriteRefusal, text};

use crate::attributes::{BY_ID, DIRECTORY, GOES_TO, ID, WORKSPACE};

/// Records an item's workspace, unless it is the default one.
#[must_use]
pub fn in_workspace(item: Item, workspace: &Workspace) -> Item {
    if *workspace == Workspace::default() { item } else { item.with(WORKSPACE, text(workspace.as_str())) }
}

/// Returns the workspace that the value of [`WORKSPACE`] names. A missing attribute stands for the
/// default workspace.
///
/// # Errors
/// Returns `INVALID_PARAMETER_VALUE` if the value is not a valid workspace name.
pub fn workspace_named(attribute: Option<&str>) -> mlflow_api::Result<Workspace> {
    attribute.map_or_else(|| Ok(Workspace::default()), Workspace::stored)
}

/// Returns the key of a workspace's item.
#[must_use]
pub fn workspace_key(workspace: &Workspace) -> Key {
    rows::Workspace::key(&workspace.as_str().into())
}

/// The identity of a workspace, given by its id. No other workspace ever gets the id, even if it
/// gets the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceIdentity {
    name: Workspace,
    id: String,
    is_by_id: bool,
    is_closing: bool,
    directory: Option<String>,
}

impl WorkspaceIdentity {
    /// Reads the identity from the item of a workspace. Returns `None` for any other item.
    #[must_use]
    pub fn of(item: &Item) -> Option<Self> {
        let row = rows::Workspace::parse(&item.key()?)?;
        Some(Self {
            name: Workspace::stored(&row.workspace.0).ok()?,
            id: item.get(ID)?.to_owned(),
            is_by_id: item.get(BY_ID) == Some(1),
            is_closing: item.has(GOES_TO),
            directory: item.get(DIRECTORY).map(str::to_owned),
        })
    }

    /// Reads the identity of a workspace. Returns `None` for a workspace without an item, such as
    /// the default one. Takes one request and one read unit.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn find(table: &Table, workspace: &Workspace) -> Result<Option<Self>, Failure> {
        Ok(table.get(&workspace_key(workspace)).await?.as_ref().and_then(Self::of))
    }

    /// Returns the workspace's name.
    #[must_use]
    pub fn name(&self) -> &Workspace {
        &self.name
    }

    /// Returns the id that is stored with the workspace's roles and grants. Returns `None` for a
    /// workspace that version 0.1.0 created, whose roles and grants store only the name.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.is_by_id.then_some(self.id.as_str())
    }

    /// Returns the name of the workspace's artifact directory below `workspaces/`. This is the
    /// workspace's own name, unless an earlier workspace had the same name.
    #[must_use]
    pub fn directory(&self) -> &str {
        self.directory.as_deref().unwrap_or(self.name.as_str())
    }

    /// Checks that the workspace is not being deleted.
    ///
    /// # Errors
    /// `ABORTED`, which clients do not retry.
    pub fn check_open(&self) -> mlflow_api::Result<()> {
        if self.is_closing { Err(closed(&self.name)) } else { Ok(()) }
    }

    /// Returns a condition for a transaction: this workspace exists with this id, and is not being
    /// deleted. Costs two write units.
    #[must_use]
    pub fn is_open(&self) -> Write {
        let is_it = Condition::Equals(ID.into(), text(&self.id));
        Write::Check(workspace_key(&self.name), is_it.and(Condition::Missing(GOES_TO.into())))
    }
}

/// Returns the error for writing to a workspace that is being deleted. Returns `None` if `reason`
/// shows that the transaction was not refused because of the workspace.
#[must_use]
pub fn if_closed(workspace: &Workspace, reason: Option<&WriteRefusal>) -> Option<Error> {
    matches!(reason, Some(WriteRefusal::Refused(_))).then(|| closed(workspace))
}

/// Returns the error for a write to a workspace that is being deleted.
#[must_use]
pub fn closed(workspace: &Workspace) -> Error {
    Error::new(ErrorCode::Aborted, format!("Workspace '{workspace}' is being deleted."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_says_its_workspace_unless_it_is_the_default() {
        for name in ["default", "team-a"] {
            let workspace = Workspace::parse(name).unwrap();
            let item = in_workspace(Item::new(Key { pk: "P".to_owned(), sk: "S".to_owned() }), &workspace);
            assert_eq!(workspace_named(item.get(WORKSPACE)).unwrap(), workspace);
        }
        assert!(workspace_named(Some("no workspace")).is_err());
    }
}
