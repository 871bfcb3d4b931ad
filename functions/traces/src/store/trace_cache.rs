//! A per-process cache of documents and days. Any entry may be stale. This is safe because writes
//! are conditional, and data that can only grow is read again where staleness matters.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use runtime::clock::Moment;

use entities::StoredTrace;
use mlflow_api::{ExperimentId, TraceId};
use trace_blocks::{TraceKey, TracePartition};

/// How long the number of a day's partitions is cached. The indexer adds partitions to a day when
/// one of them receives too many traces.
const PARTITION_COUNT_LIFETIME: Duration = Duration::from_secs(30);
/// Maximum number of cached traces, and of cached days.
const MAX_ENTRIES: usize = 1_000;
/// Maximum number of deleted traces that are cached.
const MAX_DELETED: usize = 20_000;
/// Maximum size in bytes of a cached document.
const MAX_CACHED_BYTES: usize = 4 << 10;

/// The cache. It contains:
///
/// - documents that this process wrote last, because the spans of a trace often arrive in several
///   requests,
/// - days that exist in the table, with their numbers of partitions,
/// - traces that this process has deleted, because their marks remain for some minutes.
#[derive(Clone, Default)]
pub(super) struct TraceCache(Arc<Mutex<CacheContent>>);

#[derive(Default)]
struct CacheContent {
    traces: HashMap<TraceId, StoredTrace>,
    days: HashMap<(ExperimentId, i64), (u32, Moment)>,
    deleted: HashMap<(TracePartition, TraceKey), i64>,
}

impl TraceCache {
    /// Returns a trace as this process wrote it last.
    pub(super) fn trace(&self, id: &TraceId) -> Option<StoredTrace> {
        self.with(|memory| memory.traces.get(id).cloned())
    }

    /// Caches a trace, if it is small enough.
    pub(super) fn keep_trace(&self, trace: &StoredTrace) {
        let is_small = trace.item().size() <= MAX_CACHED_BYTES;
        self.with(|memory| {
            evict_if_full(&mut memory.traces);
            if is_small {
                memory.traces.insert(trace.id().clone(), trace.clone());
            } else {
                memory.traces.remove(trace.id());
            }
        });
    }

    /// Removes a trace from the cache.
    pub(super) fn forget_trace(&self, id: &TraceId) {
        self.with(|memory| memory.traces.remove(id));
    }

    /// Returns the number of partitions of a day, if the day exists and was read recently.
    pub(super) fn shards(&self, experiment: ExperimentId, day: i64) -> Option<u32> {
        let (shards, read) = self.with(|memory| memory.days.get(&(experiment, day)).copied())?;
        (read.age() < PARTITION_COUNT_LIFETIME).then_some(shards)
    }

    /// Caches the number of a day's partitions.
    pub(super) fn keep_day(&self, experiment: ExperimentId, day: i64, shards: u32) {
        self.with(|memory| {
            evict_if_full(&mut memory.days);
            memory.days.insert((experiment, day), (shards, Moment::now()));
        });
    }

    /// Removes all days from the cache.
    pub(super) fn forget_days(&self) {
        self.with(|memory| memory.days.clear());
    }

    /// Records that a trace was deleted. `begun` is the start of the deleting transaction, in ms.
    pub(super) fn keep_deleted(&self, trace: &StoredTrace, begun: i64) {
        self.with(|memory| {
            if memory.deleted.len() >= MAX_DELETED {
                memory.deleted.clear();
            }
            memory.deleted.insert((TracePartition::of(trace), TraceKey::of(trace)), begun);
        });
    }

    /// Checks whether this process deleted a trace after the trace's mark was written. A later mark
    /// means that the trace may have been created again.
    pub(super) fn was_deleted(&self, partition: &TracePartition, place: &TraceKey, marked_at: i64) -> bool {
        let deleted = self.with(|memory| memory.deleted.get(&(*partition, place.clone())).copied());
        deleted.is_some_and(|deleted| marked_at < deleted)
    }

    fn with<T>(&self, act: impl FnOnce(&mut CacheContent) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn evict_if_full<K, V>(map: &mut HashMap<K, V>) {
    if map.len() >= MAX_ENTRIES {
        map.clear();
    }
}
