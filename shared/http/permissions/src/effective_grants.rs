//! The effective grants of users.

use std::collections::{BTreeSet, HashSet};

use access::{AccessCheck, AuthorizerItems, Identity, User};
use key_schema::attributes::{HOME, NAME};
use key_schema::{Key, rows};
use mlflow_api::auth::{ALL_RESOURCES, GrantType, PermissionLevel};
use mlflow_api::{Result, Workspace};
use table::{Item, Query, TableKey};

use crate::grants::Grants;
use crate::resources::{
    at_home, home_of, is_effective, is_granted_resource, item_granted, item_of, pattern, resources_of,
};
use crate::rules::canonical;
use crate::stored_grants::{GrantedResource, StoredGrant, grant_key, type_levels};
use crate::user_authorizer::UserAuthorizer;
use crate::users::{RoleGrant, role_grants, role_grants_in, role_key};
use crate::workspace_ref::{WorkspaceRef, WorkspaceRefs, item_key};

impl UserAuthorizer {
    /// Returns all effective grants of a user in a workspace. Takes one request, plus one for roles
    /// that are missing from the short-lived cache, plus one per 100 models and scorers to check
    /// that they are still the resources that the grants were made for.
    ///
    /// # Errors
    /// Returns an error if the tables cannot be read.
    pub async fn grants_of(&self, user: &User, workspace: &Workspace) -> Result<Grants> {
        let own = self.data.query(Query::of(rows::TypePermissions::partition(&user.name))).await?;
        let mut grants = Grants::default();
        let Some((place, of_roles)) = self.grants_of_roles(&user.roles, workspace).await? else { return Ok(grants) };
        for item in &own {
            add_types(&mut grants, item, user, &place);
        }
        let is_his = |grant: &StoredGrant| {
            let is_here = WorkspaceRef::split_grant_text(&grant.resource)
                .is_some_and(|(granted, _)| granted.workspace == *workspace);
            grant.user_id == user.id && is_here
        };
        let own: Vec<_> = own.iter().filter_map(StoredGrant::of).filter(is_his).collect();
        for (grant, pattern) in own.iter().zip(self.names_of(&own).await?) {
            if let Some(pattern) = pattern {
                grants.add(grant.target.kind(), &pattern, grant.level);
            }
        }
        let keys: Vec<_> = of_roles.iter().filter_map(|grant| item_granted(grant, workspace)).collect();
        let items = self.data.get_many(&keys).await?;
        for grant in of_roles {
            if is_effective(&grant, item_granted(&grant, workspace).and_then(|key| items.get(&key))) {
                grants.add(grant.kind, &canonical(grant.kind, &grant.pattern), grant.level);
            }
        }
        Ok(grants)
    }

    /// Returns the current names of the resources of these grants, in the order of the grants.
    /// Returns `None` for a resource that no longer exists, even if another resource has its name
    /// now. Takes one request per 100 models and scorers.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn names_of(&self, granted: &[StoredGrant]) -> Result<Vec<Option<String>>> {
        let keys: Vec<_> = granted.iter().map(|grant| home_of(&grant.target)).collect();
        let items = self.data.get_many(&keys.iter().flatten().cloned().collect::<Vec<_>>()).await?;
        let name = |(grant, key): (&StoredGrant, &Option<Key>)| {
            let item = key.as_ref().and_then(|key| items.get(key));
            let (place, _) = WorkspaceRef::split_grant_text(&grant.resource)?;
            is_granted_resource(&grant.resource, &grant.target, item, &place.workspace).then(|| {
                match &grant.target {
                    GrantedResource::RegisteredModel(_) | GrantedResource::Prompt(_) => {
                        item?.get(NAME).map(str::to_owned)
                    }
                    on => Some(pattern(on)),
                }
            })?
        };
        Ok(granted.iter().zip(&keys).map(name).collect())
    }

    /// Returns the current reference to a workspace, and the grants of the roles among `roles` that
    /// belong to this workspace. Returns `None` if the workspace does not exist.
    async fn grants_of_roles(
        &self,
        roles: &[u32],
        workspace: &Workspace,
    ) -> Result<Option<(WorkspaceRef, Vec<RoleGrant>)>> {
        let roles: Vec<_> = roles.iter().map(|role| self.in_access(role_key(*role))).collect();
        let keys = roles.iter().cloned().chain(item_key(workspace)).collect();
        let read = self.read_items(keys, Vec::new()).await?;
        let Some(place) = WorkspaceRef::current(workspace, &read) else { return Ok(None) };
        let mut grants = Vec::new();
        for role in roles.iter().filter_map(|key| read.get(key)) {
            grants.extend(role_grants_in(role, &place)?);
        }
        Ok(Some((place, grants)))
    }

    /// Returns the user's grants that apply to the guards of a request, from the items that were
    /// read with the guards.
    pub(crate) async fn grants_in(
        &self,
        user: &User,
        identity: &Identity,
        asked: &[AccessCheck],
        read: &AuthorizerItems,
    ) -> Result<Grants> {
        let workspace = &identity.workspace;
        let mut grants = Grants::default();
        let Some(place) = WorkspaceRef::current(workspace, read) else { return Ok(grants) };
        let here = |key: Key| read.get(&TableKey::here(key));
        if let Some(item) = here(rows::TypePermissions::key(&user.name)) {
            add_types(&mut grants, item, user, &place);
        }
        let guards: HashSet<_> = asked.iter().map(|ask| &ask.guard).collect();
        for resource in guards.iter().flat_map(|guard| resources_of(guard, workspace)) {
            let item = item_of(&resource).and_then(here);
            // A grant for a renamed model is stored under the model's home, which is the name that
            // its rows are stored under.
            let kept = match item.and_then(|item| item.get(HOME)) {
                Some(home) => self.data.get(&grant_key(&user.name, &at_home(&resource, home))).await?,
                None => here(grant_key(&user.name, &resource)).cloned(),
            };
            let Some(grant) = kept.as_ref().and_then(StoredGrant::of).filter(|grant| grant.user_id == user.id) else {
                continue;
            };
            if is_granted_resource(&grant.resource, &resource, item, workspace) {
                grants.add(resource.kind(), &pattern(&resource), grant.level);
            }
        }
        for role in &user.roles {
            let key = TableKey { table: Some(self.access.name().to_owned()), key: role_key(*role) };
            let of_role = read.get(&key).map(|role| role_grants_in(role, &place)).transpose()?;
            for grant in of_role.into_iter().flatten() {
                if is_effective(&grant, item_granted(&grant, workspace).and_then(here)) {
                    grants.add(grant.kind, &canonical(grant.kind, &grant.pattern), grant.level);
                }
            }
        }
        Ok(grants)
    }
}

/// The workspaces in which a user has roles. Deleted workspaces are not included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memberships {
    /// Workspaces that the user administers.
    pub administered: BTreeSet<String>,
    /// All workspaces in which the user has a role.
    pub all: BTreeSet<String>,
}

impl UserAuthorizer {
    /// Returns the workspaces among these that exist, with their current ids. Takes one request per
    /// 100 workspaces, and none for the default one and for cached ones.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn workspace_refs<'a>(
        &self,
        workspaces: impl Iterator<Item = &'a Workspace> + Send,
    ) -> Result<WorkspaceRefs> {
        let wanted: BTreeSet<_> = workspaces.cloned().collect();
        let read = self.read_items(wanted.iter().filter_map(item_key).collect(), Vec::new()).await?;
        Ok(WorkspaceRefs::current(wanted.into_iter(), &read))
    }

    /// Returns the workspaces in which a user has roles. Takes up to two requests: fewer if the
    /// roles or the workspaces are cached, and one if all roles are in the default workspace.
    ///
    /// # Errors
    /// Returns an error if the tables cannot be read.
    pub async fn memberships(&self, user: &User) -> Result<Memberships> {
        let keys = user.roles.iter().map(|role| self.in_access(role_key(*role))).collect();
        let roles = self.read_items(keys, Vec::new()).await?;
        let of: Vec<_> = roles.values().filter_map(|role| Some((WorkspaceRef::of_role(role)?, role))).collect();
        let places = self.workspace_refs(of.iter().map(|(place, _)| &place.workspace)).await?;
        let mut found = Memberships::default();
        for (place, role) in of.into_iter().filter(|(place, _)| places.has(place)) {
            let name = place.workspace.to_string();
            let administers = |grant: &RoleGrant| {
                (grant.kind, grant.pattern.as_str(), grant.level)
                    == (GrantType::Workspace, ALL_RESOURCES, PermissionLevel::Manage)
            };
            if role_grants(role)?.iter().any(administers) {
                found.administered.insert(name.clone());
            }
            found.all.insert(name);
        }
        Ok(found)
    }
}

/// Adds a user's grants for entire types in a workspace.
fn add_types(grants: &mut Grants, item: &Item, user: &User, place: &WorkspaceRef) {
    for (granted, kind, level) in type_levels(item, user.id) {
        if granted == *place {
            grants.add(kind, ALL_RESOURCES, level);
        }
    }
}
