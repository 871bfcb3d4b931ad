//! The authorizer for users: it authenticates them and checks whether they may do what they
//! request.
//!
//! A request authenticates with a name and a password, with a session cookie, or with a token. For
//! signed requests, the gateway reports the signer. The process caches the callers that it has
//! identified, but only as a starting point. The user's item, and that of the session or token, are
//! read together with the request's guards and the grants on them, in one `BatchGetItem`. These
//! items are cached for [`LEASE`](crate::LEASE). Models and scorers are not cached, because their
//! names may pass to other entities at any time.

use std::sync::Arc;

use access::{
    AccessCheck, Action, Authorizer, AuthorizerItems, Caller, Credentials, EntityEvent, Guard, Identity,
    RequestCredentials, RequestHead, Resource, User, Visibility,
};
use futures::future::BoxFuture;
use key_schema::attributes::{NAME, TAGS};
use key_schema::{access_rows, rows};
use mlflow_api::auth::PermissionLevel;
use mlflow_api::{Error, ErrorCode, Result, UserName};
use runtime::clock::Moment;
use table::{Condition, Item, Table, TableKey, Write};

use crate::browser_pages::{is_of_foreign_page, is_of_own_page, is_page, unauthenticated};
use crate::caller_cache::CallerCache;
use crate::identification::{Identification, SignedRequests};
use crate::item_cache::{CachedItem, ItemCache};
use crate::password_policy::PasswordPolicy;
use crate::passwords::Passwords;
use crate::resources::{item_of, resources_of};
use crate::rules::rule_of;
use crate::stored_grants::{GrantedResource, StoredGrant, grant_key, grant_resource_id};
use crate::users::role_key;
use crate::visibility::visibility_of;
use crate::workspace_ref::{WorkspaceRef, item_key};

/// Maximum number of times that the tables are read for a request if its caller keeps changing.
const MAX_READS: usize = 4;

/// An authorizer for users, who sign in and may do what their grants allow.
#[derive(Clone)]
pub struct UserAuthorizer {
    pub(crate) data: Table,
    pub(crate) access: Table,
    default_level: PermissionLevel,
    creators: Option<String>,
    passwords: Passwords,
    password_policy: Arc<PasswordPolicy>,
    caller_cache: Arc<CallerCache>,
    item_cache: Arc<ItemCache>,
    pub(crate) signed_requests: Option<SignedRequests>,
}

impl UserAuthorizer {
    /// Creates an authorizer over the data table and the access table. `default` is the level of
    /// users without a grant for a resource.
    #[must_use]
    pub fn new(data: Table, access: Table, default: PermissionLevel) -> Self {
        let (passwords, known, recent) = (Passwords::default(), Arc::default(), Arc::default());
        Self {
            data,
            access,
            default_level: default,
            creators: None,
            passwords,
            password_policy: Arc::default(),
            caller_cache: known,
            item_cache: recent,
            signed_requests: None,
        }
    }

    /// Restricts the creation of experiments, registered models, prompts, MCP servers and skills to
    /// administrators and users with the role of this name in the request's workspace. With `None`,
    /// every user who may use the workspace can create them.
    #[must_use]
    pub fn with_creators(self, creators: Option<String>) -> Self {
        Self { creators, ..self }
    }

    /// Checks whether a user has the role that is required to create entities. The role is among
    /// the items that were read for the request.
    fn is_creator(&self, user: &User, identity: &Identity, read: &AuthorizerItems) -> bool {
        let Some(creators) = self.creators.as_deref() else { return true };
        let Some(here) = WorkspaceRef::current(&identity.workspace, read) else { return false };
        let mut roles = user.roles.iter().filter_map(|role| read.get(&self.in_access(role_key(*role))));
        roles.any(|role| role.get(NAME) == Some(creators) && WorkspaceRef::of_role(role).as_ref() == Some(&here))
    }

    /// Also accepts requests whose IAM signatures a gateway has verified. The caller of such a
    /// request is the principal that signed it.
    #[must_use]
    pub fn with_signed_requests(self, signed: SignedRequests) -> Self {
        Self { signed_requests: Some(signed), ..self }
    }

    /// Returns the level of users without a grant for a resource.
    #[must_use]
    pub fn default_level(&self) -> PermissionLevel {
        self.default_level
    }

    /// Returns the level of users without a grant for a resource in the request's workspace. On a
    /// server with several workspaces, such users have no access.
    #[must_use]
    pub fn default_in(&self, identity: &Identity) -> PermissionLevel {
        if identity.has_workspaces { PermissionLevel::NoPermissions } else { self.default_level }
    }

    /// Returns the verifier of passwords.
    #[must_use]
    pub fn passwords(&self) -> &Passwords {
        &self.passwords
    }

    /// Restricts the users who may authenticate with a password. By default, every user who has a
    /// password may.
    #[must_use]
    pub fn with_password_policy(self, policy: PasswordPolicy) -> Self {
        Self { password_policy: Arc::new(policy), ..self }
    }

    /// Returns which users may authenticate with a password.
    #[must_use]
    pub fn password_policy(&self) -> &PasswordPolicy {
        &self.password_policy
    }

    pub(crate) fn in_access(&self, key: key_schema::Key) -> TableKey {
        TableKey { table: Some(self.access.name().to_owned()), key }
    }

    /// Reads items, except for those that are still in the short-lived cache. Takes one request, or
    /// none.
    /// Only `lasting` items are cached, because a request that removes one of them waits until the
    /// lease has expired. Items in `others` belong to names that may pass to other entities at any
    /// time.
    pub(crate) async fn read_items(&self, lasting: Vec<TableKey>, others: Vec<TableKey>) -> Result<AuthorizerItems> {
        let (mut read, mut wanted) = (AuthorizerItems::new(), others);
        let mut missing = Vec::new();
        for key in lasting {
            match self.item_cache.get(&key) {
                Some(CachedItem::Item(item)) => drop(read.insert(key, item)),
                Some(CachedItem::Missing) => {}
                None => {
                    missing.push(key.clone());
                    wanted.push(key);
                }
            }
        }
        if wanted.is_empty() {
            return Ok(read);
        }
        let begin = Moment::now();
        let found = self.data.get_together(&wanted).await?;
        self.item_cache.insert(
            begin,
            missing.into_iter().map(|key| (key.clone(), CachedItem::of(found.get(&key).map(without_tags).as_ref()))),
        );
        read.extend(found);
        Ok(read)
    }

    /// Returns the keys to read for a caller and the guards of the request: first the items that
    /// can be cached, then the others.
    fn keys(&self, identity: &Identity, guards: &[Guard]) -> (Vec<TableKey>, Vec<TableKey>) {
        let (mut lasting, mut others) = (self.keys_of_sender(identity), Vec::new());
        for guard in guards {
            let key = guard.key(&identity.workspace).map(TableKey::here);
            // The item of an experiment, which also guards its scorers, can be cached because ids
            // of experiments are never reused. That of a workspace can be cached because its
            // deletion waits for the lease.
            let is_lasting = matches!(guard, Guard::Experiment(_) | Guard::Scorer(..) | Guard::Workspace(_));
            if is_lasting { lasting.extend(key) } else { others.extend(key) }
        }
        let Some(user) = identity.caller.user().filter(|user| !user.is_admin) else { return (lasting, others) };
        lasting.push(TableKey::here(rows::TypePermissions::key(&user.name)));
        // Roles and grants belong to a workspace by its id.
        lasting.extend(item_key(&identity.workspace));
        lasting.extend(user.roles.iter().map(|role| self.in_access(role_key(*role))));
        for resource in guards.iter().flat_map(|guard| resources_of(guard, &identity.workspace)) {
            let key = TableKey::here(grant_key(&user.name, &resource));
            if matches!(resource, GrantedResource::Experiment(_)) {
                lasting.push(key);
            } else {
                others.push(key);
            }
            others.extend(item_of(&resource).map(TableKey::here));
        }
        (lasting, others)
    }

    /// Returns the keys to read for the caller alone. All of them are in the access table.
    fn keys_of_sender(&self, identity: &Identity) -> Vec<TableKey> {
        let sent = identity.request_credentials.as_ref();
        sent.map(|sent| self.keys_of(&sent.credentials, identity.caller.user())).unwrap_or_default()
    }

    /// Identifies the sender of a request. Takes no request if the items are cached, two for an AWS
    /// principal that is mapped to a user, and one otherwise.
    async fn identify(&self, sent: &Arc<RequestCredentials>) -> Result<Identity> {
        let mut user: Option<User> = None;
        for _ in 0..MAX_READS {
            let read = self.read_items(self.keys_of(&sent.credentials, user.as_ref()), Vec::new()).await?;
            match self.identify_caller(sent, user.as_ref(), &read).await? {
                Identification::Caller(found) => return Ok(found),
                Identification::User(found) => user = Some(placeholder_user(found)),
            }
        }
        Err(Error::unavailable("the caller kept changing"))
    }

    /// Reads the items that identify the caller, and the items and grants that the guards of the
    /// request require. With `None` instead of guards, reads only the former. If the items show that
    /// the caller has changed, reads again for the new identity, and returns it.
    async fn read_for(&self, mut identity: Identity, guards: Option<&[Guard]>) -> Result<(Identity, AuthorizerItems)> {
        for _ in 0..MAX_READS {
            let (lasting, others) = match guards {
                Some(guards) => self.keys(&identity, guards),
                None => (self.keys_of_sender(&identity), Vec::new()),
            };
            let read = self.read_items(lasting, others).await?;
            let Some(sent) = identity.request_credentials.clone() else { return Ok((identity, read)) };
            let found = self.identify_caller(&sent, identity.caller.user(), &read).await;
            let found = match found.inspect_err(|_| self.caller_cache.remove(&sent.credentials))? {
                Identification::Caller(found) => {
                    let Identity { workspace, has_workspaces, .. } = &identity;
                    Identity { workspace: workspace.clone(), has_workspaces: *has_workspaces, ..found }
                }
                Identification::User(user) => {
                    identity.caller = Caller::User(Arc::new(placeholder_user(user)));
                    continue;
                }
            };
            let is_as_known = found.caller == identity.caller && found.restriction == identity.restriction;
            if is_as_known {
                return Ok((found, read));
            }
            // The user's roles have changed, or the user has become an administrator.
            self.caller_cache.insert(&sent.credentials, &found);
            identity = found;
        }
        Err(Error::unavailable("the caller kept changing"))
    }
}

impl Authorizer for UserAuthorizer {
    fn authenticate<'a>(&'a self, arrived: &'a RequestHead) -> BoxFuture<'a, Result<Identity>> {
        Box::pin(async move {
            let refusal = || unauthenticated(arrived);
            let credentials = self.credentials(arrived).ok_or_else(refusal)?;
            if !is_intended(&credentials, arrived) {
                return Err(Error::new(ErrorCode::PermissionDenied, "Cross-origin request blocked"));
            }
            let sent = Arc::new(RequestCredentials {
                credentials,
                client_address: arrived.connection.peer,
                refusal: refusal(),
            });
            if let Some(known) = self.caller_cache.get(&sent.credentials) {
                return Ok(Identity { request_credentials: Some(sent), ..known });
            }
            let found = self.identify(&sent).await?;
            self.caller_cache.insert(&sent.credentials, &found);
            // Logged once per process and caller. The caller authenticates again with every
            // request.
            tracing::info!(target: "audit", event = "known", with = ?sent.credentials, from = ?sent.client_address);
            Ok(found)
        })
    }

    fn read<'a>(
        &'a self,
        identity: Identity,
        _: &'a Table,
        guards: &'a [Guard],
    ) -> BoxFuture<'a, Result<(Identity, AuthorizerItems)>> {
        Box::pin(self.read_for(identity, Some(guards)))
    }

    /// Reads only the access table, because the user interface's function has no access to the data
    /// table.
    fn confirm(&self, identity: Identity) -> BoxFuture<'_, Result<Identity>> {
        Box::pin(async move { Ok(self.read_for(identity, None).await?.0) })
    }

    fn authorize<'a>(
        &'a self,
        identity: &'a Identity,
        asked: &'a [AccessCheck],
        read: &'a AuthorizerItems,
    ) -> BoxFuture<'a, Result<Vec<bool>>> {
        Box::pin(async move {
            let user = match &identity.caller {
                Caller::Anonymous => return Ok(vec![false; asked.len()]),
                Caller::Principal(_) => return Ok(vec![true; asked.len()]),
                Caller::User(user) => user,
            };
            if user.is_admin {
                return Ok(vec![true; asked.len()]);
            }
            let grants = self.grants_in(user, identity, asked, read).await?;
            let default = self.default_in(identity);
            let is_creator = self.is_creator(user, identity, read);
            let matters = |ask: &AccessCheck| !is_own(user, ask) && asks_for_administrators(ask);
            let administers = asked.iter().any(matters) && !self.memberships(user).await?.administered.is_empty();
            // The endpoint itself checks whether the caller administers this user, from the user's
            // roles.
            let is_of_his =
                |ask: &AccessCheck| administers && ask.action == Action::Read && matches!(ask.guard, Guard::User(_));
            let may = |ask: &AccessCheck| {
                is_own(user, ask)
                    || is_of_his(ask)
                    || match workspace_condition(ask) {
                        WorkspaceCondition::AdministersAny => administers,
                        WorkspaceCondition::MayUse if identity.has_workspaces && !grants.may_create() => false,
                        WorkspaceCondition::MayUse if ask.action == Action::Create && !is_creator => false,
                        WorkspaceCondition::MayUse | WorkspaceCondition::Nothing => grants.meet(&rule_of(ask), default),
                    }
            };
            Ok(asked.iter().map(may).collect())
        })
    }

    fn visibility<'a>(&'a self, identity: &'a Identity) -> BoxFuture<'a, Result<Visibility>> {
        Box::pin(async move {
            match &identity.caller {
                Caller::Anonymous => Ok(Visibility::nothing()),
                Caller::Principal(_) => Ok(Visibility::Everything),
                Caller::User(user) if user.is_admin => Ok(Visibility::Everything),
                Caller::User(user) => {
                    Ok(visibility_of(self.grants_of(user, &identity.workspace).await?, self.default_in(identity)))
                }
            }
        })
    }

    fn is_user_name<'a>(&'a self, name: &'a UserName) -> BoxFuture<'a, Result<bool>> {
        // Functions that serve data may only read the access table with `BatchGetItem`.
        let key = self.in_access(access_rows::User::key(name));
        Box::pin(async move { Ok(self.read_items(vec![key.clone()], Vec::new()).await?.contains_key(&key)) })
    }

    /// Grants full control of a new entity to its creator.
    fn writes(&self, identity: &Identity, event: EntityEvent<'_>) -> Vec<Write> {
        let (Some(user), EntityEvent::Created { kind, guarded, id, home }) = (identity.caller.user(), event) else {
            return Vec::new();
        };
        let on = match (guarded, kind) {
            (Guard::Experiment(experiment), Resource::Experiment) => GrantedResource::Experiment(*experiment),
            (Guard::RegisteredModel(_), Resource::Prompt) => GrantedResource::Prompt(home.to_owned()),
            (Guard::RegisteredModel(_), _) => GrantedResource::RegisteredModel(home.to_owned()),
            (Guard::Scorer(experiment, name), _) => GrantedResource::Scorer(*experiment, name.clone()),
            (Guard::McpServer(name), _) => GrantedResource::McpServer(identity.workspace.clone(), name.clone()),
            (Guard::Skill(name), _) => GrantedResource::Skill(identity.workspace.clone(), name.clone()),
            _ => return Vec::new(),
        };
        let resource = grant_resource_id(&identity.workspace, id);
        let grant = StoredGrant { target: on, user_id: user.id, resource, level: PermissionLevel::Manage };
        vec![Write::Put(grant.item(&user.name), Condition::Always)]
    }
}

/// Returns the part of an item that is cached. Tags are dropped: an experiment may have up to 48 KB
/// of them, and they are irrelevant to access.
fn without_tags(item: &Item) -> Item {
    let mut item = item.clone();
    item.take(TAGS);
    item
}

/// Returns a placeholder for a user whose item has not been read yet.
fn placeholder_user(name: UserName) -> User {
    User { name, id: 0, is_admin: false, roles: Vec::new(), version: 0 }
}

/// Checks whether the owner of the credentials may have intended to send the request. Browsers
/// attach cookies, and passwords that they have prompted for, to requests that any page causes.
fn is_intended(credentials: &Credentials, arrived: &RequestHead) -> bool {
    match credentials {
        Credentials::Token(..) | Credentials::Signature(_) => true,
        Credentials::Password(..) => is_page(arrived) || !is_of_foreign_page(arrived),
        Credentials::Session(..) => is_page(arrived) || is_of_own_page(arrived),
    }
}

/// Checks whether the decision depends on whether the caller administers some workspace.
fn asks_for_administrators(ask: &AccessCheck) -> bool {
    matches!(ask.guard, Guard::User(_)) || matches!(workspace_condition(ask), WorkspaceCondition::AdministersAny)
}

/// Conditions on the caller in addition to the rules.
enum WorkspaceCondition {
    /// The caller has to administer some workspace. The endpoint itself checks whether it is the
    /// workspace of the role in the request.
    AdministersAny,
    /// If workspaces are enabled, the caller has to be allowed to use the workspace of the request
    /// (`_can_create_in_workspace`).
    MayUse,
    /// No additional condition.
    Nothing,
}

fn workspace_condition(ask: &AccessCheck) -> WorkspaceCondition {
    match (ask.action, ask.kind, &ask.guard) {
        (_, Resource::Role, _) | (Action::Create, Resource::User, _) => WorkspaceCondition::AdministersAny,
        // These actions create entities that no other entity contains, or list the users of the
        // workspace.
        (
            Action::Create,
            Resource::Experiment | Resource::RegisteredModel | Resource::Prompt | Resource::McpServer | Resource::Skill,
            _,
        )
        | (Action::Read, Resource::User, Guard::Workspace(_)) => WorkspaceCondition::MayUse,
        // Registering the first version of an MCP server or a skill also creates the server or
        // skill.
        (Action::Create, Resource::McpServerVersion | Resource::SkillVersion, _) if ask.stored.is_none() => {
            WorkspaceCondition::MayUse
        }
        _ => WorkspaceCondition::Nothing,
    }
}

/// Checks whether the access check concerns the caller's own account. Users may read their own data
/// and change their password, and a user with a role may read roles.
fn is_own(user: &User, ask: &AccessCheck) -> bool {
    match &ask.guard {
        Guard::User(name) => *name == user.name && matches!(ask.action, Action::Read | Action::Update),
        Guard::Workspace(Resource::Role) => ask.action == Action::Read && !user.roles.is_empty(),
        _ => false,
    }
}
