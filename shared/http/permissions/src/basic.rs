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
    Action, Arrived, Ask, Authorizer, Caller, Credentials, Event, Guarded, Identity, Read, Resource, Sent, User,
    Visible,
};
use futures::future::BoxFuture;
use key_schema::attributes::{NAME, TAGS};
use key_schema::rows;
use mlflow_api::auth::Level;
use mlflow_api::{Error, ErrorCode, Result, UserName};
use runtime::clock::Moment;
use table::{Condition, Item, Table, TableKey, Write};

use crate::found::{Found, Signed};
use crate::keep::{Kept, KeptGrant, granted_in, granted_key};
use crate::known::Known;
use crate::page::{is_of_foreign_page, is_of_own_page, is_page, unauthenticated};
use crate::passwords::Passwords;
use crate::place::{Place, item_key};
use crate::recent::{Recent, Seen};
use crate::resources::{item_of, resources};
use crate::rules::rule_of;
use crate::sight::visible;
use crate::users::role_key;

/// Maximum number of times that the tables are read for a request if its caller keeps changing.
const ATTEMPTS: usize = 4;

/// An authorizer for users, who sign in and may do what their grants allow.
#[derive(Clone)]
pub struct Basic {
    pub(crate) data: Table,
    pub(crate) access: Table,
    default: Level,
    creators: Option<String>,
    passwords: Passwords,
    known: Arc<Known>,
    recent: Arc<Recent>,
    pub(crate) signed: Option<Signed>,
}

impl Basic {
    /// Creates an authorizer over the data table and the access table. `default` is the level of
    /// users without a grant for a resource.
    #[must_use]
    pub fn new(data: Table, access: Table, default: Level) -> Self {
        let (passwords, known, recent) = (Passwords::default(), Arc::default(), Arc::default());
        Self { data, access, default, creators: None, passwords, known, recent, signed: None }
    }

    /// Restricts the creation of experiments, registered models and prompts to administrators and
    /// users with the role of this name in the request's workspace. With `None`, every user who may
    /// use the workspace can create them.
    #[must_use]
    pub fn with_creators(self, creators: Option<String>) -> Self {
        Self { creators, ..self }
    }

    /// Checks whether a user has the role that is required to create entities, from the items that
    /// were read with the request.
    fn is_creator(&self, user: &User, identity: &Identity, read: &Read) -> bool {
        let Some(creators) = self.creators.as_deref() else { return true };
        let Some(here) = Place::current(&identity.workspace, read) else { return false };
        let mut roles = user.roles.iter().filter_map(|role| read.get(&self.in_access(role_key(*role))));
        roles.any(|role| role.get(NAME) == Some(creators) && Place::of_role(role).as_ref() == Some(&here))
    }

    /// Accepts requests whose signatures a gateway has verified. Their callers are the principals
    /// that signed them.
    #[must_use]
    pub fn with_signed(self, signed: Signed) -> Self {
        Self { signed: Some(signed), ..self }
    }

    /// Returns the level of users without a grant for a resource.
    #[must_use]
    pub fn default_level(&self) -> Level {
        self.default
    }

    /// Returns the level of users without a grant for a resource in the request's workspace. If
    /// there are several workspaces, users have no access without a grant.
    #[must_use]
    pub fn default_in(&self, identity: &Identity) -> Level {
        if identity.has_workspaces { Level::NoPermissions } else { self.default }
    }

    /// Returns the verifier of passwords.
    #[must_use]
    pub fn passwords(&self) -> &Passwords {
        &self.passwords
    }

    pub(crate) fn in_access(&self, key: key_schema::Key) -> TableKey {
        TableKey { table: Some(self.access.name().to_owned()), key }
    }

    /// Reads items, except for those that are still in the short-lived cache. Takes one request, or
    /// none.
    ///
    /// Only `lasting` items are cached: their removal waits for the lease. The names in `others`
    /// may pass to other entities at any time.
    pub(crate) async fn read_items(&self, lasting: Vec<TableKey>, others: Vec<TableKey>) -> Result<Read> {
        let (mut read, mut wanted) = (Read::new(), others);
        let mut missing = Vec::new();
        for key in lasting {
            match self.recent.get(&key) {
                Some(Seen::Item(item)) => drop(read.insert(key, item)),
                Some(Seen::Nothing) => {}
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
        self.recent
            .keep(begin, missing.into_iter().map(|key| (key.clone(), Seen::of(found.get(&key).map(slim).as_ref()))));
        read.extend(found);
        Ok(read)
    }

    /// Returns the keys to read for a caller and the guards of the request: first the items that
    /// can be cached, then the others.
    fn keys(&self, identity: &Identity, guards: &[Guarded]) -> (Vec<TableKey>, Vec<TableKey>) {
        let (mut lasting, mut others) = (self.keys_of_sender(identity), Vec::new());
        for guard in guards {
            let key = guard.key(&identity.workspace).map(TableKey::here);
            // Ids of experiments are never reused, and the deletion of a workspace waits for the
            // lease.
            let is_lasting = matches!(guard, Guarded::Experiment(_) | Guarded::Scorer(..) | Guarded::Workspace(_));
            if is_lasting { lasting.extend(key) } else { others.extend(key) }
        }
        let Some(user) = identity.caller.user().filter(|user| !user.is_admin) else { return (lasting, others) };
        lasting.push(TableKey::here(rows::TypePermissions::key(&user.name)));
        // Roles and grants belong to a workspace by its id.
        lasting.extend(item_key(&identity.workspace));
        lasting.extend(user.roles.iter().map(|role| self.in_access(role_key(*role))));
        for resource in guards.iter().flat_map(|guard| resources(guard, &identity.workspace)) {
            let key = TableKey::here(granted_key(&user.name, &resource));
            if matches!(resource, Kept::Experiment(_)) {
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
        let sent = identity.sent.as_ref();
        sent.map(|sent| self.keys_of(&sent.credentials, identity.caller.user())).unwrap_or_default()
    }

    /// Identifies the sender of a request. Takes one request, or none if the items are cached; two
    /// for an AWS principal that is mapped to a user.
    async fn find(&self, sent: &Arc<Sent>) -> Result<Identity> {
        let mut user: Option<User> = None;
        for _ in 0..ATTEMPTS {
            let read = self.read_items(self.keys_of(&sent.credentials, user.as_ref()), Vec::new()).await?;
            match self.caller_of(sent, user.as_ref(), &read).await? {
                Found::Caller(found) => return Ok(found),
                Found::User(found) => user = Some(unread(found)),
            }
        }
        Err(Error::unavailable("the caller kept changing"))
    }

    /// Reads the items for a caller and the guards of the request. With `None`, reads only the
    /// items that identify the caller, and no grants.
    async fn read_for(&self, mut identity: Identity, guards: Option<&[Guarded]>) -> Result<(Identity, Read)> {
        for _ in 0..ATTEMPTS {
            let (lasting, others) = match guards {
                Some(guards) => self.keys(&identity, guards),
                None => (self.keys_of_sender(&identity), Vec::new()),
            };
            let read = self.read_items(lasting, others).await?;
            let Some(sent) = identity.sent.clone() else { return Ok((identity, read)) };
            let found = self.caller_of(&sent, identity.caller.user(), &read).await;
            let found = match found.inspect_err(|_| self.known.forget(&sent.credentials))? {
                Found::Caller(found) => {
                    let Identity { workspace, has_workspaces, .. } = &identity;
                    Identity { workspace: workspace.clone(), has_workspaces: *has_workspaces, ..found }
                }
                Found::User(user) => {
                    identity.caller = Caller::User(Arc::new(unread(user)));
                    continue;
                }
            };
            let is_as_known = found.caller == identity.caller && found.restriction == identity.restriction;
            if is_as_known {
                return Ok((found, read));
            }
            // The user's roles have changed, or the user has become an administrator.
            self.known.keep(&sent.credentials, &found);
            identity = found;
        }
        Err(Error::unavailable("the caller kept changing"))
    }
}

impl Authorizer for Basic {
    fn authenticate<'a>(&'a self, arrived: &'a Arrived) -> BoxFuture<'a, Result<Identity>> {
        Box::pin(async move {
            let refusal = || unauthenticated(arrived);
            let credentials = self.credentials(arrived).ok_or_else(refusal)?;
            if !may_be_meant(&credentials, arrived) {
                return Err(Error::new(ErrorCode::PermissionDenied, "Cross-origin request blocked"));
            }
            let sent = Arc::new(Sent { credentials, from: arrived.entry.peer, refusal: refusal() });
            if let Some(known) = self.known.get(&sent.credentials) {
                return Ok(Identity { sent: Some(sent), ..known });
            }
            let found = self.find(&sent).await?;
            self.known.keep(&sent.credentials, &found);
            // Logged once per process and caller. The caller authenticates again with every
            // request.
            tracing::info!(target: "audit", event = "known", with = ?sent.credentials, from = ?sent.from);
            Ok(found)
        })
    }

    fn read<'a>(
        &'a self,
        identity: Identity,
        _: &'a Table,
        guards: &'a [Guarded],
    ) -> BoxFuture<'a, Result<(Identity, Read)>> {
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
        asked: &'a [Ask],
        read: &'a Read,
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
            let matters = |ask: &Ask| !is_own(user, ask) && asks_for_administrators(ask);
            let administers = asked.iter().any(matters) && !self.memberships(user).await?.administered.is_empty();
            // The endpoint itself checks whether the caller administers this user, from the user's
            // roles.
            let is_of_his =
                |ask: &Ask| administers && ask.action == Action::Read && matches!(ask.guard, Guarded::User(_));
            let may = |ask: &Ask| {
                is_own(user, ask)
                    || is_of_his(ask)
                    || match among_workspaces(ask) {
                        Among::Administered => administers,
                        Among::Used if identity.has_workspaces && !grants.may_create() => false,
                        Among::Used if ask.action == Action::Create && !is_creator => false,
                        Among::Used | Among::InWorkspace => grants.meet(&rule_of(ask), default),
                    }
            };
            Ok(asked.iter().map(may).collect())
        })
    }

    fn visible<'a>(&'a self, identity: &'a Identity) -> BoxFuture<'a, Result<Visible>> {
        Box::pin(async move {
            match &identity.caller {
                Caller::Anonymous => Ok(Visible::nothing()),
                Caller::Principal(_) => Ok(Visible::Everything),
                Caller::User(user) if user.is_admin => Ok(Visible::Everything),
                Caller::User(user) => {
                    Ok(visible(self.grants_of(user, &identity.workspace).await?, self.default_in(identity)))
                }
            }
        })
    }

    /// Grants full control of a new entity to its creator.
    fn writes(&self, identity: &Identity, event: Event<'_>) -> Vec<Write> {
        let (Some(user), Event::Created { kind, guarded, id, home }) = (identity.caller.user(), event) else {
            return Vec::new();
        };
        let on = match (guarded, kind) {
            (Guarded::Experiment(experiment), Resource::Experiment) => Kept::Experiment(*experiment),
            (Guarded::RegisteredModel(_), Resource::Prompt) => Kept::Prompt(home.to_owned()),
            (Guarded::RegisteredModel(_), _) => Kept::RegisteredModel(home.to_owned()),
            (Guarded::Scorer(experiment, name), _) => Kept::Scorer(*experiment, name.clone()),
            _ => return Vec::new(),
        };
        let resource = granted_in(&identity.workspace, id);
        let grant = KeptGrant { on, user_id: user.id, resource, level: Level::Manage };
        vec![Write::Put(grant.item(&user.name), Condition::Always)]
    }
}

/// Returns the part of an item that is cached. Tags are dropped: an experiment may have up to 48 KB
/// of them, and they are irrelevant to access.
fn slim(item: &Item) -> Item {
    let mut item = item.clone();
    item.take(TAGS);
    item
}

/// Returns a placeholder for a user whose item has not been read yet.
fn unread(name: UserName) -> User {
    User { name, id: 0, is_admin: false, roles: Vec::new(), version: 0 }
}

/// Checks whether the holder of the credentials may have intended to send the request. A browser
/// attaches cookies, and passwords that it has prompted for, to requests of any page.
fn may_be_meant(credentials: &Credentials, arrived: &Arrived) -> bool {
    match credentials {
        Credentials::Token(..) | Credentials::Signature(_) => true,
        Credentials::Password(..) => is_page(arrived) || !is_of_foreign_page(arrived),
        Credentials::Session(..) => is_page(arrived) || is_of_own_page(arrived),
    }
}

/// Checks whether it matters to the decision that the caller administers some workspace.
fn asks_for_administrators(ask: &Ask) -> bool {
    matches!(ask.guard, Guarded::User(_)) || matches!(among_workspaces(ask), Among::Administered)
}

/// Conditions on the caller in addition to the rules.
enum Among {
    /// The caller has to administer some workspace. The endpoint itself checks which one, because
    /// it is that of the role in the request.
    Administered,
    /// If there are workspaces, the caller has to be allowed to use that of the request
    /// (`_can_create_in_workspace`).
    Used,
    /// No additional condition.
    InWorkspace,
}

fn among_workspaces(ask: &Ask) -> Among {
    match (ask.action, ask.kind, &ask.guard) {
        (_, Resource::Role, _) | (Action::Create, Resource::User, _) => Among::Administered,
        // Entities that belong to the workspace alone, and the list of its users.
        (Action::Create, Resource::Experiment | Resource::RegisteredModel | Resource::Prompt, _)
        | (Action::Read, Resource::User, Guarded::Workspace(_)) => Among::Used,
        _ => Among::InWorkspace,
    }
}

/// Checks whether the ask is about the caller. Users may read their own data and change their
/// password, and a user with a role may read roles.
fn is_own(user: &User, ask: &Ask) -> bool {
    match &ask.guard {
        Guarded::User(name) => *name == user.name && matches!(ask.action, Action::Read | Action::Update),
        Guarded::Workspace(Resource::Role) => ask.action == Action::Read && !user.roles.is_empty(),
        _ => false,
    }
}
