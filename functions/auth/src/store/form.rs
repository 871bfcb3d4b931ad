//! Tells a form that this server has shown from one of another page. It has a token of the user and
//! the hour that only this server can make.

use key_schema::access_rows;
use key_schema::attributes::SECRET;
use mlflow_api::{Error, Result, UserName};
use rand::RngExt;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use table::{Condition, Failure, Item, bytes};

use super::Store;

/// Milliseconds for which a form may be filled in.
const PERIOD: i64 = 3_600_000;

impl Store {
    /// A token for a form that this user is shown. One request, two the first time ever.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn form_token(&self, user: &UserName) -> Result<Vec<u8>> {
        Ok(token(&self.form_secret().await?, user, clock::now_ms() / PERIOD))
    }

    /// Whether this is a token that this user was shown within the last hour or two.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn is_form_token(&self, user: &UserName, shown: &[u8]) -> Result<bool> {
        let secret = self.form_secret().await?;
        let period = clock::now_ms() / PERIOD;
        let is_of = |period| bool::from(token(&secret, user, period).ct_eq(shown));
        Ok([period, period - 1].into_iter().any(is_of))
    }

    /// The secret of all processes, which is made once.
    async fn form_secret(&self) -> Result<Vec<u8>> {
        let key = access_rows::Secret::key(&"forms".into());
        let read = |item: &Item| item.bytes(SECRET).map(<[u8]>::to_vec);
        if let Some(item) = self.access.get(&key).await? {
            return read(&item).ok_or_else(|| Error::internal("the secret of forms cannot be read"));
        }
        let secret = rand::rng().random::<[u8; 32]>().to_vec();
        let item = Item::new(key.clone()).with(SECRET, bytes(secret.clone()));
        match self.access.put(item, &Condition::item_missing()).await {
            Ok(()) => Ok(secret),
            // Another process was faster, or this one before its answer was lost.
            Err(Failure::Refused { .. }) => {
                let item = self.access.get(&key).await?;
                item.as_ref().and_then(read).ok_or_else(|| Error::internal("the secret of forms is gone"))
            }
            Err(failure) => Err(failure.into()),
        }
    }
}

fn token(secret: &[u8], user: &UserName, period: i64) -> Vec<u8> {
    // The key comes first and last, so that nobody can extend a text with the help of its token.
    let mut hash = Sha256::new();
    hash.update(secret);
    hash.update(format!("{period} {user}"));
    hash.update(secret);
    hash.finalize().to_vec()
}
