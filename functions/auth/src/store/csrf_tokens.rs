//! CSRF tokens for forms. A token is a keyed hash of the user and the hour, which only this server
//! can compute, so it identifies forms that this server has shown.

use mlflow_api::{Result, UserName};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::Store;

/// Validity period of a CSRF token in milliseconds. A token is accepted in the period in which it
/// was issued, and in the next one.
const PERIOD_MS: i64 = 3_600_000;
/// Kind of the secret that tokens are computed with.
const FORMS: &str = "forms";

impl Store {
    /// Returns a token for a form that is shown to this user. Takes one request, and two if the
    /// secret has to be created.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn form_token(&self, user: &UserName) -> Result<Vec<u8>> {
        Ok(token(&self.shared_secret(FORMS).await?, user, runtime::clock::now_ms() / PERIOD_MS))
    }

    /// Checks whether a token was issued to this user within the last one to two hours.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn is_form_token(&self, user: &UserName, shown: &[u8]) -> Result<bool> {
        let secret = self.shared_secret(FORMS).await?;
        let period = runtime::clock::now_ms() / PERIOD_MS;
        let is_of = |period| bool::from(token(&secret, user, period).ct_eq(shown));
        Ok([period, period - 1].into_iter().any(is_of))
    }
}

fn token(secret: &[u8], user: &UserName, period: i64) -> Vec<u8> {
    // The secret is hashed both first and last, which rules out length extension attacks.
    let mut hash = Sha256::new();
    hash.update(secret);
    hash.update(format!("{period} {user}"));
    hash.update(secret);
    hash.finalize().to_vec()
}
