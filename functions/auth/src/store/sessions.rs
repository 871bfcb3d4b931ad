//! Sessions of browsers.

use std::net::IpAddr;

use access::{Authorizer, RequestHead};
use key_schema::attributes::{EXPIRES, OPENED_WITH, USER_ID, VERSION};
use key_schema::{Key, access_rows};
use mlflow_api::{Result, UserName};
use permissions::{Account, LEASE, UserSecret, session_identity, session_key};
use table::{Condition, Failure, Item, Query, Update, Write, number, text};

use super::Store;
use super::renewal_rows::renewal_key;

/// Lifetime of a session in seconds. It is long enough for a working day, and is not extended by
/// use.
pub const SESSION_SECONDS: u64 = 24 * 3_600;

/// Returns when a session that begins now expires, in seconds since 1970.
pub(super) fn session_end_time() -> i64 {
    runtime::clock::now_ms() / 1_000 + i64::try_from(SESSION_SECONDS).unwrap_or(i64::MAX)
}

/// Maximum number of concurrent sessions per user.
pub const MAX_SESSIONS: usize = 100;

/// The numbers of sessions and tokens that a request has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedCredentials {
    /// Number of browser sessions.
    pub sessions: usize,
    /// Number of API tokens.
    pub tokens: usize,
}

impl Store {
    /// Opens a session if the password is correct, passwords are not disabled for the user, and the
    /// user is not disabled. Otherwise returns `None`. `from` is the caller's address. If the user already has [`MAX_SESSIONS`] sessions,
    /// the oldest one is ended. Takes three requests, with about one read unit per 15 sessions of
    /// the user, and one more request if a session is ended.
    ///
    /// # Errors
    /// Returns `RESOURCE_EXHAUSTED` if there are too many attempts to sign in.
    pub async fn session_open(
        &self,
        name: &UserName,
        password: String,
        from: Option<IpAddr>,
    ) -> Result<Option<UserSecret>> {
        let account = Account::find(&self.access, name).await?;
        let allowed = account.as_ref().filter(|account| self.password_policy().allows(&account.user));
        let hash = allowed.and_then(|account| account.password.clone());
        let is_right = self.passwords().check(name, hash.as_ref(), password, from).await?;
        let account = account.filter(|account| is_right && !account.is_disabled);
        let Some((account, hash)) = account.zip(hash) else {
            tracing::warn!(target: "audit", event = "not signed in", by = ?name.as_str(), from = ?from);
            return Ok(None);
        };
        self.end_oldest(name).await?;
        let secret = UserSecret::new(name.clone());
        let session = Item::new(session_key(name, &secret.digest()))
            .with(USER_ID, number(account.user.id))
            .with(OPENED_WITH, text(hash.fingerprint()))
            .with(EXPIRES, number(session_end_time()));
        self.access.put(session, &Condition::Always).await?;
        tracing::info!(target: "audit", event = "signed in", by = ?name.as_str(), from = ?from);
        Ok(Some(secret))
    }

    /// Ends the oldest sessions of a user to make room for one more. If a user signs in several
    /// times at once, there may briefly be a few more than [`MAX_SESSIONS`].
    pub(super) async fn end_oldest(&self, name: &UserName) -> Result<()> {
        let mut sessions = self.access.query(Query::of(access_rows::Session::all(name))).await?;
        // The first session to expire is the oldest, because all sessions have the same lifetime.
        sessions.sort_by_key(|session| session.get(EXPIRES));
        let ended = (sessions.len() + 1).saturating_sub(MAX_SESSIONS);
        let ended: Vec<_> = sessions.iter().take(ended).filter_map(Item::key).collect();
        if ended.is_empty() {
            return Ok(());
        }
        tracing::info!(target: "audit", event = "oldest sessions ended", by = ?name.as_str(), count = ended.len());
        self.sessions_delete(name, &ended).await
    }

    /// Ends a session and its renewal in every process. Takes two requests.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written.
    pub async fn session_end(&self, secret: &UserSecret) -> Result<()> {
        let key = session_key(secret.user(), &secret.digest());
        match self.access.delete(&key, &Condition::item_exists()).await {
            // The session does not exist, or an earlier attempt succeeded and its response was
            // lost.
            Err(Failure::Refused { .. }) => {}
            outcome => {
                outcome?;
                tracing::info!(target: "audit", event = "signed out", by = ?secret.user().as_str());
            }
        }
        self.access.delete(&renewal_key(secret.user(), &secret.digest()), &Condition::Always).await?;
        runtime::clock::sleep(LEASE).await;
        Ok(())
    }

    /// Checks whether a request has valid credentials.
    ///
    /// # Errors
    /// Returns an error if the tables cannot be read.
    pub async fn has_valid_credentials(&self, arrived: &RequestHead) -> Result<bool> {
        let known = match self.authorizer.authenticate(arrived).await {
            Ok(identity) => self.authorizer.confirm(identity).await,
            refused => refused,
        };
        match known {
            Ok(_) => Ok(true),
            Err(error) if error.code.http_status() < 500 => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Ends all sessions and tokens of all users, in every process. Passwords remain valid. Meant
    /// for a restored table, in which sessions and tokens that were ended after the backup are
    /// valid again. Takes one request per hundred users, and at least one per user. If a call is
    /// interrupted, some sessions and tokens have been ended, and the next call continues.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read or written.
    pub async fn all_end(&self) -> Result<EndedCredentials> {
        let mut ended = EndedCredentials::default();
        for user in self.users().await? {
            let name = &user.user.name;
            let rows = self.access.query(Query::of(access_rows::User::partition(name))).await?;
            let keys: Vec<_> = rows.iter().filter_map(Item::key).collect();
            let count = |is_counted: fn(&Key) -> bool| keys.iter().filter(|key| is_counted(key)).count();
            ended.sessions += count(|key| access_rows::Session::parse(key).is_some());
            ended.tokens += count(|key| access_rows::Token::parse(key).is_some());
            let user = access_rows::User::key(name);
            let keys: Vec<_> = keys.iter().filter(|key| **key != user).cloned().collect();
            self.access.write_many(Vec::new(), &keys).await?;
        }
        tracing::info!(target: "audit", event = "all sessions and tokens ended", ended.sessions, ended.tokens);
        runtime::clock::sleep(LEASE).await;
        Ok(ended)
    }

    /// Changes a user's password and keeps the current session. All other sessions that were opened
    /// with a password end, in every process. A session that was opened by single sign-on remains
    /// bound to its identity. Takes two requests.
    ///
    /// # Errors
    /// Returns `RESOURCE_DOES_NOT_EXIST` if the user does not exist, or the current session has
    /// ended.
    pub(crate) async fn user_set_password_in(&self, name: &UserName, password: String, digest: &str) -> Result<()> {
        let hash = self.passwords().hash(password).await?;
        let user = Update::new(access_rows::User::key(name));
        let user = user.set(key_schema::attributes::PASSWORD, text(hash.as_str())).add(VERSION, number(1));
        let session_key = session_key(name, digest);
        let current = self.access.get(&session_key).await?;
        let session = match &current {
            Some(session) if session_identity(session).is_some() => {
                Write::Check(session_key, Condition::unchanged(session, OPENED_WITH))
            }
            _ => Write::Update(Update::new(session_key).set(OPENED_WITH, text(hash.fingerprint()))),
        };
        match self.access.transact(&[Write::Update(user), session]).await {
            Err(Failure::Cancelled(_)) => Err(UserName::not_found(name.as_str())),
            outcome => Ok(outcome?),
        }
    }
}
