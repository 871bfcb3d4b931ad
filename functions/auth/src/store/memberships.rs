//! Roles and rights of administrators that rules of identity providers give to people.
//!
//! The user's item records what rules gave, with the identity that they applied to. If the rules no
//! longer give a role to this identity, it is revoked. Roles that an administrator has assigned by
//! hand are never revoked.

use std::collections::{BTreeMap, BTreeSet};

use identity_providers::{Configuration, Memberships, NamedRole, Person};
use key_schema::attributes::{
    ASSIGNMENT, CONFIRMED_UNTIL, IDENTITIES, IS_ADMIN, NAME, ROLE, ROLES, RULE_ADMINISTRATOR, RULE_ROLES, USER_ID,
    VERSION,
};
use key_schema::{Ordinal, access_rows};
use mlflow_api::{Error, Result, UserName, Workspace};
use permissions::{Account, LEASE};
use table::{Condition, Failure, Item, RefusedWrites, Update, Write, map, number, text};

use super::Store;
use super::assignments::MAX_ROLES;
use super::integer_ids::{IdKind, decrement_administrators, increment_administrators};
use super::roles::name_key;
use super::times::now_seconds;
use super::users::{StoredUser, unchanged};

/// Maximum number of roles that one transaction gives, and maximum number that it revokes. A
/// transaction has at most 100 writes: three for a role that is given, one for a role that is revoked,
/// and two others.
const MAX_CHANGES: usize = 20;
/// The time in seconds by which a confirmation has to move for a write to be worthwhile, unless the
/// confirmation is valid for a few days only.
const CONFIRMATION_STEP: i64 = 86_400;

/// The changes of one transaction.
struct Changes {
    given: Vec<u32>,
    taken: Vec<u32>,
    /// The right of an administrator, if it is given (`true`) or revoked (`false`).
    administrator: Option<bool>,
    /// The new time until which the user is confirmed, if it is written.
    confirmed_until: Option<i64>,
    /// Whether changes are left for another transaction.
    is_partial: bool,
}

impl Changes {
    fn new(
        found: &StoredUser,
        identity: &str,
        wanted: &BTreeSet<u32>,
        is_administrator: bool,
        confirmed_until: i64,
    ) -> Self {
        let is_own = |by: &String| by == identity;
        let taken = found.rule_roles.iter().filter(|(role, by)| is_own(by) && !wanted.contains(role));
        let mut taken: Vec<_> = taken.map(|(role, _)| *role).collect();
        let given = wanted.iter().copied().filter(|role| !found.user.roles.contains(role));
        let mut given: Vec<_> = given.collect();
        let is_partial = given.len() > MAX_CHANGES || taken.len() > MAX_CHANGES;
        given.truncate(MAX_CHANGES);
        taken.truncate(MAX_CHANGES);
        let is_by_rule = found.rule_administrator.as_ref().is_some_and(is_own);
        let administrator = match (found.user.is_admin, is_administrator) {
            (false, true) => Some(true),
            (true, false) if is_by_rule => Some(false),
            _ => None,
        };
        let confirmed_until = is_later(found.confirmed_until, confirmed_until).then_some(confirmed_until);
        Self { given, taken, administrator, confirmed_until, is_partial }
    }

    fn is_empty(&self) -> bool {
        self.given.is_empty() && self.taken.is_empty() && self.administrator.is_none() && self.confirmed_until.is_none()
    }

    /// Returns the update of the user's item. `first` is the id of the first assignment.
    fn update(&self, found: &StoredUser, identity: &str, first: u32) -> Update {
        let mut update = Update::new(access_rows::User::key(&found.user.name))
            .add(VERSION, number(1))
            .only_if(unchanged(found).and(Condition::Exists((IDENTITIES, identity).into())));
        for role in &self.taken {
            let role = role.to_string();
            update = update.remove((ROLES, role.as_str())).remove((RULE_ROLES, role.as_str()));
        }
        for (role, assignment) in self.given.iter().zip(first..) {
            update = update.set((ROLES, role.to_string().as_str()), number(assignment));
        }
        // An entry can only be set in an existing map, and users of earlier versions have none.
        if found.rule_roles.is_empty() {
            if !self.given.is_empty() {
                let given = self.given.iter().map(|role| (role.to_string(), text(identity)));
                update = update.set(RULE_ROLES, map(given.collect()));
            }
        } else {
            for role in &self.given {
                update = update.set((RULE_ROLES, role.to_string().as_str()), text(identity));
            }
        }
        update = match self.administrator {
            Some(true) => update.set(IS_ADMIN, number(1)).set(RULE_ADMINISTRATOR, text(identity)),
            Some(false) => update.set(IS_ADMIN, number(0)).remove(RULE_ADMINISTRATOR),
            None => update,
        };
        match self.confirmed_until {
            Some(end) => update.set(CONFIRMED_UNTIL, number(end)),
            None => update,
        }
    }

    /// Returns the writes of the transaction. The second one changes the number of administrators,
    /// if there is such a change.
    fn writes(&self, found: &StoredUser, identity: &str, first: u32) -> Vec<Write> {
        let mut writes = vec![Write::Update(self.update(found, identity, first))];
        writes.extend(
            self.administrator.map(
                |is_given| {
                    if is_given { increment_administrators() } else { decrement_administrators() }
                },
            ),
        );
        let member = |role: u32| access_rows::RoleMember::key(&Ordinal(role), &found.user.name);
        for (role, assignment) in self.given.iter().zip(first..) {
            let item = Item::new(member(*role));
            let item = item.with(USER_ID, number(found.user.id)).with(ASSIGNMENT, number(assignment));
            writes.push(Write::Put(item, Condition::Always));
            writes.push(Write::Check(access_rows::Role::key(&Ordinal(*role)), Condition::item_exists()));
        }
        writes.extend(self.taken.iter().map(|role| Write::Delete(member(*role), Condition::Always)));
        writes
    }
}

impl Store {
    /// Applies the rules of a provider to a person, at a sign-in or a renewal: assigns roles, revokes
    /// those that rules gave to the same identity before, and makes the user an administrator or
    /// revokes that right. The last administrator keeps the right.
    ///
    /// Also extends the validity of the user's API tokens until `confirmed_until`, in seconds since
    /// 1970. To save writes, extensions by less than a day are skipped, or by less than a quarter of
    /// the validity if that is shorter.
    ///
    /// Returns `false` if the user does not exist, is disabled, or does not have the identity.
    /// Otherwise, the changes are in effect in every process when the call returns. Takes two
    /// requests if nothing changes, one more if roles are in workspaces that were not read within
    /// the lease, and two to four more for each 20 changes.
    ///
    /// # Errors
    /// Returns `INVALID_PARAMETER_VALUE` with a sentence for the person who signs in, if a role does
    /// not exist or the user would have more roles than a user can have. Nothing has changed then,
    /// or only a part if the roles changed during the call.
    pub async fn memberships_apply(
        &self,
        name: &UserName,
        person: &Person,
        memberships: &Memberships,
        confirmed_until: i64,
    ) -> Result<bool> {
        let identity = person.digest();
        let mut keeps_administrator = false;
        let mut is_changed = false;
        let mut attempts = self.access.attempts("a user");
        loop {
            attempts.next().await?;
            let roles = self.roles_named(&memberships.roles).await?;
            let missing: Vec<_> = memberships.roles.iter().filter(|role| !roles.contains_key(role)).cloned().collect();
            if !missing.is_empty() {
                return Err(roles_do_not_exist(&missing));
            }
            let found = Account::find(&self.access, name).await?.map(StoredUser);
            let is_linked = |found: &StoredUser| !found.is_disabled && found.identities.contains_key(&identity);
            let Some(found) = found.filter(is_linked) else { return Ok(false) };
            let wanted: BTreeSet<u32> = roles.values().copied().collect();
            let is_administrator = memberships.is_administrator || keeps_administrator;
            let changes = Changes::new(&found, &identity, &wanted, is_administrator, confirmed_until);
            if changes.is_empty() {
                break;
            }
            if !changes.given.is_empty() {
                check_number_of_roles(&found, &identity, &wanted)?;
            }
            let first = self.next_ids(IdKind::Assignments, changes.given.len()).await?;
            let mut writes = changes.writes(&found, &identity, first);
            writes.extend(self.open_workspaces(&roles, &changes.given).await?);
            match self.access.transact(&writes).await {
                Ok(()) => {}
                Err(Failure::Cancelled(reasons)) => {
                    if changes.administrator == Some(false) && RefusedWrites(reasons).is_of(1) {
                        tracing::warn!(target: "audit", event = "last administrator kept", of = ?name.as_str());
                        keeps_administrator = true;
                    }
                    continue;
                }
                Err(failure) => return Err(failure.into()),
            }
            tracing::info!(
                target: "audit", event = "rules applied", of = ?name.as_str(), given = ?changes.given, taken = ?changes.taken,
                administrator = ?changes.administrator
            );
            is_changed = true;
            if !changes.is_partial {
                break;
            }
            attempts.progressed();
        }
        if is_changed {
            runtime::clock::sleep(LEASE).await;
        }
        Ok(true)
    }

    /// Ends the API tokens of a user until a provider confirms the user again, in every process. Called
    /// when a renewal shows that the person no longer satisfies the provider's `require`. Returns
    /// `false` if the user does not exist or does not have the identity. Takes one request.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn confirmation_withdraw(&self, name: &UserName, person: &Person) -> Result<bool> {
        let update = Update::new(access_rows::User::key(name))
            .set(CONFIRMED_UNTIL, number(now_seconds()))
            .add(VERSION, number(1))
            .only_if(Condition::Exists((IDENTITIES, person.digest().as_str()).into()));
        match self.access.apply(&update).await {
            Err(Failure::Refused { .. }) => return Ok(false),
            outcome => outcome?,
        }
        tracing::info!(target: "audit", event = "confirmation withdrawn", of = ?name.as_str(), issuer = person.issuer);
        runtime::clock::sleep(LEASE).await;
        Ok(true)
    }

    /// Returns the roles that the rules of a configuration give and that do not exist, in order.
    /// Takes one request per 100 roles, and one per 100 workspaces that were not read within the
    /// lease.
    ///
    /// # Errors
    /// Returns an error if the tables cannot be read.
    pub async fn roles_missing(&self, configuration: &Configuration) -> Result<Vec<NamedRole>> {
        let named: BTreeSet<_> = configuration.roles().collect();
        let found = self.roles_named(&named).await?;
        Ok(named.into_iter().filter(|role| !found.contains_key(role)).collect())
    }

    /// Returns the ids of the roles with these names, without those that do not exist.
    async fn roles_named(&self, named: &BTreeSet<NamedRole>) -> Result<BTreeMap<NamedRole, u32>> {
        let named: Vec<_> =
            named.iter().filter_map(|role| Some((role, Workspace::parse(&role.workspace).ok()?))).collect();
        if named.is_empty() {
            return Ok(BTreeMap::new());
        }
        let places = self.authorizer.workspace_refs(named.iter().map(|(_, workspace)| workspace)).await?;
        let keys: Vec<_> = named
            .iter()
            .filter_map(|(role, workspace)| Some((*role, name_key(places.get(workspace)?.claim_prefix(), &role.name))))
            .collect();
        let items = self.access.get_many(&keys.iter().map(|(_, key)| key.clone()).collect::<Vec<_>>()).await?;
        let id = |(role, key): (&NamedRole, key_schema::Key)| {
            let item = items.get(&key).filter(|item| item.get(NAME) == Some(role.name.as_str()))?;
            Some((role.clone(), item.get(ROLE)?))
        };
        Ok(keys.into_iter().filter_map(id).collect())
    }

    /// Returns checks that the workspaces of roles exist and are not being deleted, for the
    /// transaction that assigns the roles. Takes one request per workspace.
    async fn open_workspaces(&self, roles: &BTreeMap<NamedRole, u32>, given: &[u32]) -> Result<Vec<Write>> {
        let of_given = roles.iter().filter(|(_, id)| given.contains(id));
        let workspaces: BTreeSet<_> = of_given.map(|(role, _)| role.workspace.as_str()).collect();
        let mut checks = Vec::new();
        for workspace in workspaces {
            let workspace = Workspace::parse(workspace)?;
            let identity = self.workspace_of(&workspace).await?;
            checks.extend(identity.map(|identity| self.data.of_others(identity.is_open())));
        }
        Ok(checks)
    }
}

/// Checks the number of roles that a user will have.
fn check_number_of_roles(found: &StoredUser, identity: &str, wanted: &BTreeSet<u32>) -> Result<()> {
    let is_taken = |role: &u32| found.rule_roles.get(role).is_some_and(|by| by == identity) && !wanted.contains(role);
    let kept = found.user.roles.iter().filter(|role| !is_taken(role));
    let number = kept.copied().chain(wanted.iter().copied()).collect::<BTreeSet<_>>().len();
    if number <= MAX_ROLES {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "A user has at most {MAX_ROLES} roles, and you would have {number}. Ask an administrator to give you fewer roles."
    )))
}

/// Checks whether a confirmation is so much later than the previous one that it has to be written.
fn is_later(previous: Option<i64>, confirmed_until: i64) -> bool {
    let step = CONFIRMATION_STEP.min((confirmed_until - now_seconds()) / 4).max(1);
    previous.is_none_or(|previous| confirmed_until >= previous + step)
}

fn roles_do_not_exist(missing: &[NamedRole]) -> Error {
    let names: Vec<_> = missing
        .iter()
        .map(|role| {
            if role.workspace == Workspace::default().as_str() {
                format!("`{}`", role.name)
            } else {
                format!("`{}` in the workspace `{}`", role.name, role.workspace)
            }
        })
        .collect();
    Error::invalid(format!(
        "Your sign-in gives you roles that do not exist: {}. Ask an administrator to create them, or to change the rules with \
         `mlflow-serverless admin providers`.",
        names.join(", ")
    ))
}
