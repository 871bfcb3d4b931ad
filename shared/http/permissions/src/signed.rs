//! Sessions and tokens, as the table of access has them.

use access::{Only, Restriction, User};
use entities::unreadable;
use key_schema::attributes::{CREATION_TIME, EXPERIMENT, EXPIRES, NAME, ONLY, OPENED_WITH, TOKEN, USER_ID};
use key_schema::{Key, access_rows};
use mlflow_api::{Result, UserName};
use table::Item;

use crate::passwords::PasswordHash;

/// The key of a session, by the digest of its secret.
#[must_use]
pub fn session_key(user: &UserName, digest: &str) -> Key {
    access_rows::Session::key(user, &digest.into())
}

/// The key of a token, by the digest of its secret.
#[must_use]
pub fn token_key(user: &UserName, digest: &str) -> Key {
    access_rows::Token::key(user, &digest.into())
}

/// Whether an item is that of a session that counts: of this user, opened with the password that he has now, and not over.
pub(crate) fn is_session_of(item: &Item, user: &User, password: Option<&PasswordHash>) -> bool {
    let is_of = item.get(USER_ID) == Some(user.id);
    let is_with = password.is_some_and(|password| item.get(OPENED_WITH) == Some(&password.mark()));
    is_of && is_with && item.get(EXPIRES).is_some_and(|end| !is_over(end))
}

/// Whether a time in seconds has come.
fn is_over(seconds: i64) -> bool {
    clock::now_ms() >= seconds.saturating_mul(1_000)
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Id.
    pub id: u32,
    /// Id of its user.
    pub user_id: u32,
    /// The digest of its secret.
    pub digest: String,
    /// Its name, which its user has chosen.
    pub name: String,
    /// Its limits.
    pub restriction: Restriction,
    /// When it was made, in ms.
    pub creation_time: i64,
    /// When it ends, in seconds; `None`, if it does not.
    pub expires: Option<i64>,
}

impl Token {
    /// The token of an item.
    ///
    /// # Errors
    /// An internal one, if it cannot be read.
    pub fn of(item: &Item) -> Result<Self> {
        let read = || {
            let key = access_rows::Token::parse(&item.key()?)?;
            // One that cannot be read must not count as none: that is a token for everything.
            let experiment = if item.has(EXPERIMENT) { Some(item.get(EXPERIMENT)?) } else { None };
            Some(Self {
                id: item.get(TOKEN)?,
                user_id: item.get(USER_ID)?,
                digest: key.digest.0,
                name: item.get(NAME)?.to_owned(),
                restriction: Restriction { experiment, only: Only::from_name(item.get(ONLY)?)? },
                creation_time: item.get(CREATION_TIME)?,
                expires: item.get(EXPIRES),
            })
        };
        read().ok_or_else(|| unreadable(item, "a token"))
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.expires.is_some_and(is_over)
    }
}
