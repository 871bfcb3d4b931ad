//! The roles that are created together with a workspace.

use entities::WorkspaceIdentity;
use mlflow_api::Result;
use mlflow_api::auth::{ALL_RESOURCES, GrantType, PermissionLevel};
use permissions::{RoleGrant, WorkspaceRef};
use table::{Condition, Table, Write};

use super::Store;
use super::integer_ids::IdKind;
use super::roles::new_role;

/// The roles of a new workspace. Each role has an id, and one grant for the workspace. The list is
/// empty if users do not sign in.
#[derive(Default)]
pub(crate) struct DefaultRoles {
    access: Option<Table>,
    roles: Vec<DefaultRole>,
}

struct DefaultRole {
    id: u32,
    name: &'static str,
    description: &'static str,
    grant: RoleGrant,
}

impl Store {
    /// Allocates the ids of a new workspace's roles, each given by name, level and description.
    /// Takes two requests per role.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub(crate) async fn default_roles(
        &self,
        roles: &[(&'static str, PermissionLevel, &'static str)],
    ) -> Result<DefaultRoles> {
        let mut first = DefaultRoles { access: Some(self.access.clone()), roles: Vec::new() };
        for (name, level, description) in roles.iter().copied() {
            let (id, grant) = (self.next_id(IdKind::Roles).await?, self.next_id(IdKind::Grants).await?);
            let (kind, pattern) = (GrantType::Workspace, ALL_RESOURCES.to_owned());
            let grant = RoleGrant { id: grant, level, kind, resource: String::new(), pattern };
            first.roles.push(DefaultRole { id, name, description, grant });
        }
        Ok(first)
    }
}

impl DefaultRoles {
    /// Returns the writes that create the roles, for the transaction that creates the workspace.
    pub(crate) fn writes(&self, identity: &WorkspaceIdentity) -> Vec<Write> {
        let Some(access) = &self.access else { return Vec::new() };
        let place = WorkspaceRef::new(identity.name(), Some(identity));
        let writes = self.roles.iter().flat_map(|role| {
            let grants = std::slice::from_ref(&role.grant);
            let (item, others) = new_role(role.id, &place, role.name, Some(role.description), grants);
            std::iter::once(Write::Put(item, Condition::item_missing())).chain(others)
        });
        writes.map(|write| access.of_others(write)).collect()
    }
}
