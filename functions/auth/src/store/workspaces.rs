//! The store of the workspaces' endpoints.

use access::Scope;
use entities::workspace_named;
use key_schema::attributes::WORKSPACE;
use key_schema::rows;
use mlflow_api::{ExperimentId, Result, Workspace};
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

    /// The workspace of an experiment; `None` where there is no such experiment. One request.
    ///
    /// # Errors
    /// The table cannot be read.
    pub(crate) async fn workspace_of(&self, experiment: ExperimentId) -> Result<Option<Workspace>> {
        let item = self.table.get(&rows::Experiment::key(&experiment)).await?;
        item.map(|item| workspace_named(item.get(WORKSPACE))).transpose()
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

    fn for_request(&self, _: &Scope) -> Self {
        self.clone()
    }
}
