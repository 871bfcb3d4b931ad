//! MLflow's basic authentication: users with passwords, and what they are granted.

use std::collections::HashSet;

use access::{Action, Arrived, Ask, Authorizer, Caller, Event, Guarded, Identity, Read, Resource, User, Visible};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use key_schema::attributes::{HOME, ID, NAME, SCORER};
use key_schema::{Key, Name, rows};
use mlflow_api::auth::{EVERYTHING, GrantType, Level};
use mlflow_api::{Error, ErrorCode, Result, UserName};
use table::{Condition, Item, Query, Table, TableKey, Write};

use crate::grants::Grants;
use crate::keep::{Kept, KeptGrant, granted_key, type_levels};
use crate::passwords::Passwords;
use crate::rules::{rule_of, scorer_of, scorer_pattern};
use crate::sight::visible;
use crate::users::{Account, RoleGrant, grants_of_roles, role_grants, role_key};

/// Users sign in with a name and a password in each request, and may do what they are granted.
#[derive(Clone)]
pub struct Basic {
    data: Table,
    access: Table,
    default: Level,
    passwords: Passwords,
}

impl Basic {
    /// Over the table of data and that of access. Who is granted nothing for a resource has this level.
    #[must_use]
    pub fn new(data: Table, access: Table, default: Level) -> Self {
        Self { data, access, default, passwords: Passwords::default() }
    }

    /// The level of those who are granted nothing for a resource.
    #[must_use]
    pub fn default_level(&self) -> Level {
        self.default
    }

    /// Where passwords are checked.
    #[must_use]
    pub fn passwords(&self) -> &Passwords {
        &self.passwords
    }

    /// Everything that a user is granted, as far as it counts. Two requests, one more for roles, and one for each hundred models and
    /// scorers, of which it is looked up whether they are those for which it was granted.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub async fn grants_of(&self, user: &User) -> Result<Grants> {
        let own = self.data.query(Query::of(rows::TypePermissions::partition(&user.name))).await?;
        let of_roles = grants_of_roles(&self.access, &user.roles).await?;
        let mut grants = Grants::default();
        for item in &own {
            add_types(&mut grants, item, user);
        }
        let own: Vec<_> = own.iter().filter_map(KeptGrant::of).filter(|grant| grant.user_id == user.id).collect();
        for (grant, pattern) in own.iter().zip(self.names_of(&own).await?) {
            if let Some(pattern) = pattern {
                grants.add(grant.on.kind(), &pattern, grant.level);
            }
        }
        let keys: Vec<_> = of_roles.iter().filter_map(item_granted).collect();
        let items = self.data.get_many(&keys).await?;
        for grant in of_roles {
            if counts(&grant, item_granted(&grant).and_then(|key| items.get(&key))) {
                grants.add(grant.kind, &grant.pattern, grant.level);
            }
        }
        Ok(grants)
    }

    /// What the resources are called now for which these were granted, in their order; `None` for what is gone, whatever has its name now.
    /// One request for each hundred models and scorers.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn names_of(&self, granted: &[KeptGrant]) -> Result<Vec<Option<String>>> {
        let keys: Vec<_> = granted.iter().map(|grant| home_of(&grant.on)).collect();
        let items = self.data.get_many(&keys.iter().flatten().cloned().collect::<Vec<_>>()).await?;
        let name = |(grant, key): (&KeptGrant, &Option<Key>)| {
            let item = key.as_ref().and_then(|key| items.get(key));
            is_that(&grant.resource, &grant.on, item).then(|| match &grant.on {
                Kept::RegisteredModel(_) | Kept::Prompt(_) => item?.text(NAME).map(str::to_owned),
                on => Some(pattern(on)),
            })?
        };
        Ok(granted.iter().zip(&keys).map(name).collect())
    }

    /// What of a user's grants says something about the guards of a request, from what was read with them.
    async fn grants_in(&self, user: &User, asked: &[Ask], read: &Read) -> Result<Grants> {
        let mut grants = Grants::default();
        let here = |key: Key| read.get(&TableKey::here(key));
        if let Some(item) = here(rows::TypePermissions::key(&user.name)) {
            add_types(&mut grants, item, user);
        }
        let guards: HashSet<_> = asked.iter().map(|ask| &ask.guard).collect();
        for resource in guards.iter().flat_map(|guard| resources(guard)) {
            let item = item_of(&resource).and_then(here);
            // What is granted for a model that was renamed is kept under its home.
            let kept = match item.and_then(|item| item.text(HOME)) {
                Some(home) => self.data.get(&granted_key(&user.name, &at_home(&resource, home))).await?,
                None => here(granted_key(&user.name, &resource)).cloned(),
            };
            let Some(grant) = kept.as_ref().and_then(KeptGrant::of).filter(|grant| grant.user_id == user.id) else {
                continue;
            };
            if is_that(&grant.resource, &resource, item) {
                grants.add(resource.kind(), &pattern(&resource), grant.level);
            }
        }
        for role in &user.roles {
            let key = TableKey { table: Some(self.access.name().to_owned()), key: role_key(*role) };
            for grant in read.get(&key).map(role_grants).transpose()?.into_iter().flatten() {
                if counts(&grant, item_granted(&grant).and_then(here)) {
                    grants.add(grant.kind, &grant.pattern, grant.level);
                }
            }
        }
        Ok(grants)
    }

    async fn user_of(&self, arrived: &Arrived) -> Result<User> {
        let (name, password) = credentials(arrived).ok_or_else(unauthenticated)?;
        let account = Account::find(&self.access, &name).await?;
        if !self.passwords.check(&name, account.as_ref().map(|account| &account.password), password).await? {
            return Err(unauthenticated());
        }
        account.map(|account| account.user).ok_or_else(unauthenticated)
    }
}

impl Authorizer for Basic {
    fn authenticate<'a>(&'a self, arrived: &'a Arrived) -> BoxFuture<'a, Result<Identity>> {
        Box::pin(async move {
            let user = self.user_of(arrived).await?;
            Ok(Identity { caller: Caller::User(user.into()), ..Identity::somebody() })
        })
    }

    fn keys(&self, identity: &Identity, guards: &[Guarded]) -> Vec<TableKey> {
        let Some(user) = identity.caller.user().filter(|user| !user.is_admin) else { return Vec::new() };
        let access = |key| TableKey { table: Some(self.access.name().to_owned()), key };
        let mut keys = vec![TableKey::here(rows::TypePermissions::key(&user.name))];
        keys.extend(user.roles.iter().map(|role| access(role_key(*role))));
        for resource in guards.iter().flat_map(resources) {
            keys.push(TableKey::here(granted_key(&user.name, &resource)));
            keys.extend(item_of(&resource).map(TableKey::here));
        }
        keys
    }

    fn authorize<'a>(
        &'a self,
        identity: &'a Identity,
        asked: &'a [Ask],
        read: &'a Read,
    ) -> BoxFuture<'a, Result<Vec<bool>>> {
        Box::pin(async move {
            let Some(user) = identity.caller.user() else { return Ok(vec![false; asked.len()]) };
            if user.is_admin {
                return Ok(vec![true; asked.len()]);
            }
            let grants = self.grants_in(user, asked, read).await?;
            Ok(asked.iter().map(|ask| is_own(user, ask) || grants.meet(&rule_of(ask), self.default)).collect())
        })
    }

    fn visible<'a>(&'a self, identity: &'a Identity) -> BoxFuture<'a, Result<Visible>> {
        Box::pin(async move {
            match identity.caller.user() {
                None => Ok(Visible::nothing()),
                Some(user) if user.is_admin => Ok(Visible::Everything),
                Some(user) => Ok(visible(self.grants_of(user).await?, self.default)),
            }
        })
    }

    /// Who creates something may do everything with it.
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
        let grant = KeptGrant { on, user_id: user.id, resource: id.to_owned(), level: Level::Manage };
        vec![Write::Put(grant.item(&user.name), Condition::Always)]
    }
}

/// The refusal of a request whose sender is not known.
#[must_use]
pub fn unauthenticated() -> Error {
    let mut error = Error::new(
        ErrorCode::Unauthenticated,
        "You are not authenticated. Please see \
         https://www.mlflow.org/docs/latest/auth/index.html#authenticating-to-mlflow on how to authenticate.",
    );
    error.headers.push(("www-authenticate", "Basic realm=\"mlflow\"".to_owned()));
    error
}

/// The name and the password that a request was sent with, by HTTP's Basic scheme.
fn credentials(arrived: &Arrived) -> Option<(UserName, String)> {
    let header = arrived.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (name, password) = decoded.split_once(':')?;
    Some((UserName::named(name)?, password.to_owned()))
}

/// What users may do with themselves: read what is kept of them, and change their password. Who has a role may look at roles.
fn is_own(user: &User, ask: &Ask) -> bool {
    match &ask.guard {
        Guarded::User(name) => *name == user.name && matches!(ask.action, Action::Read | Action::Update),
        Guarded::Workspace(Resource::Role) => ask.action == Action::Read && !user.roles.is_empty(),
        _ => false,
    }
}

/// Adds what a user is granted for all of a type.
fn add_types(grants: &mut Grants, item: &Item, user: &User) {
    for (kind, level) in type_levels(item, user.id) {
        grants.add(kind, EVERYTHING, level);
    }
}

/// The resources of which a grant may say something about a guard.
fn resources(guard: &Guarded) -> Vec<Kept> {
    match guard {
        Guarded::Experiment(experiment) => vec![Kept::Experiment(*experiment)],
        Guarded::Scorer(experiment, name) => {
            vec![Kept::Experiment(*experiment), Kept::Scorer(*experiment, name.clone())]
        }
        Guarded::RegisteredModel(name) => {
            vec![Kept::RegisteredModel(name.as_str().to_owned()), Kept::Prompt(name.as_str().to_owned())]
        }
        Guarded::Workspace(_) | Guarded::EvaluationDataset(_) | Guarded::User(_) | Guarded::Absent(_) => Vec::new(),
    }
}

/// The item that says whether a resource is the one that something was granted for. None for experiments, whose ids are never used again.
fn item_of(resource: &Kept) -> Option<Key> {
    match resource {
        Kept::Experiment(_) => None,
        Kept::RegisteredModel(name) | Kept::Prompt(name) => {
            Some(rows::RegisteredModel::key(&Name::from(name.as_str())))
        }
        Kept::Scorer(experiment, name) => Some(rows::Scorer::key(experiment, &Name::from(name.as_str()))),
    }
}

/// The item that says what a resource is called that has this home, and which it is.
fn home_of(resource: &Kept) -> Option<Key> {
    match resource {
        Kept::RegisteredModel(home) | Kept::Prompt(home) => Some(rows::ModelHome::key(&Name::from(home.as_str()))),
        other => item_of(other),
    }
}

/// The item of the model or the scorer for which a role grants something.
fn item_granted(grant: &RoleGrant) -> Option<Key> {
    if grant.pattern == EVERYTHING {
        return None;
    }
    match grant.kind {
        GrantType::RegisteredModel | GrantType::Prompt => {
            Some(rows::RegisteredModel::key(&Name::from(grant.pattern.as_str())))
        }
        GrantType::Scorer => {
            let (experiment, name) = scorer_of(&grant.pattern)?;
            Some(rows::Scorer::key(&experiment, &Name::from(name.as_str())))
        }
        _ => None,
    }
}

fn at_home(resource: &Kept, home: &str) -> Kept {
    match resource {
        Kept::RegisteredModel(_) => Kept::RegisteredModel(home.to_owned()),
        Kept::Prompt(_) => Kept::Prompt(home.to_owned()),
        other => other.clone(),
    }
}

/// Whether a resource, whose item this is, is the one that something was granted for.
fn is_that(granted_for: &str, resource: &Kept, item: Option<&Item>) -> bool {
    let id = match resource {
        Kept::Experiment(experiment) => return granted_for == experiment.to_string(),
        Kept::RegisteredModel(_) | Kept::Prompt(_) => item.and_then(|item| item.text(ID)),
        Kept::Scorer(..) => item.and_then(|item| item.text(SCORER)),
    };
    id == Some(granted_for)
}

/// Whether what a role grants is granted for all of a type, or for what has its name now, whose item is this.
fn counts(grant: &RoleGrant, item: Option<&Item>) -> bool {
    if grant.pattern == EVERYTHING {
        return true;
    }
    match grant.kind {
        GrantType::RegisteredModel | GrantType::Prompt => {
            item.and_then(|item| item.text(ID)) == Some(grant.resource.as_str())
        }
        GrantType::Scorer => item.and_then(|item| item.text(SCORER)) == Some(grant.resource.as_str()),
        // The ids of experiments are never used again.
        _ => !grant.resource.is_empty(),
    }
}

/// A resource, as MLflow's patterns name it.
fn pattern(resource: &Kept) -> String {
    match resource {
        Kept::Scorer(experiment, name) => scorer_pattern(*experiment, name),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(header: &str) -> Option<(String, String)> {
        let request = http::Request::builder().header(AUTHORIZATION, header).body(()).unwrap();
        let (name, password) = credentials(&Arrived::of(&request.into_parts().0))?;
        Some((name.as_str().to_owned(), password))
    }

    #[test]
    fn names_and_passwords_are_read() {
        let basic = |text: &str| sent(&format!("Basic {}", STANDARD.encode(text)));
        let of = |name: &str, password: &str| Some((name.to_owned(), password.to_owned()));
        assert_eq!(basic("ann:a:b"), of("ann", "a:b"));
        assert_eq!(basic("anné:"), of("anné", ""));
        assert_eq!(sent(&format!("bAsIc  {}", STANDARD.encode("ann:x"))), of("ann", "x"));
        for wrong in ["Basic", "Basic !", "Bearer abc", &format!("Basic {}", STANDARD.encode("ann"))] {
            assert_eq!(sent(wrong), None, "{wrong}");
        }
        assert_eq!(basic(":x"), None);
        assert_eq!(basic(&format!("{}:x", "a".repeat(300))), None);
    }
}
