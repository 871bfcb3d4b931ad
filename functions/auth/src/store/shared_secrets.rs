//! Secrets that all processes of the auth function share.

use key_schema::access_rows;
use key_schema::attributes::SECRET;
use mlflow_api::{Error, Result};
use rand::RngExt;
use table::{Condition, Failure, Item, bytes};

use super::Store;

impl Store {
    /// Returns the secret of a kind, such as `forms`: 32 random bytes, which are created on first
    /// use. Takes one request, and two if the secret has to be created.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read or written.
    pub async fn shared_secret(&self, kind: &str) -> Result<Vec<u8>> {
        let key = access_rows::Secret::key(&kind.into());
        let read = |item: &Item| item.bytes(SECRET).map(<[u8]>::to_vec);
        if let Some(item) = self.access.get(&key).await? {
            return read(&item).ok_or_else(|| Error::internal("a shared secret is unreadable"));
        }
        let secret = rand::rng().random::<[u8; 32]>().to_vec();
        let item = Item::new(key.clone()).with(SECRET, bytes(secret.clone()));
        match self.access.put(item, &Condition::item_missing()).await {
            Ok(()) => Ok(secret),
            // Another process has created the secret first, or an earlier attempt succeeded and its
            // response was lost.
            Err(Failure::Refused { .. }) => {
                let item = self.access.get(&key).await?;
                item.as_ref().and_then(read).ok_or_else(|| Error::internal("a shared secret has disappeared"))
            }
            Err(failure) => Err(failure.into()),
        }
    }
}
