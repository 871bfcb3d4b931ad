//! Storage of roles and their grants.

use std::collections::BTreeSet;

use access::{AuthorizerWrites, Caller, Scope, User};
use entities::{WorkspaceIdentity, closed, unreadable};
use key_schema::attributes::{Attribute, DESCRIPTION, GRANTS, IN_WORKSPACE, NAME, ROLE, Text, VERSION};
use key_schema::{Key, Name, Ordinal, access_rows};
use mlflow_api::auth::{GrantType, PermissionLevel, Role, RolePermission, parse_grant};
use mlflow_api::{Error, ErrorCode, Result, Workspace};
use permissions::{Memberships, RoleGrant, WorkspaceRef, role_grants};
use table::{
    ChangePlan, Condition, Failure, Item, Query, RefusedWrites, Update, Write, WriteRefusal, map, number, text,
};

use super::Store;
use super::integer_ids::IdKind;
use crate::parameters::IntegerParameter;

/// Maximum number of grants per role. The limit is needed because the grants are all in the role's
/// item, and every request of a user with the role reads this item.
const MAX_GRANTS: usize = 500;
/// Maximum size of a role's grants in bytes. An item in DynamoDB is limited to 400 KB.
const MAX_GRANTS_BYTES: usize = 300_000;

/// A role as read from the table.
pub struct StoredRole {
    pub(super) id: u32,
    name: String,
    /// Name of the role's workspace.
    pub workspace: String,
    /// The role's workspace with its id. `None` if the stored name is not a valid workspace name.
    workspace_ref: Option<WorkspaceRef>,
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
            workspace_ref: WorkspaceRef::of_role(item),
            description: text(DESCRIPTION),
            version: version.ok_or_else(unreadable)?,
            grants: role_grants(item)?,
        })
    }

    /// Returns the role as the API represents it.
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

    /// Returns the key that reserves the role's name.
    fn name_key(&self) -> Key {
        name_key(self.workspace_ref.as_ref().map_or(self.workspace.as_str(), WorkspaceRef::claim_prefix), &self.name)
    }

    pub(super) fn key(&self) -> Key {
        access_rows::Role::key(&Ordinal(self.id))
    }

    /// Starts an update of the role. It fails if the role has changed since it was read.
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

/// Returns the key that reserves a role's name. `claim` identifies the role's workspace
/// ([`WorkspaceRef::claim_prefix`]).
pub(super) fn name_key(claim: &str, name: &str) -> Key {
    access_rows::RoleName::key(&Name::from(claim), &Name::from(name))
}

/// Returns the row that reserves a role's name.
fn name_row(key: Key, name: &str, role: u32) -> Item {
    Item::new(key).with(NAME, text(name)).with(ROLE, number(role))
}

/// Returns the writes that create a role: its item, and the other writes of the transaction. The
/// first of the other writes reserves the role's name and fails if the name is taken.
pub(super) fn new_role(
    id: u32,
    place: &WorkspaceRef,
    name: &str,
    description: Option<&str>,
    grants: &[RoleGrant],
) -> (Item, Vec<Write>) {
    let granted = grants.iter().map(|grant| (grant.id.to_string(), text(grant.to_text()))).collect();
    let item = place
        .with_role(Item::new(access_rows::Role::key(&Ordinal(id))).with(NAME, text(name)))
        .with(VERSION, number(1))
        .with(GRANTS, map(granted));
    let item = match description {
        Some(description) => item.with(DESCRIPTION, text(description)),
        None => item,
    };
    let mut others = vec![
        Write::Put(name_row(name_key(place.claim_prefix(), name), name, id), Condition::item_missing()),
        Write::Put(Item::new(access_rows::ListedRole::key(&Ordinal(id))), Condition::Always),
    ];
    others.extend(grants.iter().map(|grant| named_grant(grant.id, id)));
    (item, others)
}

/// Returns the row that maps a grant's id to its role.
fn named_grant(grant: u32, role: u32) -> Write {
    let named = Item::new(access_rows::GrantOfRole::key(&Ordinal(grant))).with(ROLE, number(role));
    Write::Put(named, Condition::Always)
}

pub(super) fn already_exists(message: String) -> Error {
    Error::new(ErrorCode::ResourceAlreadyExists, message)
}

fn no_role(role: &IntegerParameter) -> Error {
    Error::not_found(format!("Role with id={} not found", role.0))
}

fn no_grant(grant: &IntegerParameter) -> Error {
    Error::not_found(format!("Role permission with id={} not found", grant.0))
}

impl Store {
    /// Returns the identity of a workspace in which a role may be created, or `None` for the
    /// default workspace. Takes one request, or none for the default workspace.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the workspace does not exist, and `ABORTED` if it is
    /// being deleted.
    pub(super) async fn workspace_of(&self, workspace: &Workspace) -> Result<Option<WorkspaceIdentity>> {
        if *workspace == Workspace::default() {
            return Ok(None);
        }
        let identity = WorkspaceIdentity::find(&self.data, workspace).await?;
        let identity = identity.ok_or_else(|| workspace.not_found())?;
        identity.check_open()?;
        Ok(Some(identity))
    }

    /// Returns a check, to be part of a transaction, that the role's workspace still exists with
    /// the same id and is not being deleted. Returns `None` in the default workspace. Takes one
    /// request in any other workspace.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the role's workspace no longer exists, and `ABORTED` if
    /// it is being deleted.
    pub(super) async fn workspace_check(&self, role: &StoredRole) -> Result<Option<Write>> {
        let gone = || no_role(&IntegerParameter(role.id.to_string()));
        let place = role.workspace_ref.as_ref().ok_or_else(gone)?;
        let identity = self.workspace_of(&place.workspace).await?;
        if WorkspaceRef::new(&place.workspace, identity.as_ref()) != *place {
            return Err(gone());
        }
        Ok(identity.map(|identity| self.data.of_others(identity.is_open())))
    }

    /// Creates a role. Takes two requests in the default workspace, and three in any other.
    ///
    /// # Errors
    /// Returns `RESOURCE_ALREADY_EXISTS` if the workspace has a role of this name,
    /// `RESOURCE_DOES_NOT_EXIST` if the workspace does not exist, and `ABORTED` if it is being
    /// deleted.
    pub async fn role_create(&self, name: &str, workspace: &str, description: Option<&str>) -> Result<StoredRole> {
        self.role_put(name, workspace, description, |item| item).await
    }

    /// Creates a role. `complete` adds attributes to the item.
    pub(super) async fn role_put(
        &self,
        name: &str,
        workspace: &str,
        description: Option<&str>,
        complete: impl FnOnce(Item) -> Item,
    ) -> Result<StoredRole> {
        let missing = || Error::not_found(format!("Workspace '{workspace}' not found"));
        let workspace = Workspace::parse(workspace).map_err(|_| missing())?;
        let identity = self.workspace_of(&workspace).await?;
        let place = WorkspaceRef::new(&workspace, identity.as_ref());
        let id = self.next_id(IdKind::Roles).await?;
        let (item, mut others) = new_role(id, &place, name, description, &[]);
        let item = complete(item);
        others.extend(identity.map(|identity| self.data.of_others(identity.is_open())));
        let role = StoredRole::of(&item)?;
        match self.access.create(item, others).await {
            Ok(()) => Ok(role),
            Err(Failure::Cancelled(reasons)) if matches!(reasons.get(1), Some(WriteRefusal::Refused(_))) => {
                Err(already_exists(format!("Role (name={name}, workspace={workspace}) already exists.")))
            }
            Err(Failure::Cancelled(reasons)) if matches!(reasons.get(3), Some(WriteRefusal::Refused(_))) => {
                Err(closed(&workspace))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Returns a role. Takes one request, and one more if the role is not in the default workspace
    /// and its workspace was not read within the lease.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the role or its workspace does not exist.
    pub(crate) async fn role_get(&self, role: &IntegerParameter) -> Result<StoredRole> {
        let Some(id) = role.id() else { return Err(no_role(role)) };
        self.roles_with(std::iter::once(id)).await?.pop().ok_or_else(|| no_role(role))
    }

    /// Returns the name of a role's workspace. Takes one or two requests, like [`Self::role_get`].
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the role or its workspace does not exist.
    pub(crate) async fn role_workspace(&self, role: &IntegerParameter) -> Result<String> {
        Ok(self.role_get(role).await?.workspace)
    }

    /// Returns the name of the workspace of the role that a grant belongs to. Takes two requests,
    /// and one more to read the workspace.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the grant, its role or the workspace does not exist.
    pub(crate) async fn grant_workspace(&self, grant: &IntegerParameter) -> Result<String> {
        Ok(self.role_of(grant).await?.0.workspace)
    }

    /// Returns the workspaces in which the caller has roles, or `None` for administrators of the
    /// server, who need no role.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub(crate) async fn memberships(&self, scope: &Scope) -> Result<Option<Memberships>> {
        match scope.caller() {
            Caller::User(user) if !user.is_admin => Ok(Some(self.authorizer.memberships(user).await?)),
            _ => Ok(None),
        }
    }

    /// Returns the workspaces that a user administers. The user is not an administrator of the
    /// server.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub(crate) async fn administered_by(&self, user: &User) -> Result<BTreeSet<String>> {
        Ok(self.authorizer.memberships(user).await?.administered)
    }

    /// Returns all roles of existing workspaces, ordered by id. Takes one request, one more per
    /// hundred roles, and one per hundred workspaces that were not read within the lease.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn roles(&self) -> Result<Vec<StoredRole>> {
        self.in_existing_workspaces(self.all_roles().await?).await
    }

    /// Returns all roles, including those whose workspace no longer exists.
    async fn all_roles(&self) -> Result<Vec<StoredRole>> {
        let listed = self.access.query(Query::of(access_rows::ListedRole::all())).await?;
        let ids = listed.iter().filter_map(|item| access_rows::ListedRole::parse(&item.key()?));
        self.stored_roles(ids.map(|row| row.role.0)).await
    }

    /// Removes the roles whose workspace no longer exists from a list.
    async fn in_existing_workspaces(&self, mut roles: Vec<StoredRole>) -> Result<Vec<StoredRole>> {
        let workspaces = roles.iter().filter_map(|role| role.workspace_ref.as_ref()).map(|place| &place.workspace);
        let places = self.authorizer.workspace_refs(workspaces).await?;
        roles.retain(|role| role.workspace_ref.as_ref().is_some_and(|place| places.has(place)));
        Ok(roles)
    }

    /// Returns the roles with these ids, ordered by id. Roles that do not exist, or whose workspace
    /// no longer exists, are left out.
    pub(super) async fn roles_with(&self, ids: impl Iterator<Item = u32>) -> Result<Vec<StoredRole>> {
        self.in_existing_workspaces(self.stored_roles(ids).await?).await
    }

    async fn stored_roles(&self, ids: impl Iterator<Item = u32>) -> Result<Vec<StoredRole>> {
        let keys: Vec<_> = ids.map(|id| access_rows::Role::key(&Ordinal(id))).collect();
        let items = self.access.get_many(&keys).await?;
        let mut roles = items.values().map(StoredRole::of).collect::<Result<Vec<_>>>()?;
        roles.sort_by_key(|role| role.id);
        Ok(roles)
    }

    /// Changes the name or the description of a role. Takes two requests.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the role does not exist, and `RESOURCE_ALREADY_EXISTS`
    /// if another role has the name.
    pub(crate) async fn role_change(
        &self,
        role: &IntegerParameter,
        name: Option<&str>,
        description: Option<&str>,
    ) -> Result<StoredRole> {
        self.access
            .change("a role", async |refusal: RefusedWrites| {
                let mut found = self.role_get(role).await?;
                let is_open = self.workspace_check(&found).await?;
                let mut change = found.change();
                let mut writes = Vec::new();
                if let Some(name) = name.filter(|name| *name != found.name) {
                    if refusal.is_of(1) {
                        return Err(already_exists(format!(
                            "Role with name={name} already exists in workspace={}",
                            found.workspace
                        )));
                    }
                    change = change.set(NAME, text(name));
                    writes.push(Write::Delete(found.name_key(), Condition::Always));
                    found.name = name.to_owned();
                    let claimed = name_row(found.name_key(), name, found.id);
                    writes.insert(0, Write::Put(claimed, Condition::item_missing()));
                }
                if let Some(description) = description {
                    change = change.set(DESCRIPTION, text(description));
                    found.description = Some(description.to_owned());
                }
                writes.insert(0, Write::Update(change));
                writes.extend(is_open);
                Ok::<_, Error>(ChangePlan::Write(writes, found))
            })
            .await
    }

    /// Removes a role from its users and deletes it. When the call returns, the role has no effect
    /// in any process. If a call is interrupted, the role has been removed from some users, and the
    /// next call continues.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the role does not exist.
    pub(crate) async fn role_delete(&self, role: &IntegerParameter) -> Result<()> {
        self.remove_role(self.role_get(role).await?).await
    }

    /// Deletes a role that has already been read, even if its workspace no longer exists.
    async fn remove_role(&self, found: StoredRole) -> Result<()> {
        let id = found.id;
        for member in self.members(found.id).await? {
            self.remove_assignment(&member, found.id).await?;
        }
        let grants = found.grants.iter().map(|grant| access_rows::GrantOfRole::key(&Ordinal(grant.id)));
        self.access.write_many(Vec::new(), &grants.collect::<Vec<_>>()).await?;
        self.access
            .change("a role", async |_: RefusedWrites| {
                let Some(found) = self.stored_roles(std::iter::once(id)).await?.pop() else {
                    return Ok::<_, Error>(ChangePlan::Done(()));
                };
                let is_unchanged = Condition::Equals(VERSION.into(), number(found.version));
                let writes = vec![
                    Write::Delete(found.key(), is_unchanged),
                    Write::Delete(found.name_key(), Condition::Always),
                    Write::Delete(access_rows::ListedRole::key(&Ordinal(found.id)), Condition::Always),
                ];
                Ok(ChangePlan::Write(writes, ()))
            })
            .await
    }

    /// Deletes all roles of a workspace, and removes them from their users, until no role is left.
    /// Roles that remain from earlier workspaces of the same name are deleted, too. No roles are
    /// created in the meantime, because the workspace is being deleted. Takes a few requests per
    /// role.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read or written. The call may be repeated.
    pub(crate) async fn roles_delete_of(&self, workspace: &Workspace) -> Result<()> {
        loop {
            let mut roles = self.all_roles().await?;
            roles.retain(|role| role.workspace == workspace.as_str());
            if roles.is_empty() {
                return Ok(());
            }
            for role in roles {
                self.remove_role(role).await?;
            }
        }
    }

    /// Adds a grant to a role. Takes four requests, and one more to look up the resource.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the role or the resource does not exist,
    /// `RESOURCE_ALREADY_EXISTS` if the role has a grant for the resource, and
    /// `INVALID_PARAMETER_VALUE` if the role has the maximum number of grants.
    pub(crate) async fn role_grant(
        &self,
        role: &IntegerParameter,
        kind: GrantType,
        pattern: &str,
        level: PermissionLevel,
    ) -> Result<RolePermission> {
        // The role is read first, so that no id is allocated if it does not exist.
        let workspace = Workspace::parse(&self.role_get(role).await?.workspace).unwrap_or_default();
        let found = self.find_resource(&AuthorizerWrites::nothing(), &workspace, kind, pattern).await?;
        let resource = found.map(|(_, id)| id).unwrap_or_default();
        let id = self.next_id(IdKind::Grants).await?;
        let grant = &RoleGrant { id, level, kind, resource, pattern: pattern.to_owned() };
        self.access
            .change("a role", async |_: RefusedWrites| {
                let found = self.role_get(role).await?;
                let is_open = self.workspace_check(&found).await?;
                if found.grants.iter().any(|other| (other.kind, other.pattern.as_str()) == (kind, pattern)) {
                    return Err(already_exists(format!(
                        "Role permission (role_id={}, resource_type={}, resource_pattern={pattern}) already exists.",
                        role.0,
                        kind.name()
                    )));
                }
                let bytes: usize = found.grants.iter().map(|grant| grant.to_text().len()).sum();
                if found.grants.len() >= MAX_GRANTS || bytes + grant.to_text().len() > MAX_GRANTS_BYTES {
                    return Err(Error::invalid(format!(
                        "A role can have at most {MAX_GRANTS} grants, in at most {MAX_GRANTS_BYTES} bytes."
                    )));
                }
                let change = found.change().set((GRANTS, grant.id.to_string().as_str()), text(grant.to_text()));
                let mut writes = vec![Write::Update(change), named_grant(grant.id, found.id)];
                writes.extend(is_open);
                Ok::<_, Error>(ChangePlan::Write(writes, permission(found.id, grant)))
            })
            .await
    }

    /// Returns a grant together with the role that contains it.
    async fn role_of(&self, grant: &IntegerParameter) -> Result<(StoredRole, RoleGrant)> {
        let Some(id) = grant.id() else { return Err(no_grant(grant)) };
        let named = self.access.get(&access_rows::GrantOfRole::key(&Ordinal(id))).await?;
        let role = named.and_then(|item| item.get(ROLE));
        let role = self.roles_with(role.into_iter()).await?.pop().ok_or_else(|| no_grant(grant))?;
        let found = role.grants.iter().find(|of_role| of_role.id == id).cloned();
        Ok((role, found.ok_or_else(|| no_grant(grant))?))
    }

    /// Removes a grant from its role. Takes three requests.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the grant does not exist.
    pub(crate) async fn role_revoke(&self, grant: &IntegerParameter) -> Result<()> {
        self.access
            .change("a role", async |_: RefusedWrites| {
                let (role, found) = self.role_of(grant).await?;
                let change = role.change().remove((GRANTS, found.id.to_string().as_str()));
                let named = Write::Delete(access_rows::GrantOfRole::key(&Ordinal(found.id)), Condition::Always);
                Ok::<_, Error>(ChangePlan::Write(vec![Write::Update(change), named], ()))
            })
            .await
    }

    /// Changes the level of a role's grant. Takes three requests.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the grant does not exist, and `INVALID_PARAMETER_VALUE`
    /// for a level that the resource type does not support.
    pub(crate) async fn role_change_grant(&self, grant: &IntegerParameter, level: &str) -> Result<RolePermission> {
        self.access
            .change("a role", async |_: RefusedWrites| {
                let (role, mut found) = self.role_of(grant).await?;
                let is_open = self.workspace_check(&role).await?;
                found.level = parse_grant(level, found.kind.name())?.0;
                let change = role.change().set((GRANTS, found.id.to_string().as_str()), text(found.to_text()));
                let writes = std::iter::once(Write::Update(change)).chain(is_open).collect();
                Ok::<_, Error>(ChangePlan::Write(writes, permission(role.id, &found)))
            })
            .await
    }
}
