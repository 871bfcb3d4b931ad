//! Stored sessions and tokens, in the access table.

use access::{AllowedActions, Restriction};
use entities::unreadable;
use key_schema::attributes::{
    CREATION_TIME, EXPERIMENT, EXPIRES, ISSUED_BY, NAME, ONLY, OPENED_WITH, RENEW_BY, TOKEN, USER_ID,
};
use key_schema::{Key, access_rows};
use mlflow_api::{Result, UserName};
use table::Item;

use crate::expiry::is_over;
use crate::password_policy::PasswordPolicy;
use crate::passwords::PasswordHash;
use crate::users::Account;

/// Prefix of what a session is bound to that was opened by single sign-on. The fingerprint of a
/// password contains no colon.
const IDENTITY_PREFIX: &str = "identity:";

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

/// Returns what a session is bound to that was opened by single sign-on, given the digest of the
/// identity. The session stores it in `OPENED_WITH`.
#[must_use]
pub fn identity_binding(digest: &str) -> String {
    format!("{IDENTITY_PREFIX}{digest}")
}

/// Returns the digest of the identity that a session is bound to. `None` for a session that was
/// opened with a password.
#[must_use]
pub fn session_identity(session: &Item) -> Option<&str> {
    session.get(OPENED_WITH)?.strip_prefix(IDENTITY_PREFIX)
}

/// Whether a session is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// The session is valid.
    Open,
    /// The session has to be renewed with its provider before it is valid again.
    Overdue,
    /// The session has expired, or what it was opened with no longer belongs to the user.
    Ended,
}

/// Returns whether an item is a valid session of an account. A session is bound to the password or
/// to the identity that it was opened with. It ends when the password changes, when passwords are
/// disabled for the user, or when the identity is unlinked. Whether the account is disabled is not
/// checked. Takes no request.
#[must_use]
pub fn session_state(session: &Item, account: &Account, policy: &PasswordPolicy) -> SessionState {
    let is_bound = if let Some(identity) = session_identity(session) {
        account.identities.contains_key(identity)
    } else {
        let fingerprint = account.password.as_ref().map(PasswordHash::fingerprint);
        policy.allows(&account.user)
            && fingerprint.is_some_and(|fingerprint| session.get(OPENED_WITH) == Some(&fingerprint))
    };
    let is_of = session.get(USER_ID) == Some(account.user.id);
    if !is_of || !is_bound || session.get(EXPIRES).is_none_or(is_over) {
        return SessionState::Ended;
    }
    if session.get(RENEW_BY).is_some_and(is_over) { SessionState::Overdue } else { SessionState::Open }
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
    /// Name of the rule by which a machine exchanged a JWT for the token. `None` for a token that a
    /// person created.
    pub issued_by: Option<String>,
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
                issued_by: item.get(ISSUED_BY).map(str::to_owned),
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

    /// Checks whether the token is a valid token of an account. If a provider confirms the account,
    /// tokens that a person created are valid only while the last confirmation is recent enough.
    /// Whether the account is disabled is not checked. Takes no request.
    #[must_use]
    pub fn is_valid_for(&self, account: &Account) -> bool {
        let is_covered = self.issued_by.is_some() || account.is_confirmed();
        self.user_id == account.user.id && !self.is_over() && is_covered
    }
}
