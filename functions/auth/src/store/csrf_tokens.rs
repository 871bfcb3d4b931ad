//! CSRF tokens for forms. A token is a keyed hash of the user and the hour, which only this server
//! can compute, so it identifies forms that this server has shown.

use key_schema::access_rows;
use key_schema::attributes::SECRET;
use mlflow_api::{Error, Result, UserName};
use rand::RngExt;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use table::{Condition, Failure, Item, bytes};

use super::Store;

/// Validity period of a CSRF token in milliseconds. A token is accepted in the period in which it
/// was issued, and in the next one.
const PERIOD_MS: i64 = 3_600_000;

impl Store {
    /// Returns a token for a form that is shown to this user. Takes one request, and two if the
    /// secret has to be created.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn form_token(&self, user: &UserName) -> Result<Vec<u8>> {
        Ok(token(&self.form_secret().await?, user, runtime::clock::now_ms() / PERIOD_MS))
    }

    /// Checks whether a token was issued to this user within the last one to two hours.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub async fn is_form_token(&self, user: &UserName, shown: &[u8]) -> Result<bool> {
        let secret = self.form_secret().await?;
        let period = runtime::clock::now_ms() / PERIOD_MS;
        let is_of = |period| bool::from(token(&secret, user, period).ct_eq(shown));
        Ok([period, period - 1].into_iter().any(is_of))
    }

    /// Returns the secret that all processes share, and creates it on first use.
    async fn form_secret(&self) -> Result<Vec<u8>> {
        let key = access_rows::Secret::key(&"forms".into());
        let read = |item: &Item| item.bytes(SECRET).map(<[u8]>::to_vec);
        if let Some(item) = self.access.get(&key).await? {
            return read(&item).ok_or_else(|| Error::internal("the secret of forms is unreadable"));
        }
        let secret = rand::rng().random::<[u8; 32]>().to_vec();
        let item = Item::new(key.clone()).with(SECRET, bytes(secret.clone()));
        match self.access.put(item, &Condition::item_missing()).await {
            Ok(()) => Ok(secret),
            // Another process has created the secret first, or an earlier attempt succeeded and its
            // response was lost.
            Err(Failure::Refused { .. }) => {
                let item = self.access.get(&key).await?;
                item.as_ref().and_then(read).ok_or_else(|| Error::internal("the secret of forms has disappeared"))
            }
            Err(failure) => Err(failure.into()),
        }
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
