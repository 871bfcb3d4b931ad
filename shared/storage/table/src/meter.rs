//! Counters of requests and capacity units.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::types::{Capacity, ConsumedCapacity};

tokio::task_local! {
    /// The meter of the client request that this task is handling. It counts the task's requests to
    /// all tables.
    static TASK_METER: UsageMeter;
}

/// A counter of requests and consumed capacity units. It counts the requests through one
/// [`crate::Table`] handle ([`crate::Table::metered`]), or all requests during a future
/// ([`UsageMeter::counting`]).
#[derive(Clone, Debug, Default)]
pub struct UsageMeter(
    // A std mutex: no await happens while it is held.
    Arc<Mutex<ConsumedUnits>>,
);

/// The consumption of one or more requests. The capacity units are those of DynamoDB: a write unit
/// is 1 KB written, and a read unit is 4 KB read with strong consistency.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConsumedUnits {
    /// Requests sent, including retries.
    pub requests: u32,
    /// Read capacity units.
    pub read_units: f64,
    /// Write capacity units, including those of indexes.
    pub write_units: f64,
    /// The part of `write_units` that local indexes consumed.
    pub local_index_units: f64,
    /// The part of `write_units` that global indexes consumed.
    pub global_index_units: f64,
    /// Number of requests by operation.
    pub operations: BTreeMap<&'static str, u32>,
}

/// The total size of the items read through one [`crate::Table`] handle, so that a search can limit
/// its page by the bytes it reads. Clones share the total.
#[derive(Clone, Debug, Default)]
pub struct ReadBytes(Arc<AtomicUsize>);

impl ReadBytes {
    /// Returns the number of bytes read so far, counted as DynamoDB charges them: the names and
    /// values of attributes.
    #[must_use]
    pub fn total(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds bytes that were read from elsewhere, and count towards the same limit.
    pub fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Whether an operation reads or writes.
#[derive(Clone, Copy)]
pub(crate) enum CapacityKind {
    Read,
    Write,
}

impl UsageMeter {
    /// Runs `work` and counts its requests through all handles. Requests of tasks and threads that
    /// it spawns are counted only if the meter is passed on to them ([`UsageMeter::of_task`]).
    pub async fn counting<F: Future>(&self, work: F) -> F::Output {
        TASK_METER.scope(self.clone(), work).await
    }

    /// Returns the meter of this task, to be passed on to another task or thread.
    #[must_use]
    pub fn of_task() -> Option<Self> {
        TASK_METER.try_with(Self::clone).ok()
    }

    /// Returns the consumption so far.
    #[must_use]
    pub fn usage(&self) -> ConsumedUnits {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the consumption since the last `take`, and resets the counters.
    pub fn take(&self) -> ConsumedUnits {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn count_request(&self, operation: &'static str) {
        let mut usage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        usage.requests += 1;
        *usage.operations.entry(operation).or_default() += 1;
    }

    /// Counts the write units of a write whose condition did not hold. DynamoDB charges the size of
    /// the existing item, but does not include it in the response.
    pub(crate) fn count_refusal(&self, bytes: usize) {
        let mut usage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        usage.write_units += f64::from(u32::try_from(bytes.div_ceil(1_024).max(1)).unwrap_or(u32::MAX));
    }

    pub(crate) fn count_capacity(&self, direction: CapacityKind, consumed: &[ConsumedCapacity]) {
        let mut usage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for consumed in consumed {
            let total = consumed.capacity_units().unwrap_or_default();
            match direction {
                CapacityKind::Read => usage.read_units += total,
                CapacityKind::Write => {
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
        if let Some(meter) = UsageMeter::of_task() {
            meter.count_request("GetItem");
        }
    }

    #[tokio::test]
    async fn calls_are_counted_where_the_meter_is_taken_along() {
        let meter = UsageMeter::default();
        let work = async {
            count();
            tokio::spawn(async { count() }).await.unwrap();
            let meter = UsageMeter::of_task().unwrap();
            tokio::spawn(async move { meter.counting(async { count() }).await }).await.unwrap();
        };
        meter.counting(work).await;
        count();
        assert_eq!(meter.usage().requests, 2);
        assert_eq!(UsageMeter::default().usage().requests, 0);
    }
}
