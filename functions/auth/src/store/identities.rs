//! Identities of users. An identity is a person as an identity provider identifies them, by issuer and
//! subject. A user can have several.
//!
//! A row for each identity points to its user, and the user's item lists the identities. Both are
//! always written in one transaction. Sessions are checked against the user's item, which every
//! request reads anyway.

use identity_providers::Person;
use key_schema::attributes::{
    CONFIRMED_UNTIL, IDENTITIES, IS_ADMIN, ROLES, RULE_ADMINISTRATOR, RULE_ROLES, USER, USER_ID, VERSION,
};
use key_schema::{Key, Ordinal, access_rows};
use mlflow_api::{Error, Result, UserName};
use permissions::{Account, LEASE, session_identity, session_key};
use table::{ChangePlan, Condition, Item, Query, RefusedWrites, Update, Write, map, number, text};

use super::Store;
use super::identity_rows::{check_person, identity_key, identity_row, person_of, person_text, removal};
use super::integer_ids::decrement_administrators;
use super::renewal_rows::renewal_key;
use super::roles::already_exists;
use super::times::now_seconds;
use super::users::{StoredUser, last_administrator, unchanged};

/// Maximum number of identities per user. They are in the user's item, which every request of the
/// user reads.
pub const MAX_IDENTITIES: usize = 10;

/// The row of an identity, with the user whom the identity is linked to.
pub(super) struct StoredIdentity {
    /// The condition that the row has not changed since it was read.
    pub(super) unchanged: Condition,
    /// The user. `None` if the identity is not linked to an existing user.
    pub(super) user: Option<StoredUser>,
}

impl Store {
    /// Returns the user whom an identity is linked to. Takes two requests, and one if the identity
    /// is not linked.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn identity_user(&self, person: &Person) -> Result<Option<StoredUser>> {
        Ok(self.identity_get(&person.digest()).await?.user)
    }

    /// Reads the row of an identity, and its user.
    pub(super) async fn identity_get(&self, digest: &str) -> Result<StoredIdentity> {
        let Some(item) = self.access.get(&identity_key(digest)).await? else {
            return Ok(StoredIdentity { unchanged: Condition::item_missing(), user: None });
        };
        let account = match item.get(USER).and_then(UserName::named) {
            Some(name) => Account::find(&self.access, &name).await?,
            None => None,
        };
        let is_linked =
            |account: &Account| item.get(USER_ID) == Some(account.user.id) && account.identities.contains_key(digest);
        let unchanged = Condition::unchanged(&item, USER).and(Condition::unchanged(&item, USER_ID));
        Ok(StoredIdentity { unchanged, user: account.filter(is_linked).map(StoredUser) })
    }

    /// Returns the identities of a user, ordered by issuer and subject. Takes one request.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the user does not exist.
    pub async fn identities_of(&self, name: &UserName) -> Result<Vec<Person>> {
        Ok(self.user_get(name).await?.people())
    }

    /// Links an identity to a user, who can then sign in with it. Does nothing if the identity is
    /// linked to this user already. Takes four requests.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the user does not exist; `RESOURCE_ALREADY_EXISTS` if
    /// the identity is linked to another user; `INVALID_PARAMETER_VALUE` if the issuer or the
    /// subject cannot be stored, or if the user has [`MAX_IDENTITIES`].
    pub async fn identity_link(&self, name: &UserName, person: &Person) -> Result<()> {
        check_person(person)?;
        let digest = person.digest();
        let is_new = self
            .access
            .change("a user", async |_: RefusedWrites| {
                let found = self.user_get(name).await?;
                if found.identities.contains_key(&digest) {
                    return Ok::<_, Error>(ChangePlan::Done(false));
                }
                if found.identities.len() >= MAX_IDENTITIES {
                    return Err(Error::invalid(format!("A user has at most {MAX_IDENTITIES} identities.")));
                }
                let stored = self.identity_get(&digest).await?;
                if let Some(other) = stored.user {
                    return Err(already_exists(format!(
                        "The identity is linked to the user `{0}`. Unlink it first: `mlflow-serverless admin unlink {0} {1} {2}`",
                        other.user.name, person.issuer, person.subject
                    )));
                }
                // Sessions that an interrupted request to unlink the identity has left would become
                // valid again.
                self.identity_sessions_end(name, &digest).await?;
                let linked = found.identities.iter().map(|(digest, text)| (digest.clone(), text.clone()));
                let linked = linked.chain([(digest.clone(), person_text(person))]);
                let update = Update::new(access_rows::User::key(name))
                    .set(IDENTITIES, map(linked.map(|(digest, of)| (digest, text(of))).collect()))
                    .add(VERSION, number(1))
                    .only_if(unchanged(&found));
                let row = identity_row(person, name, found.user.id);
                Ok(ChangePlan::Write(vec![Write::Update(update), Write::Put(row, stored.unchanged)], true))
            })
            .await?;
        if is_new {
            tracing::info!(target: "audit", event = "identity linked", of = ?name.as_str(), issuer = person.issuer, subject = ?person.subject);
        }
        Ok(())
    }

    /// Unlinks an identity from a user. Revokes the roles and the administrator's rights that rules
    /// gave to this identity, and ends its sessions in every process. If the user then has neither an
    /// identity nor a password, the user's API tokens end as well. If a call is interrupted, the
    /// sessions are no longer valid, and the next call deletes their rows. Takes four requests, and one more
    /// per 12 sessions.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the user does not exist or does not have the identity,
    /// and `BAD_REQUEST` if the last administrator would lose the right.
    pub async fn identity_unlink(&self, name: &UserName, person: &Person) -> Result<()> {
        let digest = person.digest();
        let was_linked = self
            .access
            .change("a user", async |refusal: RefusedWrites| {
                let found = self.user_get(name).await?;
                if !found.identities.contains_key(&digest) {
                    return Ok::<_, Error>(ChangePlan::Done(false));
                }
                let is_demoted = found.user.is_admin && found.rule_administrator.as_ref() == Some(&digest);
                let counts = is_demoted && !found.is_disabled;
                if counts && refusal.is_of(1) {
                    return Err(last_administrator());
                }
                let mut update = Update::new(access_rows::User::key(name))
                    .remove((IDENTITIES, digest.as_str()))
                    .add(VERSION, number(1))
                    .only_if(unchanged(&found));
                let mut writes = Vec::new();
                if is_demoted {
                    update = update.set(IS_ADMIN, number(0)).remove(RULE_ADMINISTRATOR);
                    writes.extend(counts.then(decrement_administrators));
                }
                for (role, _) in found.rule_roles.iter().filter(|(_, identity)| **identity == digest) {
                    let id = role.to_string();
                    update = update.remove((ROLES, id.as_str())).remove((RULE_ROLES, id.as_str()));
                    let member = access_rows::RoleMember::key(&Ordinal(*role), name);
                    writes.push(Write::Delete(member, Condition::Always));
                }
                if found.identities.len() == 1 {
                    update = match &found.password {
                        Some(_) => update.remove(CONFIRMED_UNTIL),
                        None => update.set(CONFIRMED_UNTIL, number(now_seconds())),
                    };
                }
                writes.insert(0, Write::Update(update));
                writes.push(removal(&digest, found.user.id));
                Ok(ChangePlan::Write(writes, true))
            })
            .await?;
        let ended = self.identity_sessions_end(name, &digest).await?;
        if !was_linked && ended == 0 {
            return Err(Error::not_found(format!("The user `{name}` does not have this identity.")));
        }
        tracing::info!(target: "audit", event = "identity unlinked", of = ?name.as_str(), issuer = person.issuer, subject = ?person.subject, ended);
        runtime::clock::sleep(LEASE).await;
        Ok(())
    }

    /// Deletes the rows of all sessions that were opened with an identity, and returns the number of
    /// sessions. Takes one request, and one more per 12 sessions.
    async fn identity_sessions_end(&self, name: &UserName, digest: &str) -> Result<usize> {
        let sessions = self.access.query(Query::of(access_rows::Session::all(name))).await?;
        let sessions = sessions.iter().filter(|session| session_identity(session) == Some(digest));
        let keys: Vec<_> = sessions.filter_map(Item::key).collect();
        self.sessions_delete(name, &keys).await?;
        Ok(keys.len())
    }

    /// Deletes sessions and their renewals. Takes one request per 12 sessions.
    pub(super) async fn sessions_delete(&self, name: &UserName, sessions: &[Key]) -> Result<()> {
        let parsed = sessions.iter().filter_map(access_rows::Session::parse);
        let keys: Vec<_> = parsed
            .flat_map(|session| [session_key(name, &session.digest.0), renewal_key(name, &session.digest.0)])
            .collect();
        Ok(self.access.write_many(Vec::new(), &keys).await?)
    }
}

impl StoredUser {
    /// Returns the identities of the user, ordered by issuer and subject.
    #[must_use]
    pub fn people(&self) -> Vec<Person> {
        let mut people: Vec<_> = self.identities.values().filter_map(|text| person_of(text)).collect();
        people.sort_by(|one, other| (&one.issuer, &one.subject).cmp(&(&other.issuer, &other.subject)));
        people
    }
}
