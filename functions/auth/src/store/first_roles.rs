//! The roles that a workspace has from its beginning.

use entities::WorkspaceIdentity;
use mlflow_api::Result;
use mlflow_api::auth::{EVERYTHING, GrantType, Level};
use permissions::{Place, RoleGrant};
use table::{Condition, Table, Write};

use super::Store;
use super::ids::Kind;
use super::roles::new_role;

/// The roles of a new workspace, each with its id and one grant for the workspace. Without users
/// there are none.
#[derive(Default)]
pub(crate) struct FirstRoles {
    access: Option<Table>,
    roles: Vec<FirstRole>,
}

struct FirstRole {
    id: u32,
    name: &'static str,
    description: &'static str,
    grant: RoleGrant,
}

impl Store {
    /// Draws the ids of a new workspace's roles: name, level and description of each. Two requests for each.
    ///
    /// # Errors
    /// Those of the table.
    pub(crate) async fn first_roles(&self, roles: &[(&'static str, Level, &'static str)]) -> Result<FirstRoles> {
        let mut first = FirstRoles { access: Some(self.access.clone()), roles: Vec::new() };
        for (name, level, description) in roles.iter().copied() {
            let (id, grant) = (self.next_id(Kind::Roles).await?, self.next_id(Kind::Grants).await?);
            let (kind, pattern) = (GrantType::Workspace, EVERYTHING.to_owned());
            let grant = RoleGrant { id: grant, level, kind, resource: String::new(), pattern };
            first.roles.push(FirstRole { id, name, description, grant });
        }
        Ok(first)
    }
}

impl FirstRoles {
    /// The parts of the transaction that makes the workspace.
    pub(crate) fn writes(&self, identity: &WorkspaceIdentity) -> Vec<Write> {
        let Some(access) = &self.access else { return Vec::new() };
        let place = Place::new(identity.name(), Some(identity));
        let writes = self.roles.iter().flat_map(|role| {
            let grants = std::slice::from_ref(&role.grant);
            let (item, others) = new_role(role.id, &place, role.name, Some(role.description), grants);
            std::iter::once(Write::Put(item, Condition::item_missing())).chain(others)
        });
        writes.map(|write| access.of_others(write)).collect()
    }
}
