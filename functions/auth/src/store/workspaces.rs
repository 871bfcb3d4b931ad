//! The store of the endpoints for workspaces.

use access::Scope;
use entities::workspace_named;
use entities::workspaces::Workspaces;
use key_schema::attributes::WORKSPACE;
use key_schema::rows;
use mlflow_api::{ExperimentId, Result, Workspace};
use permissions::Memberships;
use table::Table;

use super::Store;

/// Workspaces, and the store of the users who have roles in them.
#[derive(Clone)]
pub struct WorkspaceStore {
    table: Table,
    workspaces: Option<Workspaces>,
    users: Option<Store>,
}

impl WorkspaceStore {
    /// Returns a store over the data table. If workspaces are disabled (`is_on` is `false`), every
    /// endpoint returns an error. `users` is `None` if users do not sign in.
    #[must_use]
    pub fn new(table: Table, is_on: bool, users: Option<Store>) -> Self {
        Self { workspaces: is_on.then(|| Workspaces::new(table.clone())), table, users }
    }

    /// Returns the workspaces, or `None` if they are disabled.
    pub(crate) fn enabled(&self) -> Option<&Workspaces> {
        self.workspaces.as_ref()
    }

    /// Returns the store of users, or `None` if users do not sign in.
    pub(crate) fn users(&self) -> Option<&Store> {
        self.users.as_ref()
    }

    /// Returns the workspace of an experiment, or `None` if the experiment does not exist. Takes
    /// one request.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub(crate) async fn workspace_of(&self, experiment: ExperimentId) -> Result<Option<Workspace>> {
        let item = self.table.get(&rows::Experiment::key(&experiment)).await?;
        item.map(|item| workspace_named(item.get(WORKSPACE))).transpose()
    }

    /// Returns the workspaces in which the caller has roles, or `None` if the caller needs no role.
    pub(crate) async fn memberships(&self, scope: &Scope) -> Result<Option<Memberships>> {
        match &self.users {
            Some(users) => users.memberships(scope).await,
            None => Ok(None),
        }
    }
}

impl service::DomainStore for WorkspaceStore {
    fn table(&self) -> &Table {
        &self.table
    }

    fn for_request(&self, _: &Scope) -> Self {
        self.clone()
    }
}
