//! Assignment of roles to users.

use entities::unreadable;
use key_schema::attributes::{ASSIGNMENT, ROLES, RULE_ROLES, USER_ID, VERSION};
use key_schema::{Ordinal, access_rows};
use mlflow_api::auth::RoleAssignment;
use mlflow_api::{Error, ErrorCode, Result, UserName};
use table::{ChangePlan, Condition, Item, Query, RefusedWrites, Update, Write, number};

use super::Store;
use super::integer_ids::IdKind;
use super::roles::already_exists;
use super::users::{StoredUser, unchanged};
use crate::parameters::IntegerParameter;

/// Maximum number of roles per user. Every request of a user reads all of the user's roles.
pub(super) const MAX_ROLES: usize = 50;

impl Store {
    /// Assigns a role to a user. Takes six requests.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the user or the role does not exist,
    /// `RESOURCE_ALREADY_EXISTS` if the user has the role already, and `INVALID_PARAMETER_VALUE` if
    /// the user has the maximum number of roles.
    pub(crate) async fn role_assign(&self, user: &UserName, role: &IntegerParameter) -> Result<RoleAssignment> {
        self.user_get(user).await?;
        self.role_get(role).await?;
        let id = self.next_id(IdKind::Assignments).await?;
        self.access
            .change("a user", async |_: RefusedWrites| {
                let (found, role) = (self.user_get(user).await?, self.role_get(role).await?);
                let is_open = self.workspace_check(&role).await?;
                if found.user.roles.contains(&role.id) {
                    return Err(already_exists(format!(
                        "User role assignment (user_id={}, role_id={}) already exists",
                        found.user.id, role.id
                    )));
                }
                if found.user.roles.len() >= MAX_ROLES {
                    return Err(Error::invalid(format!("A user has at most {MAX_ROLES} roles.")));
                }
                let update = Update::new(access_rows::User::key(user))
                    .set((ROLES, role.id.to_string().as_str()), number(id))
                    .add(VERSION, number(1))
                    .only_if(unchanged(&found));
                let member = Item::new(access_rows::RoleMember::key(&Ordinal(role.id), user))
                    .with(USER_ID, number(found.user.id))
                    .with(ASSIGNMENT, number(id));
                let mut writes = vec![
                    Write::Update(update),
                    Write::Put(member, Condition::Always),
                    Write::Check(role.key(), Condition::item_exists()),
                ];
                writes.extend(is_open);
                Ok::<_, Error>(ChangePlan::Write(
                    writes,
                    RoleAssignment { id, user_id: found.user.id, role_id: role.id },
                ))
            })
            .await
    }

    /// Removes a role from a user. Takes three requests.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the user does not exist or does not have the role.
    pub(crate) async fn role_unassign(&self, user: &UserName, role: &IntegerParameter) -> Result<()> {
        let found = self.user_get(user).await?;
        let id = role.id().filter(|id| found.user.roles.contains(id)).ok_or_else(|| {
            Error::not_found(format!("User role assignment (user_id={}, role_id={}) not found", found.user.id, role.0))
        })?;
        self.remove_assignment(user, id).await
    }

    /// Returns the users of a role, in the order of their assignment. Takes two requests.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the role does not exist.
    pub(crate) async fn role_users(&self, role: &IntegerParameter) -> Result<Vec<RoleAssignment>> {
        let found = self.role_get(role).await?;
        let members = self.access.query(Query::of(access_rows::RoleMember::all(&Ordinal(found.id)))).await?;
        let assignment = |item: &Item| {
            let both = item.get(ASSIGNMENT).zip(item.get(USER_ID));
            let (id, user_id) = both.ok_or_else(|| unreadable(item, "an assignment"))?;
            Ok(RoleAssignment { id, user_id, role_id: found.id })
        };
        let mut assignments = members.iter().map(assignment).collect::<Result<Vec<_>>>()?;
        assignments.sort_by_key(|assignment| assignment.id);
        Ok(assignments)
    }

    pub(super) async fn members(&self, role: u32) -> Result<Vec<UserName>> {
        let members = self.access.query(Query::of(access_rows::RoleMember::all(&Ordinal(role)))).await?;
        Ok(members.iter().filter_map(|item| Some(access_rows::RoleMember::parse(&item.key()?)?.user)).collect())
    }

    pub(super) async fn remove_assignment(&self, user: &UserName, role: u32) -> Result<()> {
        self.access
            .change("a user", async |_: RefusedWrites| {
                let member = Write::Delete(access_rows::RoleMember::key(&Ordinal(role), user), Condition::Always);
                let found = match self.user_get(user).await {
                    Ok(found) if found.user.roles.contains(&role) => found,
                    Err(error) if error.code != ErrorCode::ResourceDoesNotExist => return Err(error),
                    _ => return Ok(ChangePlan::Write(vec![member], ())),
                };
                Ok::<_, Error>(ChangePlan::Write(vec![Write::Update(removal_update(&found, user, role)), member], ()))
            })
            .await
    }
}

fn removal_update(found: &StoredUser, user: &UserName, role: u32) -> Update {
    let id = role.to_string();
    let update = Update::new(access_rows::User::key(user))
        .remove((ROLES, id.as_str()))
        .add(VERSION, number(1))
        .only_if(unchanged(found));
    // An entry can only be removed from an existing map.
    if found.rule_roles.contains_key(&role) { update.remove((RULE_ROLES, id.as_str())) } else { update }
}
