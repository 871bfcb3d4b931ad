//! The lock of a partition. It ensures that only one process packs a partition at a time, and that
//! no process packs it while its traces are being deleted.

use entities::attributes::{NONCE, UNTIL};
use table::{Condition, Failure, Item, Result, Table, Value, bytes, number};

use crate::trace_key::TracePartition;

/// Time in ms after which a lock expires. The holder finishes well before that, or takes a new
/// lock.
pub const LOCK_DURATION_MS: i64 = 90_000;

/// A partition that this process has locked.
#[derive(Clone, Debug)]
pub struct PartitionLock {
    partition: TracePartition,
    nonce: Value,
}

impl PartitionLock {
    /// Locks a partition. Returns `None` if another process holds the lock. `now` is the current
    /// time in ms, and `nonce` is a random number that was drawn for this lock. Sends one request.
    ///
    /// # Errors
    /// Returns failures of the table.
    pub async fn take(table: &Table, partition: TracePartition, nonce: u128, now: i64) -> Result<Option<Self>> {
        let lock = Self { partition, nonce: bytes(nonce.to_be_bytes().to_vec()) };
        let row = Item::new(partition.lock_key())
            .with(NONCE, lock.nonce.clone())
            .with(UNTIL, number(now.saturating_add(LOCK_DURATION_MS)));
        let is_free = Condition::Any(vec![Condition::item_missing(), Condition::Below(UNTIL.into(), number(now))]);
        match table.put(row, &is_free).await {
            Ok(()) => Ok(Some(lock)),
            // An earlier attempt, whose response was lost, has taken the lock.
            Err(Failure::Refused { item: Some(item), .. }) if item.value(NONCE) == Some(&lock.nonce) => Ok(Some(lock)),
            Err(Failure::Refused { .. }) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Releases the lock, unless it expired and another process has taken it. Sends one request.
    ///
    /// # Errors
    /// Returns failures of the table. In this case the lock stays until it expires.
    pub async fn give_back(&self, table: &Table) -> Result<()> {
        let is_mine = Condition::Equals(NONCE.into(), self.nonce.clone());
        match table.delete(&self.partition.lock_key(), &is_mine).await {
            Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}
