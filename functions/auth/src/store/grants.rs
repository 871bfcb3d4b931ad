//! Grants that users hold directly. They are stored in the data table, in one partition per user.

use access::{AuthorizerWrites, Identity, Scope};
use entities::{closed, workspace_named};
use key_schema::attributes::{
    Attribute, HOME, ID, IN_WORKSPACE, LEVEL, LEVELS, NAME, RESOURCE, SCORER, Text, USER_ID, WORKSPACE,
};
use key_schema::{Key, ModelKey, Name, rows};
use mlflow_api::auth::{ALL_RESOURCES, GrantType, PermissionLevel, Role, RolePermission, UserPermission};
use mlflow_api::{Error, ErrorCode, ExperimentId, McpServerName, Result, SkillName, UserName, Workspace};
use permissions::{
    Account, GrantedResource, StoredGrant, WorkspaceRef, grant_key, grant_resource_id, missing_resource_grant_key,
    scorer_of,
};
use sha2::{Digest, Sha256};
use table::{
    ChangePlan, Condition, Failure, Item, Map, Query, RefusedWrites, Update, Write, WriteRefusal, map, number, text,
};

use super::Store;

/// Bit that is set in the ids of pseudo-roles. A user's direct grants in a workspace are returned
/// as a pseudo-role. The other bits of its id are the user's id in the default workspace, and a
/// hash in any other workspace.
const DIRECT_GRANTS_BIT: u32 = 1 << 31;

/// A direct grant of a user.
struct DirectGrant {
    workspace: Workspace,
    kind: GrantType,
    pattern: String,
    level: PermissionLevel,
}

impl Store {
    /// Finds the resource that a pattern names, and the id that distinguishes the resource from
    /// other resources of the same name. Takes one request, and none if the pattern matches all
    /// resources of a type.
    pub(super) async fn find_resource(
        &self,
        along: &AuthorizerWrites,
        workspace: &Workspace,
        kind: GrantType,
        pattern: &str,
    ) -> Result<Option<(GrantedResource, String)>> {
        if pattern == ALL_RESOURCES {
            return Ok(None);
        }
        let model_key = ModelKey::of(workspace, pattern);
        let model = || rows::RegisteredModel::key(&model_key);
        let scorer = scorer_of(pattern);
        let server = McpServerName::parse(pattern).ok();
        let skill = SkillName::parse(pattern).ok();
        let key = match kind {
            GrantType::McpServer => {
                server.as_ref().map(|server| rows::McpServer::key(&Name::from(workspace.as_str()), server))
            }
            GrantType::Skill => skill.as_ref().map(|skill| rows::Skill::key(&Name::from(workspace.as_str()), skill)),
            GrantType::Experiment => ExperimentId::parse(pattern).ok().map(|id| rows::Experiment::key(&id)),
            GrantType::RegisteredModel | GrantType::Prompt => Some(model()),
            GrantType::Scorer => scorer.as_ref().map(|(id, name)| rows::Scorer::key(id, &Name::from(name.as_str()))),
            _ => None,
        };
        let Some(key) = key else { return Ok(None) };
        let Some(item) = self.data.get(&key).await? else { return Ok(None) };
        // The name in the item is compared, because long names are truncated in keys, so the item
        // may belong to another name.
        let is_named = |name: &str| item.get(NAME) == Some(name);
        let text = |attribute: Attribute<Text>| item.get(attribute).map(str::to_owned);
        Ok(match kind {
            GrantType::Experiment => {
                let id = ExperimentId::parse(pattern)?;
                Some((GrantedResource::Experiment(id), id.to_string()))
            }
            GrantType::McpServer => server.zip(text(ID)).and_then(|(server, id)| {
                // The server's name may have been reused by another server since the request was
                // authorized, so the id is checked.
                let is_it = along.is_authorized_server(&server, &id);
                is_it.then(|| (GrantedResource::McpServer(workspace.clone(), server), id))
            }),
            GrantType::Skill => skill.zip(text(ID)).and_then(|(skill, id)| {
                let is_it = along.is_authorized_skill(&skill, &id);
                is_it.then(|| (GrantedResource::Skill(workspace.clone(), skill), id))
            }),
            GrantType::Scorer => scorer
                .filter(|(_, name)| is_named(name))
                .zip(item.get(SCORER).map(|id| id.to_string()))
                .map(|(of, id)| {
                    let (experiment, name) = of;
                    (GrantedResource::Scorer(experiment, name), id)
                }),
            _ if is_named(pattern) => {
                let home = text(HOME).unwrap_or_else(|| model_key.to_attribute());
                let kept = if kind == GrantType::Prompt {
                    GrantedResource::Prompt(home)
                } else {
                    GrantedResource::RegisteredModel(home)
                };
                // The id is checked because a caller may share only the model that the request was
                // authorized for, and the model's name may have been reused by another model.
                text(ID).filter(|id| along.is_authorized_model(pattern, id)).map(|id| (kept, id))
            }
            _ => None,
        })
    }

    /// Checks whether a resource exists in the workspace of a request. Takes one or two requests.
    pub(crate) async fn has_resource(&self, scope: &Scope, kind: GrantType, pattern: &str) -> Result<bool> {
        let workspace = scope.workspace();
        let Some((on, _)) = self.find_resource(&AuthorizerWrites::nothing(), workspace, kind, pattern).await? else {
            return Ok(false);
        };
        // The workspace has to be read, because the ids of experiments and scorers do not contain
        // it.
        let (GrantedResource::Experiment(experiment) | GrantedResource::Scorer(experiment, _)) = on else {
            return Ok(true);
        };
        let item = self.data.get(&rows::Experiment::key(&experiment)).await?;
        let of = item.map(|item| workspace_named(item.get(WORKSPACE))).transpose()?;
        Ok(of.as_ref() == Some(workspace))
    }

    /// Grants a permission to a user. Takes three requests.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the user does not exist; `RESOURCE_ALREADY_EXISTS` if
    /// the user has a grant for the resource already.
    pub async fn grant(
        &self,
        along: &AuthorizerWrites,
        name: &UserName,
        kind: GrantType,
        pattern: &str,
        level: PermissionLevel,
    ) -> Result<()> {
        let workspace = along.workspace();
        let place = WorkspaceRef::new(&workspace, along.workspace_identity());
        let is_open = along.workspace_open_condition(&workspace);
        self.grant_in(along, name, (&place, is_open), (kind, pattern), level).await
    }

    /// Grants a permission in a workspace. `is_open` is the check that the workspace still exists.
    pub(super) async fn grant_in(
        &self,
        along: &AuthorizerWrites,
        name: &UserName,
        (place, is_open): (&WorkspaceRef, Option<Write>),
        (kind, pattern): (GrantType, &str),
        level: PermissionLevel,
    ) -> Result<()> {
        let user_id = self.user_get(name).await?.user.id;
        let workspace = &place.workspace;
        let taken = || {
            let message = format!(
                "Permission for user={name} on resource_type={}, resource_id={pattern} already exists.",
                kind.name()
            );
            Error::new(ErrorCode::ResourceAlreadyExists, message)
        };
        if pattern == ALL_RESOURCES {
            return self.grant_all(name, user_id, (place, kind), level, is_open, taken).await;
        }
        let item = if let Some((on, id)) = self.find_resource(along, workspace, kind, pattern).await? {
            StoredGrant { target: on, user_id, resource: grant_resource_id(workspace, &id), level }.item(name)
        } else {
            let item = Item::new(missing_resource_grant_key(name, kind, &place.grant_text(pattern)))
                .with(USER_ID, number(user_id))
                .with(NAME, text(pattern))
                .with(LEVEL, text(level.name()));
            let is_default = *workspace == Workspace::default();
            if is_default { item } else { item.with(IN_WORKSPACE, text(place.to_string())) }
        };
        let is_other = |attribute: &str| {
            let value = item.0.get(attribute)?.clone();
            Some(Condition::Not(Box::new(Condition::Equals(attribute.into(), value))))
        };
        // The write replaces an existing grant if it belongs to an earlier user or an earlier
        // resource of the same name.
        let others = [is_other(USER_ID.name()), is_other(RESOURCE.name())].into_iter().flatten();
        let condition = Condition::Any(std::iter::once(Condition::item_missing()).chain(others).collect());
        let writes: Vec<_> = std::iter::once(Write::Put(item, condition)).chain(is_open).collect();
        match self.data.transact(&writes).await {
            Ok(()) => Ok(()),
            Err(Failure::Cancelled(reasons)) if matches!(reasons.first(), Some(WriteRefusal::Refused(_))) => {
                Err(taken())
            }
            Err(Failure::Cancelled(reasons)) if matches!(reasons.get(1), Some(WriteRefusal::Refused(_))) => {
                Err(closed(workspace))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Executes a write as a transaction, so that a retry after a lost response does not execute it
    /// again. Returns whether its condition held.
    async fn write_once(&self, write: Write) -> Result<bool> {
        match self.data.transact(&[write]).await {
            Ok(()) => Ok(true),
            Err(Failure::Cancelled(reasons)) if matches!(reasons.first(), Some(WriteRefusal::Refused(_))) => Ok(false),
            Err(failure) => Err(failure.into()),
        }
    }

    async fn grant_all(
        &self,
        name: &UserName,
        user_id: u32,
        (place, kind): (&WorkspaceRef, GrantType),
        level: PermissionLevel,
        is_open: Option<Write>,
        taken: impl Fn() -> Error,
    ) -> Result<()> {
        let key = rows::TypePermissions::key(name);
        let kind = place.grant_text(kind.name());
        let kind = kind.as_str();
        self.data
            .change("what a user is granted", async |refusal: RefusedWrites| {
                if refusal.is_of(1) {
                    return Err(closed(&place.workspace));
                }
                let with_check = |write| std::iter::once(write).chain(is_open.clone()).collect();
                let item = self.data.get(&key).await?;
                let own = item.as_ref().filter(|item| item.get(USER_ID) == Some(user_id));
                let Some(own) = own else {
                    let levels = Map::from([(kind.to_owned(), text(level.name()))]);
                    let new = Item::new(key.clone()).with(USER_ID, number(user_id)).with(LEVELS, map(levels));
                    let before = item.as_ref().and_then(|item| item.value(USER_ID)).cloned();
                    let condition = match before {
                        Some(before) => Condition::Equals(USER_ID.into(), before),
                        None => Condition::item_missing(),
                    };
                    return Ok(ChangePlan::Write(with_check(Write::Put(new, condition)), ()));
                };
                if own.map(LEVELS).is_some_and(|levels| levels.contains_key(kind)) {
                    return Err(taken());
                }
                let update = Update::new(key.clone())
                    .set((LEVELS, kind), text(level.name()))
                    .only_if(Condition::Equals(USER_ID.into(), number(user_id)))
                    .only_if(Condition::Missing((LEVELS, kind).into()));
                Ok::<_, Error>(ChangePlan::Write(with_check(Write::Update(update)), ()))
            })
            .await
    }

    /// Revokes a user's grant. Takes at most four requests.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the user or the grant does not exist.
    pub async fn revoke(
        &self,
        along: &AuthorizerWrites,
        name: &UserName,
        kind: GrantType,
        pattern: &str,
    ) -> Result<()> {
        let user_id = self.user_get(name).await?.user.id;
        let is_his = Condition::Equals(USER_ID.into(), number(user_id));
        let workspace = along.workspace();
        let place = WorkspaceRef::new(&workspace, along.workspace_identity());
        let is_revoked = if pattern == ALL_RESOURCES {
            let kind = place.grant_text(kind.name());
            let update = Update::new(rows::TypePermissions::key(name)).remove((LEVELS, kind.as_str()));
            let is_granted = Condition::Exists((LEVELS, kind.as_str()).into());
            self.write_once(Write::Update(update.only_if(is_his).only_if(is_granted))).await?
        } else {
            let unknown =
                Write::Delete(missing_resource_grant_key(name, kind, &place.grant_text(pattern)), is_his.clone());
            let known = self.find_resource(along, &workspace, kind, pattern).await?.map(|(on, id)| {
                let is_for_it = Condition::Equals(RESOURCE.into(), text(grant_resource_id(&workspace, &id)));
                Write::Delete(grant_key(name, &on), is_his.and(is_for_it))
            });
            let is_revoked = match known {
                Some(known) => self.write_once(known).await?,
                None => false,
            };
            // If the current resource has no such grant, there may be one that the user received
            // before the resource existed.
            is_revoked || self.write_once(unknown).await?
        };
        if is_revoked {
            return Ok(());
        }
        Err(Error::not_found(format!(
            "Permission for user={name} on resource_type={}, resource_id={pattern} not found.",
            kind.name()
        )))
    }

    /// Revokes all grants of users in a workspace, including those from earlier workspaces of the
    /// same name. No grants are added in the meantime, because the workspace is being deleted.
    /// Takes one request per user and MB of grants, and one more per user who has grants in the
    /// workspace.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read or written. The call may be repeated.
    pub(crate) async fn grants_revoke_in(&self, workspace: &Workspace) -> Result<()> {
        for account in self.users().await? {
            let key = rows::TypePermissions::key(&account.user.name);
            let granted = self.data.query(Query::of(rows::TypePermissions::partition(&account.user.name))).await?;
            let is_there = |place: Option<WorkspaceRef>| place.is_some_and(|place| place.workspace == *workspace);
            let of_one = granted.iter().filter(|item| is_there(workspace_of_grant(item))).filter_map(Item::key);
            self.data.write_many(Vec::new(), &of_one.collect::<Vec<_>>()).await?;
            let types = granted.iter().find(|item| item.key().as_ref() == Some(&key));
            let types = types.and_then(|item| item.map(LEVELS)).into_iter().flat_map(Map::keys);
            let revoked: Vec<_> =
                types.filter(|kind| is_there(WorkspaceRef::split_grant_text(kind).map(|(place, _)| place))).collect();
            if revoked.is_empty() {
                continue;
            }
            let update = Update::new(key).only_if(Condition::item_exists());
            let update = revoked.iter().fold(update, |update, kind| update.remove((LEVELS, kind.as_str())));
            match self.data.transact(&[Write::Update(update)]).await {
                Ok(()) | Err(Failure::Cancelled(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(())
    }

    /// Returns the valid direct grants of a user, in the order of types and resources.
    async fn direct_grants(&self, account: &Account) -> Result<Vec<DirectGrant>> {
        let name = &account.user.name;
        let items = self.data.query(Query::of(rows::TypePermissions::partition(name))).await?;
        let items: Vec<_> = items.into_iter().filter(|item| item.get(USER_ID) == Some(account.user.id)).collect();
        let kept: Vec<_> = items.iter().filter_map(StoredGrant::of).collect();
        let names = self.authorizer.names_of(&kept).await?;
        let mut own = Vec::new();
        for (grant, pattern) in kept.iter().zip(names) {
            if let (Some((place, _)), Some(pattern)) = (WorkspaceRef::split_grant_text(&grant.resource), pattern) {
                own.push((place, grant.target.kind(), pattern, grant.level));
            }
        }
        let of_one = own.len();
        for item in &items {
            let levels = permissions::type_levels(item, account.user.id).into_iter();
            own.extend(levels.map(|(place, kind, level)| (place, kind, ALL_RESOURCES.to_owned(), level)));
            let key: Option<Key> = item.key();
            if let Some(row) = key.as_ref().and_then(rows::OtherPermission::parse)
                && let (Some(kind), Some(level)) =
                    (GrantType::from_name(&row.kind.0), item.get(LEVEL).and_then(PermissionLevel::from_name))
                && let Some(place) = workspace_of_grant(item)
            {
                own.push((place, kind, item.get(NAME).unwrap_or_default().to_owned(), level));
            }
        }
        // The first grants in the list are those for single resources. They contain only the name
        // of their workspace, not its id, so the ids are looked up.
        let places = self.authorizer.workspace_refs(own.iter().map(|(place, ..)| &place.workspace)).await?;
        let counts = |index: usize, place: &WorkspaceRef| {
            if index < of_one { places.has_named(&place.workspace) } else { places.has(place) }
        };
        let own = own.into_iter().enumerate().filter(|(index, (place, ..))| counts(*index, place));
        let mut own: Vec<_> = own
            .map(|(_, (place, kind, pattern, level))| DirectGrant { workspace: place.workspace, kind, pattern, level })
            .collect();
        own.sort_by(|one, other| {
            (&one.workspace, one.kind.name(), &one.pattern).cmp(&(&other.workspace, other.kind.name(), &other.pattern))
        });
        Ok(own)
    }

    /// Returns the roles of a user, followed by the user's direct grants as one pseudo-role per
    /// workspace.
    ///
    /// # Errors
    /// Returns an error if the tables cannot be read.
    pub async fn roles_of(&self, account: &Account) -> Result<Vec<Role>> {
        let roles = self.roles_with(account.user.roles.iter().copied()).await?;
        let mut roles: Vec<_> = roles.iter().map(super::StoredRole::answer).collect();
        let own = self.direct_grants(account).await?;
        for own in own.chunk_by(|one, other| one.workspace == other.workspace) {
            let Some(workspace) = own.first().map(|own| &own.workspace) else { continue };
            let id = direct_grants_role_id(account.user.id, workspace);
            let permissions = own.iter().map(|own| RolePermission {
                id: direct_grant_id(account.user.id, own),
                role_id: id,
                resource_type: own.kind.name(),
                resource_pattern: own.pattern.clone(),
                permission: own.level.name(),
            });
            roles.push(Role {
                id,
                name: format!("__user_{}__", account.user.id),
                workspace: workspace.to_string(),
                description: None,
                permissions: permissions.collect(),
            });
        }
        Ok(roles)
    }

    /// Returns all permissions of a user, from roles and direct grants.
    ///
    /// # Errors
    /// Returns an error if the tables cannot be read.
    pub async fn permissions_of(&self, account: &Account) -> Result<Vec<UserPermission>> {
        Ok(self.roles_of(account).await?.into_iter().flat_map(permissions_of).collect())
    }

    /// Returns the effective level of a user's permission for a resource.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the user does not exist.
    pub async fn effective_level(
        &self,
        identity: &Identity,
        name: &UserName,
        kind: GrantType,
        pattern: &str,
    ) -> Result<PermissionLevel> {
        let found = self.user_get(name).await?;
        let grants = self.authorizer.grants_of(&found.user, &identity.workspace).await?;
        Ok(grants.effective(kind, pattern, self.authorizer.default_in(identity)))
    }
}

/// Returns the workspace of a grant for a single resource. The workspace may no longer exist.
/// `None` for items of other types.
fn workspace_of_grant(item: &Item) -> Option<WorkspaceRef> {
    if let Some(grant) = StoredGrant::of(item) {
        return Some(WorkspaceRef::split_grant_text(&grant.resource)?.0);
    }
    rows::OtherPermission::parse(&item.key()?)?;
    match item.get(IN_WORKSPACE) {
        Some(place) => WorkspaceRef::parse(place),
        None => Some(WorkspaceRef::new(&Workspace::default(), None)),
    }
}

/// Converts the grants of a role to the form in which a user's permissions are returned.
pub(crate) fn permissions_of(role: Role) -> impl Iterator<Item = UserPermission> {
    let (role_id, role_name, workspace) = (role.id, role.name, role.workspace);
    role.permissions.into_iter().map(move |permission| UserPermission {
        role_id,
        role_name: role_name.clone(),
        workspace: workspace.clone(),
        resource_type: permission.resource_type,
        resource_pattern: permission.resource_pattern,
        permission: permission.permission,
    })
}

/// Returns the id of the pseudo-role with a user's direct grants in a workspace.
fn direct_grants_role_id(user: u32, workspace: &Workspace) -> u32 {
    if *workspace == Workspace::default() {
        return DIRECT_GRANTS_BIT + user;
    }
    let hash = Sha256::digest(format!("{user} {workspace}"));
    DIRECT_GRANTS_BIT | hash.first_chunk().map_or(0, |first| u32::from_be_bytes(*first))
}

/// Returns the id of a user's direct grant. It has 52 bits, because clients read JSON numbers as
/// doubles. It is a hash of the grant, so that creating an entity does not have to update a
/// counter.
fn direct_grant_id(user: u32, own: &DirectGrant) -> u64 {
    let hash = Sha256::digest(format!("{user} {} {}", grant_resource_id(&own.workspace, own.kind.name()), own.pattern));
    hash.first_chunk().map_or(0, |first| u64::from_be_bytes(*first) >> 12)
}
