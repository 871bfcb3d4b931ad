//! The lock of a partition: one process packs it at a time, and none while it is removed.

use entities::attributes::{NONCE, UNTIL};
use table::{Condition, Failure, Item, Result, Table, Value, bytes, number};

use crate::trace_key::TracePartition;

/// For how long a partition is locked, in ms. The holder ends well before, or takes a new lock.
pub const LOCK_LASTS: i64 = 90_000;

/// A partition that nobody else packs.
#[derive(Clone, Debug)]
pub struct PartitionLock {
    partition: TracePartition,
    nonce: Value,
}

impl PartitionLock {
    /// Takes a partition; nothing if somebody has it. `now` is in ms, and `nonce` drawn for this. One request.
    ///
    /// # Errors
    /// Those of the table.
    pub async fn take(table: &Table, partition: TracePartition, nonce: u128, now: i64) -> Result<Option<Self>> {
        let lock = Self { partition, nonce: bytes(nonce.to_be_bytes().to_vec()) };
        let row = Item::new(partition.lock_key())
            .with(NONCE, lock.nonce.clone())
            .with(UNTIL, number(now.saturating_add(LOCK_LASTS)));
        let is_free = Condition::Any(vec![Condition::item_missing(), Condition::Below(UNTIL.into(), number(now))]);
        match table.put(row, &is_free).await {
            Ok(()) => Ok(Some(lock)),
            // The answer to an attempt was lost.
            Err(Failure::Refused { item: Some(item), .. }) if item.value(NONCE) == Some(&lock.nonce) => Ok(Some(lock)),
            Err(Failure::Refused { .. }) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Gives the partition back, if nobody has taken it since it ran out. One request.
    ///
    /// # Errors
    /// Those of the table; then it runs out.
    pub async fn give_back(&self, table: &Table) -> Result<()> {
        let is_mine = Condition::Equals(NONCE.into(), self.nonce.clone());
        match table.delete(&self.partition.lock_key(), &is_mine).await {
            Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure),
        }
    }
}
