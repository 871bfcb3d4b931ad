//! The authorizer of users: it finds out who they are, and whether they may do what they ask for.
//!
//! A request names its sender by a name and a password, by the cookie of a session, or by a token.
//! A gateway names who has signed it. The process remembers whom it has found that way, but only as
//! a starting point. The user's item, and that of the session or the token, are read with the
//! guards of the request and the grants on them, in one `BatchGetItem`. These reads count for
//! [`LEASE`](crate::LEASE). Models and scorers are the exception: their names may belong to others
//! at once.

use std::sync::Arc;

use access::{
    Action, Arrived, Ask, Authorizer, Caller, Credentials, Event, Guarded, Identity, Read, Resource, Sent, User,
    Visible,
};
use clock::Moment;
use futures::future::BoxFuture;
use key_schema::attributes::{NAME, TAGS};
use key_schema::rows;
use mlflow_api::auth::Level;
use mlflow_api::{Error, ErrorCode, Result, UserName};
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

/// How often the tables are read for a request whose caller changes at the same time.
const ATTEMPTS: usize = 4;

/// Users sign in, and may do what their grants allow.
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
    /// Over the table of data and that of access. `default` is the level of users without a grant
    /// for a resource.
    #[must_use]
    pub fn new(data: Table, access: Table, default: Level) -> Self {
        let (passwords, known, recent) = (Passwords::default(), Arc::default(), Arc::default());
        Self { data, access, default, creators: None, passwords, known, recent, signed: None }
    }

    /// The same where only administrators and users with the role of this name create experiments, registered models and prompts. The role is one of
    /// the workspace of the request. `None`: every user who may use the workspace.
    #[must_use]
    pub fn with_creators(self, creators: Option<String>) -> Self {
        Self { creators, ..self }
    }

    /// Whether a user has the role that creating things takes, by the roles that were read with his request.
    fn is_creator(&self, user: &User, identity: &Identity, read: &Read) -> bool {
        let Some(creators) = self.creators.as_deref() else { return true };
        let Some(here) = Place::current(&identity.workspace, read) else { return false };
        let mut roles = user.roles.iter().filter_map(|role| read.get(&self.in_access(role_key(*role))));
        roles.any(|role| role.get(NAME) == Some(creators) && Place::of_role(role).as_ref() == Some(&here))
    }

    /// The same for a gateway that checks the signatures of some requests: those are of the
    /// principals who have signed.
    #[must_use]
    pub fn with_signed(self, signed: Signed) -> Self {
        Self { signed: Some(signed), ..self }
    }

    /// The level of those who are granted nothing for a resource.
    #[must_use]
    pub fn default_level(&self) -> Level {
        self.default
    }

    /// The same in the workspace of a request: where there are several, nothing is anybody's that was not granted.
    #[must_use]
    pub fn default_in(&self, identity: &Identity) -> Level {
        if identity.has_workspaces { Level::NoPermissions } else { self.default }
    }

    /// Where passwords are checked.
    #[must_use]
    pub fn passwords(&self) -> &Passwords {
        &self.passwords
    }

    pub(crate) fn in_access(&self, key: key_schema::Key) -> TableKey {
        TableKey { table: Some(self.access.name().to_owned()), key }
    }

    /// Reads items: those that were not read a moment ago. One request, or none.
    ///
    /// `lasting` are such as nobody takes away without waiting for the lease; of `others`, a name may be another's at once.
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

    /// The keys to read for a caller and the guards of his request: those whose items count for the
    /// lease, and the others.
    fn keys(&self, identity: &Identity, guards: &[Guarded]) -> (Vec<TableKey>, Vec<TableKey>) {
        let (mut lasting, mut others) = (self.keys_of_sender(identity), Vec::new());
        for guard in guards {
            let key = guard.key(&identity.workspace).map(TableKey::here);
            // The ids of experiments are never used again, and deleting a workspace waits for the
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

    /// The keys to read for a caller alone: all of them are in the table of access.
    fn keys_of_sender(&self, identity: &Identity) -> Vec<TableKey> {
        let sent = identity.sent.as_ref();
        sent.map(|sent| self.keys_of(&sent.credentials, identity.caller.user())).unwrap_or_default()
    }

    /// The sender of a request. One request, or none within the lease; two for a principal of AWS
    /// that is a user.
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

    /// Reads the items for a caller and the guards of his request. With `None`, it reads who he is,
    /// and no grants.
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
            // His roles are others now, or he has become an administrator.
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
            // Once in each process: each request signs in again.
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

    /// Reads the table of access alone: the function of the user interface may read no other.
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
                Caller::Somebody => return Ok(vec![false; asked.len()]),
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
            // Of whom somebody administers, the endpoint looks at itself: the roles of the other one say it.
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
                Caller::Somebody => Ok(Visible::nothing()),
                Caller::Principal(_) => Ok(Visible::Everything),
                Caller::User(user) if user.is_admin => Ok(Visible::Everything),
                Caller::User(user) => {
                    Ok(visible(self.grants_of(user, &identity.workspace).await?, self.default_in(identity)))
                }
            }
        })
    }

    /// The creator of an entity may do everything with it.
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

/// The part of an item that is cached. An experiment may have tags of 48 KB, which do not matter
/// for access.
fn slim(item: &Item) -> Item {
    let mut item = item.clone();
    item.take(TAGS);
    item
}

/// A user of whom nothing was read yet.
fn unread(name: UserName) -> User {
    User { name, id: 0, is_admin: false, roles: Vec::new(), version: 0 }
}

/// Whether the holder of the credentials may have meant to send the request. A browser sends
/// cookies, and passwords that it has asked for, with any page's requests.
fn may_be_meant(credentials: &Credentials, arrived: &Arrived) -> bool {
    match credentials {
        Credentials::Token(..) | Credentials::Signature(_) => true,
        Credentials::Password(..) => is_page(arrived) || !is_of_foreign_page(arrived),
        Credentials::Session(..) => is_page(arrived) || is_of_own_page(arrived),
    }
}

/// Whether it matters if the caller administers any workspace.
fn asks_for_administrators(ask: &Ask) -> bool {
    matches!(ask.guard, Guarded::User(_)) || matches!(among_workspaces(ask), Among::Administered)
}

/// Conditions on the caller in addition to those of rules.
enum Among {
    /// An administrator of some workspace. The endpoint itself checks the workspace: it is that of
    /// the role in the request.
    Administered,
    /// Where there are workspaces, somebody who may use that of the request (`_can_create_in_workspace`).
    Used,
    /// Nothing more.
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

/// Users may read their own data, and change their password. A user with a role may look at roles.
fn is_own(user: &User, ask: &Ask) -> bool {
    match &ask.guard {
        Guarded::User(name) => *name == user.name && matches!(ask.action, Action::Read | Action::Update),
        Guarded::Workspace(Resource::Role) => ask.action == Action::Read && !user.roles.is_empty(),
        _ => false,
    }
}
