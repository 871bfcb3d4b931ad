//! Secrets of sessions and tokens: the form that clients hold, and the form that is stored.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mlflow_api::UserName;
use rand::RngExt;
use sha2::{Digest, Sha256};

/// Length of a secret in bytes. Long enough that it cannot be guessed.
const SECRET_BYTES: usize = 32;
/// Prefix of every token, so that leaked tokens are recognized.
const TOKEN_PREFIX: &str = "mlflow-token_";

/// A secret with the name of its user. The table stores its digest in the user's partition. The
/// name is not trusted until the digest has been found there.
#[derive(Clone, PartialEq, Eq)]
pub struct UserSecret {
    user: UserName,
    secret: [u8; SECRET_BYTES],
}

impl UserSecret {
    /// Creates a random secret.
    #[must_use]
    pub fn new(user: UserName) -> Self {
        Self { user, secret: rand::rng().random() }
    }

    /// Returns the value of the session cookie.
    #[must_use]
    pub fn cookie(&self) -> String {
        let [user, secret] = [self.user.as_str().as_bytes(), &self.secret].map(|part| URL_SAFE_NO_PAD.encode(part));
        format!("{user}.{secret}")
    }

    /// Returns the token that a client sends.
    #[must_use]
    pub fn token(&self) -> String {
        format!("{TOKEN_PREFIX}{}", self.cookie())
    }

    /// Parses the value of a session cookie.
    #[must_use]
    pub fn of_cookie(text: &str) -> Option<Self> {
        let (user, secret) = text.split_once('.')?;
        let [user, secret] = [user, secret].map(|part| URL_SAFE_NO_PAD.decode(part).ok());
        Some(Self { user: UserName::named(&String::from_utf8(user?).ok()?)?, secret: secret?.try_into().ok()? })
    }

    /// Parses a token.
    #[must_use]
    pub fn of_token(text: &str) -> Option<Self> {
        Self::of_cookie(text.strip_prefix(TOKEN_PREFIX)?)
    }

    /// Returns the user.
    #[must_use]
    pub fn user(&self) -> &UserName {
        &self.user
    }

    /// Returns the form that is stored, from which the secret cannot be computed.
    #[must_use]
    pub fn digest(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.secret))
    }
}

impl fmt::Debug for UserSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Secret").field(&self.user).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_as_it_was_written() {
        let secret = UserSecret::new(UserName::named("anné b").unwrap());
        assert_eq!(UserSecret::of_cookie(&secret.cookie()), Some(secret.clone()));
        assert_eq!(UserSecret::of_token(&secret.token()), Some(secret.clone()));
        assert_eq!((secret.digest().len(), secret.digest().contains('#')), (43, false));
        assert_ne!(secret.digest(), UserSecret::new(secret.user().clone()).digest());
        assert!(
            secret.cookie().chars().all(|character| character.is_ascii_alphanumeric() || "-_.".contains(character))
        );
        for wrong in
            ["", ".", "YW5u", "YW5u.YW5u", "mlflow-token_YW5u.", &secret.token(), &format!("{}A", secret.cookie())]
        {
            assert_eq!(UserSecret::of_cookie(wrong), None, "{wrong}");
        }
        assert!(!format!("{secret:?}").contains(&secret.cookie()));
    }
}
