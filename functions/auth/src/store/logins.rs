//! Logins of clients: a client waits until a user approves the login in a browser, and then takes a
//! token of that user.
//!
//! A login is found by the digest of a code. In a login with a device code, the user enters this
//! code, and the client holds a second secret, whose digest is `device`. In a login at a loopback
//! address, the login is created when the user approves it, the code is the authorization code, and
//! `device` is the PKCE challenge.

use access::Restriction;
use key_schema::attributes::{DEVICE, DISABLED, EXPIRES, NAME, POLLED, USER, USER_ID};
use key_schema::{Key, access_rows};
use mlflow_api::{Result, UserName};
use permissions::{Account, Token, UserSecret};
use table::{Condition, Failure, Item, Update, Write, number, text};

use super::Store;
use super::times::now_seconds;
use super::tokens::{NewToken, check_token_name};

/// Lifetime of a login in seconds.
pub const LOGIN_SECONDS: i64 = 600;
/// Minimum interval in seconds between a client's requests for the token of a login.
pub const LOGIN_INTERVAL_SECONDS: i64 = 5;
/// The interval in milliseconds that is enforced. It is slightly shorter than the advertised one,
/// because the delays of requests vary.
const MIN_INTERVAL_MS: i64 = LOGIN_INTERVAL_SECONDS * 1_000 - 500;

/// A login to be created.
#[derive(Clone, Debug)]
pub struct NewLogin {
    /// Digest of the code.
    pub code: String,
    /// Digest of the client's secret, or the PKCE challenge.
    pub device: String,
    /// Name of the token, such as the name of the client's host.
    pub name: String,
}

/// A login that has not expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLogin {
    /// Name of the token.
    pub name: String,
    /// The user who approved the login.
    pub user: Option<UserName>,
    /// Whether a user refused the login.
    pub is_refused: bool,
    /// When the login expires, in seconds since 1970.
    pub expires: i64,
}

/// The result of taking the token of a login.
#[derive(Debug)]
pub enum LoginTaken {
    /// A new token of the user who approved the login. The login no longer exists.
    Token(UserSecret, Token),
    /// No user has approved the login yet.
    Pending,
    /// No user has approved the login yet, and the client polls too often.
    SlowDown,
    /// A user refused the login.
    Refused,
    /// There is no login with this code and device: it has expired, its token was taken, or the user
    /// has been deleted or disabled.
    Unknown,
}

impl Store {
    /// Creates a login. `approved_by` is the user who has approved it already, in a login at a
    /// loopback address. Returns `false` if the code is in use, or if the user does not exist or is
    /// disabled. Takes one request, and two with a user.
    ///
    /// # Errors
    /// Returns `INVALID_PARAMETER_VALUE` if the name is not a valid name of a token.
    pub async fn login_create(&self, new: &NewLogin, approved_by: Option<&UserName>) -> Result<bool> {
        let name = check_token_name(&new.name)?;
        let now = now_seconds();
        let mut item = Item::new(login_key(&new.code))
            .with(DEVICE, text(new.device.as_str()))
            .with(NAME, text(name))
            .with(EXPIRES, number(now + LOGIN_SECONDS));
        if let Some(user) = approved_by {
            let Some(id) = self.enabled_user_id(user).await? else { return Ok(false) };
            item = item.with(USER, text(user.as_str())).with(USER_ID, number(id));
        }
        let is_free = Condition::Any(vec![Condition::item_missing(), Condition::Below(EXPIRES.into(), number(now))]);
        match self.access.put(item, &is_free).await {
            // The response to an earlier attempt was lost.
            Err(Failure::Refused { item: Some(item), .. }) => Ok(item.get(DEVICE) == Some(new.device.as_str())),
            Err(Failure::Refused { .. }) => Ok(false),
            outcome => outcome.map(|()| true).map_err(Into::into),
        }
    }

    /// Returns a login by the digest of its code. Takes one request.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn login_find(&self, code: &str) -> Result<Option<StoredLogin>> {
        Ok(self.login_item(code).await?.as_ref().and_then(stored_login))
    }

    /// Approves a login. Returns `false` if the login has expired, or was refused or approved by
    /// another user, or if the user does not exist or is disabled. Takes two requests.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn login_approve(&self, code: &str, user: &UserName) -> Result<bool> {
        let Some(id) = self.enabled_user_id(user).await? else { return Ok(false) };
        let update = undecided(code).set(USER, text(user.as_str())).set(USER_ID, number(id));
        match self.access.apply(&update).await {
            // The user has approved it before, or the response to an earlier attempt was lost.
            Err(Failure::Refused { item, .. }) => {
                Ok(item.is_some_and(|item| is_current(&item) && item.get(USER_ID) == Some(id) && !item.has(DISABLED)))
            }
            outcome => outcome.map(|()| true).map_err(Into::into),
        }
    }

    /// Refuses a login. Returns `false` if the login has expired or was approved. Takes one request.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn login_refuse(&self, code: &str) -> Result<bool> {
        match self.access.apply(&undecided(code).set(DISABLED, number(1))).await {
            Err(Failure::Refused { item, .. }) => Ok(item.is_some_and(|item| is_current(&item) && item.has(DISABLED))),
            outcome => outcome.map(|()| true).map_err(Into::into),
        }
    }

    /// Takes the token of an approved login: deletes the login and creates the token in one
    /// transaction, so that a login yields one token. `device` has to be what the login was created
    /// with, and `days` is the lifetime of the token. Takes two requests while the login is pending,
    /// and five when the token is created.
    ///
    /// # Errors
    /// Returns `INVALID_PARAMETER_VALUE` if the user has the maximum number of tokens, or for an
    /// invalid lifetime.
    pub async fn login_take(&self, code: &str, device: &str, days: Option<u32>) -> Result<LoginTaken> {
        let Some(item) = self.login_item(code).await?.filter(|item| item.get(DEVICE) == Some(device)) else {
            return Ok(LoginTaken::Unknown);
        };
        if item.has(DISABLED) {
            return Ok(LoginTaken::Refused);
        }
        let approved = item.get(USER).and_then(UserName::named).zip(item.get(USER_ID)).zip(item.get(NAME));
        let Some(((user, id), name)) = approved else { return self.login_poll(code, &item).await };
        let account = Account::find(&self.access, &user).await?;
        let is_same = |account: &Account| account.user.id == id && !account.is_disabled;
        if !account.as_ref().is_some_and(is_same) {
            return Ok(LoginTaken::Unknown);
        }
        let new = NewToken { name: name.to_owned(), restriction: Restriction::default(), days };
        let (secret, token, stored) = self.token_item(&user, id, new).await?;
        let is_approved = Condition::unchanged(&item, DEVICE).and(Condition::unchanged(&item, USER_ID));
        let is_enabled = Condition::Equals(USER_ID.into(), number(id))
            .and(Condition::Not(Box::new(Condition::Equals(DISABLED.into(), number(1)))));
        let writes = [
            Write::Delete(login_key(code), is_approved),
            Write::Check(access_rows::User::key(&user), is_enabled),
            Write::Put(stored, Condition::Always),
        ];
        match self.access.transact(&writes).await {
            Ok(()) => {}
            Err(Failure::Cancelled(_)) => return Ok(LoginTaken::Unknown),
            Err(failure) => return Err(failure.into()),
        }
        tracing::info!(target: "audit", event = "token created by a login", by = ?user.as_str(), token = token.id);
        Ok(LoginTaken::Token(secret, token))
    }

    /// Records that a client has polled for the token of a login that is not approved.
    async fn login_poll(&self, code: &str, item: &Item) -> Result<LoginTaken> {
        let now = runtime::clock::now_ms();
        if item.get(POLLED).is_some_and(|polled| now < polled.saturating_add(MIN_INTERVAL_MS)) {
            return Ok(LoginTaken::SlowDown);
        }
        match self.access.apply(&Update::new(login_key(code)).set(POLLED, number(now))).await {
            Err(Failure::Refused { .. }) => Ok(LoginTaken::Unknown),
            outcome => outcome.map(|()| LoginTaken::Pending).map_err(Into::into),
        }
    }

    async fn login_item(&self, code: &str) -> Result<Option<Item>> {
        Ok(self.access.get(&login_key(code)).await?.filter(is_current))
    }

    async fn enabled_user_id(&self, user: &UserName) -> Result<Option<u32>> {
        let account = Account::find(&self.access, user).await?;
        Ok(account.filter(|account| !account.is_disabled).map(|account| account.user.id))
    }
}

fn login_key(code: &str) -> Key {
    access_rows::Login::key(&code.into())
}

/// Checks whether a login has not expired. Expired rows remain until the table deletes them.
fn is_current(item: &Item) -> bool {
    item.get(EXPIRES).is_some_and(|end| now_seconds() < end)
}

fn stored_login(item: &Item) -> Option<StoredLogin> {
    Some(StoredLogin {
        name: item.get(NAME)?.to_owned(),
        user: item.get(USER).and_then(UserName::named),
        is_refused: item.has(DISABLED),
        expires: item.get(EXPIRES)?,
    })
}

/// Starts an update of a login that no user has approved or refused, and that has not expired.
fn undecided(code: &str) -> Update {
    let is_over = Condition::Below(EXPIRES.into(), number(now_seconds() + 1));
    Update::new(login_key(code)).only_if(
        Condition::Missing(USER.into()).and(Condition::Missing(DISABLED.into())).and(Condition::Not(Box::new(is_over))),
    )
}
