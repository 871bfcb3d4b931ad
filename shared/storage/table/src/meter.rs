//! Requests and capacity units, counted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::types::{Capacity, ConsumedCapacity};

tokio::task_local! {
    /// Counts what this task asks of all tables, while it works for a request.
    static OF_TASK: Meter;
}

/// Counts the consumption of calls: of those through one [`crate::Table`] handle
/// ([`crate::Table::metered`]), or of those that a piece of work makes ([`Meter::counting`]).
#[derive(Clone, Debug, Default)]
pub struct Meter(
    // A std mutex: nothing is awaited while it is held.
    Arc<Mutex<Usage>>,
);

/// Consumption. Capacity units are DynamoDB's: a write unit is 1 KB written, a read unit 4 KB read
/// consistently.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// Requests sent, repeated attempts included.
    pub requests: u32,
    /// Read capacity units.
    pub read_units: f64,
    /// Write capacity units, indexes included.
    pub write_units: f64,
    /// The part of `write_units` that went to local indexes.
    pub local_index_units: f64,
    /// The part of `write_units` that went to global indexes.
    pub global_index_units: f64,
    /// Requests by operation.
    pub operations: BTreeMap<&'static str, u32>,
}

/// Adds up the bytes of items read through one [`crate::Table`] handle, so that a search can end its page by them. Clones share the
/// sum.
#[derive(Clone, Debug, Default)]
pub struct ReadBytes(Arc<AtomicUsize>);

impl ReadBytes {
    /// Bytes read so far: names and values of attributes, as DynamoDB charges them.
    #[must_use]
    pub fn total(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Whether an operation reads or writes.
#[derive(Clone, Copy)]
pub(crate) enum Direction {
    Read,
    Write,
}

impl Meter {
    /// Does `work`, and counts its calls through all handles. Another task or thread only counts
    /// what it does if it takes the meter along ([`Meter::of_task`]).
    pub async fn counting<F: Future>(&self, work: F) -> F::Output {
        OF_TASK.scope(self.clone(), work).await
    }

    /// The one that counts the calls of this task, to be taken along to another task or thread.
    #[must_use]
    pub fn of_task() -> Option<Self> {
        OF_TASK.try_with(Self::clone).ok()
    }

    /// The consumption so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The usage since the last `take`. Counting starts again.
    pub fn take(&self) -> Usage {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn count_request(&self, operation: &'static str) {
        let mut usage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        usage.requests += 1;
        *usage.operations.entry(operation).or_default() += 1;
    }

    /// A write whose condition failed costs the units of writing the existing item. The answer does
    /// not include them.
    pub(crate) fn count_refusal(&self, bytes: usize) {
        let mut usage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        usage.write_units += f64::from(u32::try_from(bytes.div_ceil(1_024).max(1)).unwrap_or(u32::MAX));
    }

    pub(crate) fn count_capacity(&self, direction: Direction, consumed: &[ConsumedCapacity]) {
        let mut usage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for consumed in consumed {
            let total = consumed.capacity_units().unwrap_or_default();
            match direction {
                Direction::Read => usage.read_units += total,
                Direction::Write => {
                    usage.write_units += total;
                    usage.local_index_units += indexes(consumed.local_secondary_indexes());
                    usage.global_index_units += indexes(consumed.global_secondary_indexes());
                }
            }
        }
    }
}

fn indexes(indexes: Option<&std::collections::HashMap<String, Capacity>>) -> f64 {
    indexes.into_iter().flat_map(|indexes| indexes.values()).filter_map(Capacity::capacity_units).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count() {
        if let Some(meter) = Meter::of_task() {
            meter.count_request("GetItem");
        }
    }

    #[tokio::test]
    async fn calls_are_counted_where_the_meter_is_taken_along() {
        let meter = Meter::default();
        let work = async {
            count();
            tokio::spawn(async { count() }).await.unwrap();
            let meter = Meter::of_task().unwrap();
            tokio::spawn(async move { meter.counting(async { count() }).await }).await.unwrap();
        };
        meter.counting(work).await;
        count();
        assert_eq!(meter.usage().requests, 2);
        assert_eq!(Meter::default().usage().requests, 0);
    }
}
