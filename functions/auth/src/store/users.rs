//! Storage of users.

use std::net::IpAddr;

use key_schema::attributes::{Attribute, Count};
use key_schema::attributes::{DISABLED, IS_ADMIN, PASSWORD, ROLES, RULE_ADMINISTRATOR, USER, USER_ID, VERSION};
use key_schema::{Key, Ordinal, access_rows, rows};
use mlflow_api::auth::User;
use mlflow_api::{Error, ErrorCode, Result, UserName};
use permissions::{Account, PasswordHash, PasswordPolicy};
use table::{ChangePlan, Condition, Failure, Item, Map, Query, Update, Write, map, number, text};

use super::Store;
use super::identity_rows::removal;
use super::integer_ids::{IdKind, decrement_administrators, increment_administrators};
use crate::user_names::new_user_name;

/// A user as read from the table.
pub struct StoredUser(pub(super) Account);

impl std::ops::Deref for StoredUser {
    type Target = Account;

    fn deref(&self) -> &Account {
        &self.0
    }
}

impl StoredUser {
    /// Returns the user as the API represents it.
    #[must_use]
    pub fn answer(&self) -> User {
        let user = &self.0.user;
        User { id: user.id, username: user.name.to_string(), is_admin: user.is_admin }
    }
}

impl Store {
    /// Creates a user. Takes two requests, and about 30 ms of CPU time for the password hash.
    ///
    /// # Errors
    /// Returns `RESOURCE_ALREADY_EXISTS` if the name is in use.
    pub async fn user_create(&self, name: &UserName, password: String, is_admin: bool) -> Result<User> {
        let hash = self.passwords().hash(password).await?;
        self.user_put(name, Some(&hash), is_admin, |item| item).await
    }

    /// Creates a service, which is a user without a password that can authenticate with tokens
    /// only. Takes two requests.
    ///
    /// # Errors
    /// Returns `RESOURCE_ALREADY_EXISTS` if the name is in use, and `INVALID_PARAMETER_VALUE` for a
    /// name that new users may not have.
    pub async fn service_create(&self, name: &UserName) -> Result<User> {
        if let Err(error) = new_user_name(name.as_str())
            && Account::find(&self.access, name).await?.is_none()
        {
            return Err(error);
        }
        self.user_put(name, None, false, |item| item).await
    }

    /// Creates a user. `complete` adds attributes to the item.
    pub(super) async fn user_put(
        &self,
        name: &UserName,
        hash: Option<&PasswordHash>,
        is_admin: bool,
        complete: impl FnOnce(Item) -> Item,
    ) -> Result<User> {
        self.user_put_with(name, hash, is_admin, |_, item| (complete(item), Vec::new())).await
    }

    /// Creates a user. Given the user's id and item, `complete` returns the item with further
    /// attributes, and further writes of the transaction.
    pub(super) async fn user_put_with(
        &self,
        name: &UserName,
        hash: Option<&PasswordHash>,
        is_admin: bool,
        complete: impl FnOnce(u32, Item) -> (Item, Vec<Write>),
    ) -> Result<User> {
        let id = self.next_id(IdKind::Users).await?;
        let item = Item::new(access_rows::User::key(name))
            .with(USER_ID, number(id))
            .with(IS_ADMIN, number(u32::from(is_admin)))
            .with(VERSION, number(1))
            .with(ROLES, map(Map::new()));
        let item = match hash {
            Some(hash) => item.with(PASSWORD, text(hash.as_str())),
            None => item,
        };
        let (item, further) = complete(id, item);
        let listed = Item::new(access_rows::ListedUser::key(&Ordinal(id))).with(USER, text(name.as_str()));
        let mut others = vec![Write::Put(listed, Condition::Always)];
        others.extend(is_admin.then(increment_administrators));
        others.extend(further);
        match self.access.create(item, others).await {
            Ok(()) => Ok(User { id, username: name.to_string(), is_admin }),
            Err(Failure::Cancelled(_)) => {
                let message = format!("User (username={name}) already exists.");
                Err(Error::new(ErrorCode::ResourceAlreadyExists, message))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Checks whether any user exists. Takes one request.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn has_users(&self) -> Result<bool> {
        let listed = Query::of(access_rows::ListedUser::all()).limit(1);
        Ok(!self.access.query_page(&listed).await?.items.is_empty())
    }

    /// Returns a user. Takes one request.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the user does not exist.
    pub async fn user_get(&self, name: &UserName) -> Result<StoredUser> {
        let account = Account::find(&self.access, name).await?;
        account.map(StoredUser).ok_or_else(|| UserName::not_found(name.as_str()))
    }

    /// Returns all users, ordered by id. Takes one request, and one more per hundred users.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn users(&self) -> Result<Vec<StoredUser>> {
        let listed = self.access.query(Query::of(access_rows::ListedUser::all())).await?;
        let names = listed.iter().filter_map(|item| UserName::named(item.get(USER)?));
        let keys: Vec<_> = names.map(|name| access_rows::User::key(&name)).collect();
        let items = self.access.get_many(&keys).await?;
        let accounts = keys.iter().filter_map(|key| items.get(key)).map(|item| Account::of(item).map(StoredUser));
        let mut accounts = accounts.collect::<Result<Vec<_>>>()?;
        accounts.sort_by_key(|found| found.user.id);
        accounts.dedup_by_key(|found| found.user.id);
        Ok(accounts)
    }

    /// Checks a user's password. It counts as wrong if passwords are disabled for the user. `from` is
    /// the address of the caller.
    ///
    /// # Errors
    /// Returns `RESOURCE_EXHAUSTED` after too many wrong passwords.
    pub async fn has_password(&self, name: &UserName, password: String, from: Option<IpAddr>) -> Result<bool> {
        let account = Account::find(&self.access, name).await?;
        let allowed = account.as_ref().filter(|account| self.password_policy().allows(&account.user));
        let hash = allowed.and_then(|account| account.password.as_ref());
        self.passwords().check(name, hash, password, from).await
    }

    /// Checks that a user may have a new password: passwords are not disabled for the user. Takes one
    /// request if passwords are disabled for any users.
    ///
    /// # Errors
    /// Returns `PERMISSION_DENIED` if passwords are disabled for the user, and
    /// `RESOURCE_DOES_NOT_EXIST` if the user does not exist.
    pub async fn check_password_allowed(&self, name: &UserName) -> Result<()> {
        if *self.password_policy() == PasswordPolicy::Everyone
            || self.password_policy().allows(&self.user_get(name).await?.user)
        {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::PermissionDenied,
            "Passwords are disabled on this server. Sign in with an identity provider instead.",
        ))
    }

    /// Checks that users can be created with a password. Takes no request.
    ///
    /// # Errors
    /// Returns `PERMISSION_DENIED` if passwords are disabled.
    pub fn check_creates_passwords(&self) -> Result<()> {
        if *self.password_policy() == PasswordPolicy::Everyone {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::PermissionDenied,
            "Passwords are disabled on this server, so no user can be created with one. An operator can create a user with \
             `mlflow-serverless admin link NAME ISSUER SUBJECT --create`.",
        ))
    }

    /// Changes a user's password. The previous password is rejected in every process. Takes one
    /// request.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the user does not exist.
    pub async fn user_set_password(&self, name: &UserName, password: String) -> Result<()> {
        let hash = self.passwords().hash(password).await?;
        let update = Update::new(access_rows::User::key(name));
        let update = update.set(PASSWORD, text(hash.as_str())).add(VERSION, number(1));
        match self.access.apply(&update).await {
            Err(Failure::Refused { .. }) => Err(UserName::not_found(name.as_str())),
            outcome => Ok(outcome?),
        }
    }

    /// Disables or enables a user. A disabled user has no access by password, session or token.
    /// Takes two requests.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the user does not exist, and `BAD_REQUEST` if no
    /// enabled administrator would be left.
    pub async fn user_set_disabled(&self, name: &UserName, is_disabled: bool) -> Result<()> {
        self.access
            .change("a user", async |refusal: table::RefusedWrites| {
                let found = self.user_get(name).await?;
                if found.is_disabled == is_disabled {
                    return Ok::<_, Error>(ChangePlan::Done(()));
                }
                if found.user.is_admin && is_disabled && refusal.is_of(1) {
                    return Err(last_administrator());
                }
                let update = Update::new(access_rows::User::key(name))
                    .set(DISABLED, number(u32::from(is_disabled)))
                    .add(VERSION, number(1))
                    .only_if(unchanged(&found));
                let mut writes = vec![Write::Update(update)];
                // The number of administrators is adjusted, because it does not include disabled
                // users.
                if found.user.is_admin {
                    writes.push(if is_disabled { decrement_administrators() } else { increment_administrators() });
                }
                Ok(ChangePlan::Write(writes, ()))
            })
            .await
    }

    /// Makes a user an administrator of the server, or revokes that right. If a rule of an identity
    /// provider gave the right, the rule no longer takes it back. Takes two requests.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the user does not exist, and `BAD_REQUEST` if the last
    /// administrator would lose the right.
    pub async fn user_set_admin(&self, name: &UserName, is_admin: bool) -> Result<()> {
        self.access
            .change("a user", async |refusal: table::RefusedWrites| {
                let found = self.user_get(name).await?;
                if found.user.is_admin == is_admin && found.rule_administrator.is_none() {
                    return Ok::<_, Error>(ChangePlan::Done(()));
                }
                if refusal.is_of(1) {
                    return Err(last_administrator());
                }
                let update = Update::new(access_rows::User::key(name))
                    .set(IS_ADMIN, number(u32::from(is_admin)))
                    .remove(RULE_ADMINISTRATOR)
                    .add(VERSION, number(1))
                    .only_if(unchanged(&found));
                let mut writes = vec![Write::Update(update)];
                if !found.is_disabled && found.user.is_admin != is_admin {
                    writes.push(if is_admin { increment_administrators() } else { decrement_administrators() });
                }
                Ok(ChangePlan::Write(writes, ()))
            })
            .await
    }

    /// Deletes a user's grants, sessions and tokens, and then the user with its identities. Afterwards, the password is
    /// rejected in every process. If a call is interrupted, it may have deleted some of the grants,
    /// sessions and tokens, and the next call deletes the rest. Grants that are added during the
    /// call remain, but have no effect.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the user does not exist, and `BAD_REQUEST` for the last
    /// administrator.
    pub async fn user_delete(&self, name: &UserName) -> Result<()> {
        let found = self.user_get(name).await?;
        let granted = self.data.query(Query::of(rows::TypePermissions::partition(name))).await?;
        let of_him = |item: &&Item| item.get(USER_ID) == Some(found.user.id);
        let granted: Vec<Key> = granted.iter().filter(of_him).filter_map(Item::key).collect();
        self.data.write_many(Vec::new(), &granted).await?;
        let member = |role: &u32| access_rows::RoleMember::key(&Ordinal(*role), name);
        let members: Vec<_> = found.user.roles.iter().map(member).collect();
        self.access.write_many(Vec::new(), &members).await?;
        let signed = self.access.query(Query::of(access_rows::User::partition(name))).await?;
        let signed = signed.iter().filter_map(Item::key).filter(|key| *key != access_rows::User::key(name));
        self.access.write_many(Vec::new(), &signed.collect::<Vec<_>>()).await?;
        self.access
            .change("a user", async |refusal: table::RefusedWrites| {
                let found = self.user_get(name).await?;
                let counts = found.user.is_admin && !found.is_disabled;
                if counts && refusal.is_of(2) {
                    return Err(last_administrator());
                }
                let mut writes = vec![
                    Write::Delete(access_rows::User::key(name), unchanged(&found)),
                    Write::Delete(access_rows::ListedUser::key(&Ordinal(found.user.id)), Condition::Always),
                ];
                writes.extend(counts.then(decrement_administrators));
                writes.extend(found.identities.keys().map(|digest| removal(digest, found.user.id)));
                Ok::<_, Error>(ChangePlan::Write(writes, ()))
            })
            .await
    }
}

/// Returns the condition that a user has not changed since it was read.
pub(super) fn unchanged(found: &StoredUser) -> Condition {
    let is = |attribute: Attribute<Count>, value: u32| Condition::Equals(attribute.into(), number(value));
    is(USER_ID, found.user.id).and(is(VERSION, found.user.version))
}

pub(super) fn last_administrator() -> Error {
    Error::new(
        ErrorCode::BadRequest,
        "The last administrator cannot be removed. Make another user an administrator first.",
    )
}
