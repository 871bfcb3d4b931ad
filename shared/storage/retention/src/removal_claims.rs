//! Claims, which are rows in the partition `REMOVAL` for entities that are being permanently
//! deleted.

use entities::attributes::NONCE;
use key_schema::Key;
use mlflow_api::Result;
use rand::RngExt;
use table::{Condition, Failure, Item, Value, Write, bytes};

use crate::store::Retention;

/// Identifies the `REMOVAL` rows that this process wrote.
pub(crate) struct RemovalClaim(Value);

impl Retention {
    /// Writes `REMOVAL` rows for all entities that are to be deleted. From then on, these entities
    /// cannot be restored. Sends one request per 25 entities.
    ///
    /// The rows are in a separate partition, because an experiment's partition may be full and
    /// accept no more items.
    pub(crate) async fn claim(&self, keys: &[Key]) -> Result<RemovalClaim> {
        self.claim_with(keys.iter().cloned().map(Item::new).collect()).await
    }

    /// Writes `REMOVAL` rows that have additional attributes, for entities that are to be deleted.
    pub(crate) async fn claim_with(&self, rows: Vec<Item>) -> Result<RemovalClaim> {
        let nonce = bytes(rand::rng().random::<u64>().to_be_bytes().to_vec());
        let rows = rows.into_iter().map(|row| row.with(NONCE, nonce.clone()));
        self.table.write_many(rows.collect(), &[]).await?;
        Ok(RemovalClaim(nonce))
    }

    /// Deletes the `REMOVAL` row of an entity that is kept, unless another process has begun to
    /// delete the entity in the meantime. Sends one request.
    pub(crate) async fn release(&self, claim: &RemovalClaim, key: Key) -> Result<()> {
        let is_ours = Condition::Equals(NONCE.into(), claim.0.clone());
        match self.table.transact(&[Write::Delete(key, is_ours)]).await {
            Ok(()) | Err(Failure::Cancelled(_)) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Deletes the `REMOVAL` rows of entities that have been permanently deleted. Sends one request
    /// per 25 rows.
    pub(crate) async fn finish(&self, keys: &[Key]) -> Result<()> {
        Ok(self.table.write_many(Vec::new(), keys).await?)
    }
}
