//! Stored sessions and tokens, in the access table.

use access::{AllowedActions, Restriction, User};
use entities::unreadable;
use key_schema::attributes::{CREATION_TIME, EXPERIMENT, EXPIRES, NAME, ONLY, OPENED_WITH, TOKEN, USER_ID};
use key_schema::{Key, access_rows};
use mlflow_api::{Result, UserName};
use table::Item;

use crate::passwords::PasswordHash;

/// Returns the key of a session, from the digest of its secret.
#[must_use]
pub fn session_key(user: &UserName, digest: &str) -> Key {
    access_rows::Session::key(user, &digest.into())
}

/// Returns the key of a token, from the digest of its secret.
#[must_use]
pub fn token_key(user: &UserName, digest: &str) -> Key {
    access_rows::Token::key(user, &digest.into())
}

/// Checks whether an item is a valid session of a user: it was opened with the user's current
/// password and has not expired.
pub(crate) fn is_session_of(item: &Item, user: &User, password: Option<&PasswordHash>) -> bool {
    let is_of = item.get(USER_ID) == Some(user.id);
    let is_with = password.is_some_and(|password| item.get(OPENED_WITH) == Some(&password.fingerprint()));
    is_of && is_with && item.get(EXPIRES).is_some_and(|end| !is_over(end))
}

/// Checks whether a time, in seconds since 1970, has passed.
fn is_over(seconds: i64) -> bool {
    runtime::clock::now_ms() >= seconds.saturating_mul(1_000)
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Id.
    pub id: u32,
    /// Id of the token's user.
    pub user_id: u32,
    /// Digest of the secret.
    pub digest: String,
    /// Name, chosen by the user.
    pub name: String,
    /// Restrictions of the token.
    pub restriction: Restriction,
    /// Creation time, in ms since 1970.
    pub creation_time: i64,
    /// Expiration time, in seconds since 1970; `None` if the token does not expire.
    pub expires: Option<i64>,
}

impl Token {
    /// Reads a token from its item.
    ///
    /// # Errors
    /// An internal error if the item cannot be parsed.
    pub fn of(item: &Item) -> Result<Self> {
        let read = || {
            let key = access_rows::Token::parse(&item.key()?)?;
            // A restriction that cannot be read must not count as none, because the token would
            // have full access.
            let experiment = if item.has(EXPERIMENT) { Some(item.get(EXPERIMENT)?) } else { None };
            Some(Self {
                id: item.get(TOKEN)?,
                user_id: item.get(USER_ID)?,
                digest: key.digest.0,
                name: item.get(NAME)?.to_owned(),
                restriction: Restriction { experiment, actions: AllowedActions::from_name(item.get(ONLY)?)? },
                creation_time: item.get(CREATION_TIME)?,
                expires: item.get(EXPIRES),
            })
        };
        read().ok_or_else(|| unreadable(item, "a token"))
    }

    /// Checks whether the token has expired.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.expires.is_some_and(is_over)
    }
}
