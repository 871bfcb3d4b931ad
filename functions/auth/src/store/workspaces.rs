//! The store of the workspaces' endpoints.

use access::Scope;
use mlflow_api::Result;
use permissions::Memberships;
use table::Table;
use workspaces::Workspaces;

use super::Store;

/// Workspaces, and the users who may have roles in them.
#[derive(Clone)]
pub struct WorkspaceStore {
    table: Table,
    workspaces: Option<Workspaces>,
    users: Option<Store>,
}

impl WorkspaceStore {
    /// Over the table of data. Without workspaces (`is_on`) every request is refused.
    #[must_use]
    pub fn new(table: Table, is_on: bool, users: Option<Store>) -> Self {
        Self { workspaces: is_on.then(|| Workspaces::new(table.clone())), table, users }
    }

    /// The workspaces, where there are any.
    pub(crate) fn enabled(&self) -> Option<&Workspaces> {
        self.workspaces.as_ref()
    }

    /// The users, where somebody signs in.
    pub(crate) fn users(&self) -> Option<&Store> {
        self.users.as_ref()
    }

    /// In which workspaces the caller has roles; `None`, if that matters not.
    pub(crate) async fn memberships(&self, scope: &Scope) -> Result<Option<Memberships>> {
        match &self.users {
            Some(users) => users.memberships(scope).await,
            None => Ok(None),
        }
    }
}

impl service::Store for WorkspaceStore {
    fn table(&self) -> &Table {
        &self.table
    }
}
