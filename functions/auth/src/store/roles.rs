//! Roles.

use std::collections::BTreeSet;

use access::{Along, Caller, Scope, User};
use entities::unreadable;
use key_schema::attributes::{
    ASSIGNMENT, Attribute, DESCRIPTION, GRANTS, IN_WORKSPACE, NAME, ROLE, ROLES, Text, USER_ID, VERSION,
};
use key_schema::{Key, Name, Ordinal, access_rows};
use mlflow_api::auth::{Assignment, GrantType, Level, Role, RolePermission, granted};
use mlflow_api::{Error, ErrorCode, Result, UserName, Workspace};
use permissions::{Memberships, RoleGrant, role_grants};
use table::{Condition, Failure, Item, Map, Plan, Query, Reason, Refusal, Update, Write, map, number, text};

use super::Store;
use super::ids::Kind;
use super::users::{Found, unchanged};
use crate::parameters::Number;

/// Things that one role grants at most: all of them are in one item, and read with each request of its users.
const MOST_GRANTS: usize = 500;
/// Bytes of all that one role grants: DynamoDB's items have at most 400 KB.
const MOST_BYTES: usize = 300_000;
/// Roles that one user has at most: all of them are read with each of his requests.
const MOST_ROLES: usize = 50;

/// A role that was found.
pub struct StoredRole {
    id: u32,
    name: String,
    /// Its workspace.
    pub workspace: String,
    description: Option<String>,
    version: u32,
    grants: Vec<RoleGrant>,
}

impl StoredRole {
    fn of(item: &Item) -> Result<Self> {
        let unreadable = || unreadable(item, "a role");
        let text = |attribute: Attribute<Text>| item.get(attribute).map(str::to_owned);
        let id = item.key().and_then(|key| access_rows::Role::parse(&key)).ok_or_else(unreadable)?.role.0;
        let version = item.get(VERSION);
        Ok(Self {
            id,
            name: text(NAME).ok_or_else(unreadable)?,
            workspace: text(IN_WORKSPACE).ok_or_else(unreadable)?,
            description: text(DESCRIPTION),
            version: version.ok_or_else(unreadable)?,
            grants: role_grants(item)?,
        })
    }

    /// As answered.
    #[must_use]
    pub fn answer(&self) -> Role {
        Role {
            id: self.id,
            name: self.name.clone(),
            workspace: self.workspace.clone(),
            description: self.description.clone(),
            permissions: self.grants.iter().map(|grant| permission(self.id, grant)).collect(),
        }
    }

    fn key(&self) -> Key {
        access_rows::Role::key(&Ordinal(self.id))
    }

    /// A change of it, on condition that it is as it was read.
    fn change(&self) -> Update {
        let is_unchanged = Condition::Equals(VERSION.into(), number(self.version));
        Update::new(self.key()).add(VERSION, number(1)).only_if(is_unchanged)
    }
}

fn permission(role: u32, grant: &RoleGrant) -> RolePermission {
    RolePermission {
        id: grant.id.into(),
        role_id: role,
        resource_type: grant.kind.name(),
        resource_pattern: grant.pattern.clone(),
        permission: grant.level.name(),
    }
}

fn name_key(workspace: &str, name: &str) -> Key {
    access_rows::RoleName::key(&Name::from(workspace), &Name::from(name))
}

fn name_row(workspace: &str, name: &str, role: u32) -> Item {
    Item::new(name_key(workspace, name)).with(NAME, text(name)).with(ROLE, number(role))
}

fn exists(message: String) -> Error {
    Error::new(ErrorCode::ResourceAlreadyExists, message)
}

fn no_role(role: &Number) -> Error {
    Error::not_found(format!("Role with id={} not found", role.0))
}

fn no_grant(grant: &Number) -> Error {
    Error::not_found(format!("Role permission with id={} not found", grant.0))
}

impl Store {
    /// Makes a role. Two requests.
    ///
    /// # Errors
    /// `RESOURCE_ALREADY_EXISTS`, where the workspace has one of this name.
    pub async fn role_create(&self, name: &str, workspace: &str, description: Option<&str>) -> Result<StoredRole> {
        let id = self.next_id(Kind::Roles).await?;
        let item = Item::new(access_rows::Role::key(&Ordinal(id)))
            .with(NAME, text(name))
            .with(IN_WORKSPACE, text(workspace))
            .with(VERSION, number(1))
            .with(GRANTS, map(Map::new()));
        let item = match description {
            Some(description) => item.with(DESCRIPTION, text(description)),
            None => item,
        };
        let others = vec![
            Write::Put(name_row(workspace, name, id), Condition::item_missing()),
            Write::Put(Item::new(access_rows::ListedRole::key(&Ordinal(id))), Condition::Always),
        ];
        let role = StoredRole::of(&item)?;
        match self.access.create(item, others).await {
            Ok(()) => Ok(role),
            Err(Failure::Cancelled(reasons)) if matches!(reasons.get(1), Some(Reason::Refused(_))) => {
                Err(exists(format!("Role (name={name}, workspace={workspace}) already exists.")))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// A role. One request.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`.
    pub(crate) async fn role_get(&self, role: &Number) -> Result<StoredRole> {
        let Some(id) = role.id() else { return Err(no_role(role)) };
        let item = self.access.get(&access_rows::Role::key(&Ordinal(id))).await?;
        StoredRole::of(&item.ok_or_else(|| no_role(role))?)
    }

    /// The workspace of a role. One request.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`.
    pub(crate) async fn role_workspace(&self, role: &Number) -> Result<String> {
        Ok(self.role_get(role).await?.workspace)
    }

    /// The workspace of the role that has a grant. Two requests.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`.
    pub(crate) async fn grant_workspace(&self, grant: &Number) -> Result<String> {
        Ok(self.role_of(grant).await?.0.workspace)
    }

    /// In which workspaces the caller has roles; `None` for an administrator of the server, to whom that matters not.
    ///
    /// # Errors
    /// The table cannot be read.
    pub(crate) async fn memberships(&self, scope: &Scope) -> Result<Option<Memberships>> {
        match scope.caller() {
            Caller::User(user) if !user.is_admin => Ok(Some(self.basic.memberships(user).await?)),
            _ => Ok(None),
        }
    }

    /// The workspaces that a user administers, who is no administrator of the server.
    ///
    /// # Errors
    /// The table cannot be read.
    pub(crate) async fn administered_by(&self, user: &User) -> Result<BTreeSet<String>> {
        Ok(self.basic.memberships(user).await?.administered)
    }

    /// All roles, in the order of their ids. One request, and one for each hundred.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn roles(&self) -> Result<Vec<StoredRole>> {
        let listed = self.access.query(Query::of(access_rows::ListedRole::all())).await?;
        let ids = listed.iter().filter_map(|item| access_rows::ListedRole::parse(&item.key()?));
        self.roles_with(ids.map(|row| row.role.0)).await
    }

    /// Those of these roles that are there, in the order of their ids.
    pub(super) async fn roles_with(&self, ids: impl Iterator<Item = u32>) -> Result<Vec<StoredRole>> {
        let keys: Vec<_> = ids.map(|id| access_rows::Role::key(&Ordinal(id))).collect();
        let items = self.access.get_many(&keys).await?;
        let mut roles = items.values().map(StoredRole::of).collect::<Result<Vec<_>>>()?;
        roles.sort_by_key(|role| role.id);
        Ok(roles)
    }

    /// Renames or describes a role. Two requests.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`, and `RESOURCE_ALREADY_EXISTS` where the name is another's.
    pub(crate) async fn role_change(
        &self,
        role: &Number,
        name: Option<&str>,
        description: Option<&str>,
    ) -> Result<StoredRole> {
        self.access
            .change("a role", async |refusal: Refusal| {
                let mut found = self.role_get(role).await?;
                let mut change = found.change();
                let mut writes = Vec::new();
                if let Some(name) = name.filter(|name| *name != found.name) {
                    if refusal.is_of(1) {
                        return Err(exists(format!(
                            "Role with name={name} already exists in workspace={}",
                            found.workspace
                        )));
                    }
                    change = change.set(NAME, text(name));
                    let claimed = name_row(&found.workspace, name, found.id);
                    writes.push(Write::Put(claimed, Condition::item_missing()));
                    writes.push(Write::Delete(name_key(&found.workspace, &found.name), Condition::Always));
                    found.name = name.to_owned();
                }
                if let Some(description) = description {
                    change = change.set(DESCRIPTION, text(description));
                    found.description = Some(description.to_owned());
                }
                writes.insert(0, Write::Update(change));
                Ok::<_, Error>(Plan::Write(writes, found))
            })
            .await
    }

    /// Takes a role from its users, and deletes it: then it grants nothing, in no process. A call that is cut off has taken it from some, and
    /// another one goes on.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`.
    pub(crate) async fn role_delete(&self, role: &Number) -> Result<()> {
        let found = self.role_get(role).await?;
        for member in self.members(found.id).await? {
            self.take(&member, found.id).await?;
        }
        let grants = found.grants.iter().map(|grant| access_rows::GrantOfRole::key(&Ordinal(grant.id)));
        self.access.write_many(Vec::new(), &grants.collect::<Vec<_>>()).await?;
        self.access
            .change("a role", async |_: Refusal| {
                let found = self.role_get(role).await?;
                let is_unchanged = Condition::Equals(VERSION.into(), number(found.version));
                let writes = vec![
                    Write::Delete(found.key(), is_unchanged),
                    Write::Delete(name_key(&found.workspace, &found.name), Condition::Always),
                    Write::Delete(access_rows::ListedRole::key(&Ordinal(found.id)), Condition::Always),
                ];
                Ok::<_, Error>(Plan::Write(writes, ()))
            })
            .await
    }

    /// Takes all roles of a workspace from their users, and deletes them. A few requests for each.
    ///
    /// # Errors
    /// Those of the table; then it may be done again.
    pub(crate) async fn roles_delete_of(&self, workspace: &str) -> Result<()> {
        for role in self.roles().await?.into_iter().filter(|role| role.workspace == workspace) {
            match self.role_delete(&Number(role.id.to_string())).await {
                Err(error) if error.code != ErrorCode::ResourceDoesNotExist => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds a grant to a role. Four requests, one more to look up the resource.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`, `RESOURCE_ALREADY_EXISTS`, and `INVALID_PARAMETER_VALUE` where
    /// the role is full.
    pub(crate) async fn role_grant(
        &self,
        role: &Number,
        kind: GrantType,
        pattern: &str,
        level: Level,
    ) -> Result<RolePermission> {
        // A request for a role that is not there is refused before an id is given out.
        let workspace = Workspace::parse(&self.role_get(role).await?.workspace).unwrap_or_default();
        let found = self.find_resource(&Along::nothing(), &workspace, kind, pattern).await?;
        let resource = found.map(|(_, id)| id).unwrap_or_default();
        let id = self.next_id(Kind::Grants).await?;
        let grant = &RoleGrant { id, level, kind, resource, pattern: pattern.to_owned() };
        self.access
            .change("a role", async |_: Refusal| {
                let found = self.role_get(role).await?;
                if found.grants.iter().any(|other| (other.kind, other.pattern.as_str()) == (kind, pattern)) {
                    return Err(exists(format!(
                        "Role permission (role_id={}, resource_type={}, resource_pattern={pattern}) already exists.",
                        role.0,
                        kind.name()
                    )));
                }
                let bytes: usize = found.grants.iter().map(|grant| grant.written().len()).sum();
                if found.grants.len() >= MOST_GRANTS || bytes + grant.written().len() > MOST_BYTES {
                    return Err(Error::invalid(format!(
                        "A role grants at most {MOST_GRANTS} things, in at most {MOST_BYTES} bytes."
                    )));
                }
                let change = found.change().set((GRANTS, grant.id.to_string().as_str()), text(grant.written()));
                let named = access_rows::GrantOfRole::key(&Ordinal(grant.id));
                let named = Write::Put(Item::new(named).with(ROLE, number(found.id)), Condition::Always);
                Ok::<_, Error>(Plan::Write(vec![Write::Update(change), named], permission(found.id, grant)))
            })
            .await
    }

    /// The role of a grant, and the grant.
    async fn role_of(&self, grant: &Number) -> Result<(StoredRole, RoleGrant)> {
        let Some(id) = grant.id() else { return Err(no_grant(grant)) };
        let named = self.access.get(&access_rows::GrantOfRole::key(&Ordinal(id))).await?;
        let role = named.and_then(|item| item.get(ROLE));
        let role = self.roles_with(role.into_iter()).await?.pop().ok_or_else(|| no_grant(grant))?;
        let found = role.grants.iter().find(|of_role| of_role.id == id).cloned();
        Ok((role, found.ok_or_else(|| no_grant(grant))?))
    }

    /// Takes a grant out of a role. Three requests.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`.
    pub(crate) async fn role_revoke(&self, grant: &Number) -> Result<()> {
        self.access
            .change("a role", async |_: Refusal| {
                let (role, found) = self.role_of(grant).await?;
                let change = role.change().remove((GRANTS, found.id.to_string().as_str()));
                let named = Write::Delete(access_rows::GrantOfRole::key(&Ordinal(found.id)), Condition::Always);
                Ok::<_, Error>(Plan::Write(vec![Write::Update(change), named], ()))
            })
            .await
    }

    /// Changes how much a role grants. Three requests.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`, and `INVALID_PARAMETER_VALUE` for a level that the type does not take.
    pub(crate) async fn role_change_grant(&self, grant: &Number, level: &str) -> Result<RolePermission> {
        self.access
            .change("a role", async |_: Refusal| {
                let (role, mut found) = self.role_of(grant).await?;
                found.level = granted(level, found.kind.name())?.0;
                let change = role.change().set((GRANTS, found.id.to_string().as_str()), text(found.written()));
                Ok::<_, Error>(Plan::Write(vec![Write::Update(change)], permission(role.id, &found)))
            })
            .await
    }

    /// Gives a user a role. Six requests.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`, `RESOURCE_ALREADY_EXISTS`, and `INVALID_PARAMETER_VALUE` where the user has too many.
    pub(crate) async fn role_assign(&self, user: &UserName, role: &Number) -> Result<Assignment> {
        self.user_get(user).await?;
        self.role_get(role).await?;
        let id = self.next_id(Kind::Assignments).await?;
        self.access
            .change("a user", async |_: Refusal| {
                let (found, role) = (self.user_get(user).await?, self.role_get(role).await?);
                if found.user.roles.contains(&role.id) {
                    return Err(exists(format!(
                        "User role assignment (user_id={}, role_id={}) already exists",
                        found.user.id, role.id
                    )));
                }
                if found.user.roles.len() >= MOST_ROLES {
                    return Err(Error::invalid(format!("A user has at most {MOST_ROLES} roles.")));
                }
                let update = Update::new(access_rows::User::key(user))
                    .set((ROLES, role.id.to_string().as_str()), number(id))
                    .add(VERSION, number(1))
                    .only_if(unchanged(&found));
                let member = Item::new(access_rows::RoleMember::key(&Ordinal(role.id), user))
                    .with(USER_ID, number(found.user.id))
                    .with(ASSIGNMENT, number(id));
                let writes = vec![
                    Write::Update(update),
                    Write::Put(member, Condition::Always),
                    Write::Check(role.key(), Condition::item_exists()),
                ];
                Ok::<_, Error>(Plan::Write(writes, Assignment { id, user_id: found.user.id, role_id: role.id }))
            })
            .await
    }

    /// Takes a role from a user. Three requests.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`.
    pub(crate) async fn role_unassign(&self, user: &UserName, role: &Number) -> Result<()> {
        let found = self.user_get(user).await?;
        let id = role.id().filter(|id| found.user.roles.contains(id)).ok_or_else(|| {
            Error::not_found(format!("User role assignment (user_id={}, role_id={}) not found", found.user.id, role.0))
        })?;
        self.take(user, id).await
    }

    /// The users of a role. Two requests.
    ///
    /// # Errors
    /// `RESOURCE_DOES_NOT_EXIST`.
    pub(crate) async fn role_users(&self, role: &Number) -> Result<Vec<Assignment>> {
        let found = self.role_get(role).await?;
        let members = self.access.query(Query::of(access_rows::RoleMember::all(&Ordinal(found.id)))).await?;
        let assignment = |item: &Item| {
            let both = item.get(ASSIGNMENT).zip(item.get(USER_ID));
            let (id, user_id) = both.ok_or_else(|| unreadable(item, "an assignment"))?;
            Ok(Assignment { id, user_id, role_id: found.id })
        };
        let mut assignments = members.iter().map(assignment).collect::<Result<Vec<_>>>()?;
        assignments.sort_by_key(|assignment| assignment.id);
        Ok(assignments)
    }

    async fn members(&self, role: u32) -> Result<Vec<UserName>> {
        let members = self.access.query(Query::of(access_rows::RoleMember::all(&Ordinal(role)))).await?;
        Ok(members.iter().filter_map(|item| Some(access_rows::RoleMember::parse(&item.key()?)?.user)).collect())
    }

    async fn take(&self, user: &UserName, role: u32) -> Result<()> {
        self.access
            .change("a user", async |_: Refusal| {
                let member = Write::Delete(access_rows::RoleMember::key(&Ordinal(role), user), Condition::Always);
                let found = match self.user_get(user).await {
                    Ok(found) if found.user.roles.contains(&role) => found,
                    Err(error) if error.code != ErrorCode::ResourceDoesNotExist => return Err(error),
                    _ => return Ok(Plan::Write(vec![member], ())),
                };
                Ok::<_, Error>(Plan::Write(vec![Write::Update(without(&found, user, role)), member], ()))
            })
            .await
    }
}

fn without(found: &Found, user: &UserName, role: u32) -> Update {
    Update::new(access_rows::User::key(user))
        .remove((ROLES, role.to_string().as_str()))
        .add(VERSION, number(1))
        .only_if(unchanged(found))
}
