//! Secrets of sessions and tokens: the holder's part, and the table's part.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mlflow_api::UserName;
use rand::RngExt;
use sha2::{Digest, Sha256};

/// Bytes of a secret, which nobody guesses.
const LENGTH: usize = 32;
/// The beginning of every token, so that a lost one is recognized.
const TOKEN: &str = "mlflow-token_";

/// A secret with its user's name. The table has its digest in the user's partition. The name counts
/// only if the digest is there.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    user: UserName,
    secret: [u8; LENGTH],
}

impl Secret {
    /// A new one.
    #[must_use]
    pub fn new(user: UserName) -> Self {
        Self { user, secret: rand::rng().random() }
    }

    /// As a browser keeps it.
    #[must_use]
    pub fn cookie(&self) -> String {
        let [user, secret] = [self.user.as_str().as_bytes(), &self.secret].map(|part| URL_SAFE_NO_PAD.encode(part));
        format!("{user}.{secret}")
    }

    /// As a client sends it.
    #[must_use]
    pub fn token(&self) -> String {
        format!("{TOKEN}{}", self.cookie())
    }

    /// Reads a cookie's value.
    #[must_use]
    pub fn of_cookie(text: &str) -> Option<Self> {
        let (user, secret) = text.split_once('.')?;
        let [user, secret] = [user, secret].map(|part| URL_SAFE_NO_PAD.decode(part).ok());
        Some(Self { user: UserName::named(&String::from_utf8(user?).ok()?)?, secret: secret?.try_into().ok()? })
    }

    /// Reads a token.
    #[must_use]
    pub fn of_token(text: &str) -> Option<Self> {
        Self::of_cookie(text.strip_prefix(TOKEN)?)
    }

    /// The user.
    #[must_use]
    pub fn user(&self) -> &UserName {
        &self.user
    }

    /// The table's form: nobody can compute the secret from it.
    #[must_use]
    pub fn digest(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.secret))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Secret").field(&self.user).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_as_it_was_written() {
        let secret = Secret::new(UserName::named("anné b").unwrap());
        assert_eq!(Secret::of_cookie(&secret.cookie()), Some(secret.clone()));
        assert_eq!(Secret::of_token(&secret.token()), Some(secret.clone()));
        assert_eq!((secret.digest().len(), secret.digest().contains('#')), (43, false));
        assert_ne!(secret.digest(), Secret::new(secret.user().clone()).digest());
        assert!(
            secret.cookie().chars().all(|character| character.is_ascii_alphanumeric() || "-_.".contains(character))
        );
        for wrong in
            ["", ".", "YW5u", "YW5u.YW5u", "mlflow-token_YW5u.", &secret.token(), &format!("{}A", secret.cookie())]
        {
            assert_eq!(Secret::of_cookie(wrong), None, "{wrong}");
        }
        assert!(!format!("{secret:?}").contains(&secret.cookie()));
    }
}
