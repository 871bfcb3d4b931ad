//! Users and roles that are imported from another server.
//!
//! While a user or a role is being imported, it is marked as incomplete. A repeated import
//! completes only users and roles with this mark, and does not change others of the same name.

use access::AuthorizerWrites;
use key_schema::attributes::IMPORTED;
use key_schema::{Key, Ordinal, access_rows};
use mlflow_api::auth::{GrantType, PermissionLevel, Role, User};
use mlflow_api::{Error, ErrorCode, Result, UserName, Workspace};
use permissions::{Account, WorkspaceRef};
use table::{Failure, Update, text};

use super::Store;
use crate::parameters::IntegerParameter;

/// Value of the attribute `IMPORTED` of a user or a role whose import has not been completed.
const INCOMPLETE: &str = "incomplete";
/// Value of the attribute `IMPORTED` of a user or a role whose import has been completed.
const COMPLETE: &str = "complete";

/// The state of a user or a role when its import begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imported<T> {
    /// It was created just now or by an interrupted import, so the import has to complete it.
    Incomplete(T),
    /// It existed before, so the import does not change it.
    Existing(T),
}

impl Store {
    /// Creates a user without a password, as the start of its import. Takes three requests.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read or written.
    pub async fn import_user(&self, name: &UserName, is_admin: bool) -> Result<Imported<User>> {
        if let Some(account) = Account::find(&self.access, name).await? {
            let user = super::StoredUser(account).answer();
            let key = access_rows::User::key(name);
            return Ok(if self.is_incomplete(&key).await? {
                Imported::Incomplete(user)
            } else {
                Imported::Existing(user)
            });
        }
        let user = self.user_put(name, None, is_admin, |item| item.with(IMPORTED, text(INCOMPLETE))).await?;
        Ok(Imported::Incomplete(user))
    }

    /// Creates a role without grants, as the start of its import. `known` contains all existing
    /// roles.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read or written, or if the workspace does not exist.
    pub async fn import_role(
        &self,
        known: &[Role],
        name: &str,
        workspace: &str,
        description: Option<&str>,
    ) -> Result<Imported<u32>> {
        if let Some(role) = known.iter().find(|role| (role.name.as_str(), role.workspace.as_str()) == (name, workspace))
        {
            let key = access_rows::Role::key(&Ordinal(role.id));
            return Ok(if self.is_incomplete(&key).await? {
                Imported::Incomplete(role.id)
            } else {
                Imported::Existing(role.id)
            });
        }
        let marked = |item: table::Item| item.with(IMPORTED, text(INCOMPLETE));
        Ok(Imported::Incomplete(self.role_put(name, workspace, description, marked).await?.id))
    }

    /// Adds a grant to a role, unless the role already has it.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read or written, or if the role cannot have the
    /// grant.
    pub async fn import_role_grant(
        &self,
        role: u32,
        (kind, pattern): (GrantType, &str),
        level: PermissionLevel,
    ) -> Result<()> {
        unless_exists(self.role_grant(&IntegerParameter(role.to_string()), kind, pattern, level).await.map(drop))
    }

    /// Assigns a role to a user, unless the user already has it.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read or written, or if the user has the maximum
    /// number of roles.
    pub async fn import_assignment(&self, user: &UserName, role: u32) -> Result<()> {
        unless_exists(self.role_assign(user, &IntegerParameter(role.to_string())).await.map(drop))
    }

    /// Grants a permission to a user, unless the user already has it.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read or written, or if the workspace does not exist.
    pub async fn import_grant(
        &self,
        user: &UserName,
        workspace: &Workspace,
        (kind, pattern): (GrantType, &str),
        level: PermissionLevel,
    ) -> Result<()> {
        let identity = self.workspace_of(workspace).await?;
        let place = WorkspaceRef::new(workspace, identity.as_ref());
        let is_open = identity.map(|identity| identity.is_open());
        let nothing = AuthorizerWrites::nothing();
        unless_exists(self.grant_in(&nothing, user, (&place, is_open), (kind, pattern), level).await)
    }

    /// Marks the import of a user as completed.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn import_user_end(&self, name: &UserName) -> Result<()> {
        self.complete(access_rows::User::key(name)).await
    }

    /// Marks the import of a role as completed.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn import_role_end(&self, role: u32) -> Result<()> {
        self.complete(access_rows::Role::key(&Ordinal(role))).await
    }

    async fn is_incomplete(&self, key: &Key) -> Result<bool> {
        Ok(self.access.get(key).await?.is_some_and(|item| item.get(IMPORTED) == Some(INCOMPLETE)))
    }

    async fn complete(&self, key: Key) -> Result<()> {
        match self.access.apply(&Update::new(key).set(IMPORTED, text(COMPLETE))).await {
            // A refused update means that the user or the role was deleted in the meantime.
            Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(Error::from(failure)),
        }
    }
}

fn unless_exists(outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(error) if error.code == ErrorCode::ResourceAlreadyExists => Ok(()),
        outcome => outcome,
    }
}
