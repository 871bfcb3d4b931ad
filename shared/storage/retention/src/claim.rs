//! The rows of entities that are being removed.

use entities::attributes::NONCE;
use key_schema::Key;
use mlflow_api::Result;
use rand::RngExt;
use table::{Condition, Failure, Item, Value, Write, bytes};

use crate::store::Retention;

/// Tells the rows of one process from another's.
pub(crate) struct Claim(Value);

impl Retention {
    /// Writes rows for everything that is to be removed. From here on it cannot be restored. A
    /// request per 25.
    ///
    /// They are in a partition of their own: that of an experiment may be full, and then takes
    /// nothing more.
    pub(crate) async fn claim(&self, keys: &[Key]) -> Result<Claim> {
        self.claim_with(keys.iter().cloned().map(Item::new).collect()).await
    }

    /// The same with rows that have more attributes.
    pub(crate) async fn claim_with(&self, rows: Vec<Item>) -> Result<Claim> {
        let nonce = bytes(rand::rng().random::<u64>().to_be_bytes().to_vec());
        let rows = rows.into_iter().map(|row| row.with(NONCE, nonce.clone()));
        self.table.write_many(rows.collect(), &[]).await?;
        Ok(Claim(nonce))
    }

    /// Takes back the row of an entity that stays, unless another process has begun to remove it
    /// meanwhile. A request.
    pub(crate) async fn release(&self, claim: &Claim, key: Key) -> Result<()> {
        let is_ours = Condition::Equals(NONCE.into(), claim.0.clone());
        match self.table.transact(&[Write::Delete(key, is_ours)]).await {
            Ok(()) | Err(Failure::Cancelled(_)) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Deletes the rows of removed entities. A request per 25.
    pub(crate) async fn finish(&self, keys: &[Key]) -> Result<()> {
        Ok(self.table.write_many(Vec::new(), keys).await?)
    }
}
