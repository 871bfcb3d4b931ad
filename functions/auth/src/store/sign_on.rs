//! Single sign-on: finds or creates the user of a person, and opens sessions.

use identity_providers::{NewUsers, Person};
use key_schema::access_rows;
use key_schema::attributes::{
    DISABLED, EXPIRES, GENERATION, IDENTITIES, OPENED_WITH, PROVIDER, REFRESH, RENEW_BY, USER_ID,
};
use mlflow_api::{Error, ErrorCode, Result, UserName};
use permissions::{Account, LEASE, UserSecret, identity_binding, session_key};
use table::{Condition, Failure, Item, Write, bytes, number, text};

use super::Store;
use super::identity_rows::{check_person, new_identity};
use super::renewal_rows::{check_sealed, renewal_key};
use super::sessions::session_end_time;
use super::times::now_seconds;
use super::users::StoredUser;
use crate::user_names::new_user_name;

/// The user of a person who signs in.
pub enum SsoUser {
    /// The person's identity is linked to this user.
    Found(StoredUser),
    /// The user has been created for the person.
    Created(StoredUser),
    /// The identity is linked to this user, who is disabled.
    Disabled(UserName),
    /// The identity is not linked, and a user has the name that the new user would get. An
    /// administrator can link the identity to this user with `admin link`.
    NameTaken(UserName),
    /// The identity is not linked, and the name that the new user would get is not valid. Contains
    /// the reason as a sentence.
    InvalidName(String),
    /// The identity is not linked, and users are created by administrators only.
    Unknown,
}

/// A session to be opened by single sign-on.
#[derive(Debug)]
pub struct NewSsoSession<'a> {
    /// Secret of the session, created with [`UserSecret::new`] for the user. The refresh token is
    /// encrypted for its digest.
    pub secret: &'a UserSecret,
    /// When the session has to be renewed, in seconds since 1970.
    pub renew_by: i64,
    /// How the session can be renewed. `None` if the provider has issued no refresh token: the session
    /// then ends at `renew_by`.
    pub renewal: Option<NewRenewal>,
}

/// The renewal of a new session.
#[derive(Debug)]
pub struct NewRenewal {
    /// Name of the provider.
    pub provider: String,
    /// The refresh token, encrypted. At most [`MAX_SEALED_BYTES`](super::MAX_SEALED_BYTES).
    pub sealed: Vec<u8>,
}

impl Store {
    /// Returns the user of a person, and creates the user at the first sign-in if `new_users`
    /// permits it. `name` is the name of a new user, from the person's claims. Takes two requests,
    /// and four if a user is created.
    ///
    /// # Errors
    /// Returns `INVALID_PARAMETER_VALUE` if the issuer or the subject cannot be stored, and `ABORTED`
    /// if it is unknown whether the user was created. The next sign-in finds the user.
    pub async fn sso_user(&self, person: &Person, name: Option<&str>, new_users: NewUsers) -> Result<SsoUser> {
        check_person(person)?;
        let stored = self.identity_get(&person.digest()).await?;
        if let Some(found) = stored.user {
            return Ok(existing(found));
        }
        if new_users == NewUsers::Refuse {
            return Ok(SsoUser::Unknown);
        }
        let name = match new_user_name(name.unwrap_or_default()) {
            Ok(name) => name,
            Err(error) => return Ok(SsoUser::InvalidName(error.message)),
        };
        let linked = |id, item| {
            let (item, row) = new_identity(item, person, &name, id, stored.unchanged);
            (item, vec![row])
        };
        match self.user_put_with(&name, None, false, linked).await {
            Ok(_) => {
                tracing::info!(target: "audit", event = "user created by single sign-on", of = ?name.as_str(), issuer = person.issuer, subject = ?person.subject);
                Ok(SsoUser::Created(self.user_get(&name).await?))
            }
            Err(error) if error.code == ErrorCode::ResourceAlreadyExists => {
                // The person may have signed in twice at the same time.
                if let Some(found) = self.identity_user(person).await? {
                    return Ok(existing(found));
                }
                match Account::find(&self.access, &name).await? {
                    Some(_) => Ok(SsoUser::NameTaken(name)),
                    None => Err(Error::unavailable("an identity kept changing")),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Opens a session for a person who has signed in at a provider, and waits until the session is
    /// valid in every process. Returns `false` if the user has been deleted or disabled, or the
    /// identity has been unlinked, since the user was read. If the user already has
    /// [`MAX_SESSIONS`](super::MAX_SESSIONS) sessions, the oldest one is ended. Takes two requests,
    /// with about one read unit per 10 sessions of the user, and one more request if a session is
    /// ended.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written, or if the refresh token is too long.
    pub async fn sso_session_open(&self, user: &StoredUser, person: &Person, new: NewSsoSession<'_>) -> Result<bool> {
        let (name, id, digest) = (&user.user.name, user.user.id, person.digest());
        let NewSsoSession { secret, renew_by, renewal } = new;
        if secret.user() != name {
            return Err(Error::internal("the secret of a session is of another user"));
        }
        self.end_oldest(name).await?;
        let end = session_end_time();
        let session = Item::new(session_key(name, &secret.digest()))
            .with(USER_ID, number(id))
            .with(OPENED_WITH, text(identity_binding(&digest)))
            .with(RENEW_BY, number(renew_by))
            .with(EXPIRES, number(end));
        let is_open = Condition::Equals(USER_ID.into(), number(id))
            .and(Condition::Exists((IDENTITIES, digest.as_str()).into()))
            .and(Condition::Not(Box::new(Condition::Equals(DISABLED.into(), number(1)))));
        let mut writes =
            vec![Write::Check(access_rows::User::key(name), is_open), Write::Put(session, Condition::Always)];
        if let Some(NewRenewal { provider, sealed }) = renewal {
            check_sealed(&sealed)?;
            let renewal = Item::new(renewal_key(name, &secret.digest()))
                .with(PROVIDER, text(provider))
                .with(REFRESH, bytes(sealed))
                .with(GENERATION, number(0))
                .with(EXPIRES, number(end));
            writes.push(Write::Put(renewal, Condition::Always));
        }
        match self.access.transact(&writes).await {
            Ok(()) => {}
            Err(Failure::Cancelled(_)) => return Ok(false),
            Err(failure) => return Err(failure.into()),
        }
        runtime::clock::sleep(LEASE).await;
        Ok(true)
    }
}

/// Returns the result for a person whose identity is linked.
fn existing(user: StoredUser) -> SsoUser {
    if user.is_disabled { SsoUser::Disabled(user.user.name.clone()) } else { SsoUser::Found(user) }
}

/// Returns when a session that is opened or renewed now has to be renewed, in seconds since 1970.
/// `minutes` is the interval between renewals.
#[must_use]
pub fn renew_by_after(minutes: u32) -> i64 {
    now_seconds() + i64::from(minutes) * 60
}
