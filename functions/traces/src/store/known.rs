//! This process's memory of the table. All of it may be stale: writes carry conditions, and data
//! that only grows is read again where that matters.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clock::Moment;

use entities::StoredTrace;
use mlflow_api::{ExperimentId, TraceId};
use trace_blocks::{TraceKey, TracePartition};

/// For how long the number of a day's partitions is remembered. The indexer makes more of them when one gets too many traces.
const NUMBER: Duration = Duration::from_secs(30);
/// Traces remembered at a time, and days.
const MOST: usize = 1_000;
/// Deleted traces remembered at a time.
const MOST_DELETED: usize = 20_000;
/// Largest document that is remembered, in bytes.
const LARGEST: usize = 4 << 10;

/// Documents of traces that this process wrote last: spans of a trace often come by several requests. And the days that are in the table,
/// with the number of their partitions; and the traces that it has deleted, whose marks stay for some minutes.
#[derive(Clone, Default)]
pub(super) struct Known(Arc<Mutex<Memory>>);

#[derive(Default)]
struct Memory {
    traces: HashMap<TraceId, StoredTrace>,
    days: HashMap<(ExperimentId, i64), (u32, Moment)>,
    deleted: HashMap<(TracePartition, TraceKey), i64>,
}

impl Known {
    /// A trace as this process wrote it last.
    pub(super) fn trace(&self, id: &TraceId) -> Option<StoredTrace> {
        self.with(|memory| memory.traces.get(id).cloned())
    }

    /// Remembers a trace.
    pub(super) fn keep_trace(&self, trace: &StoredTrace) {
        let is_small = trace.item().size() <= LARGEST;
        self.with(|memory| {
            make_room(&mut memory.traces);
            if is_small {
                memory.traces.insert(trace.id().clone(), trace.clone());
            } else {
                memory.traces.remove(trace.id());
            }
        });
    }

    /// Forgets a trace.
    pub(super) fn forget_trace(&self, id: &TraceId) {
        self.with(|memory| memory.traces.remove(id));
    }

    /// Over how many partitions a day is spread, if it is in the table.
    pub(super) fn shards(&self, experiment: ExperimentId, day: i64) -> Option<u32> {
        let (shards, read) = self.with(|memory| memory.days.get(&(experiment, day)).copied())?;
        (read.age() < NUMBER).then_some(shards)
    }

    /// Remembers a day.
    pub(super) fn keep_day(&self, experiment: ExperimentId, day: i64, shards: u32) {
        self.with(|memory| {
            make_room(&mut memory.days);
            memory.days.insert((experiment, day), (shards, Moment::now()));
        });
    }

    /// Forgets the numbers of partitions.
    pub(super) fn forget_days(&self) {
        self.with(|memory| memory.days.clear());
    }

    /// Remembers that a trace was deleted, by a transaction that began then, in ms.
    pub(super) fn keep_deleted(&self, trace: &StoredTrace, begun: i64) {
        self.with(|memory| {
            if memory.deleted.len() >= MOST_DELETED {
                memory.deleted.clear();
            }
            memory.deleted.insert((TracePartition::of(trace), TraceKey::of(trace)), begun);
        });
    }

    /// Whether this process has deleted the trace of a mark since the mark was put. A request that
    /// makes the trace again puts a new mark.
    pub(super) fn was_deleted(&self, partition: &TracePartition, place: &TraceKey, marked_at: i64) -> bool {
        let deleted = self.with(|memory| memory.deleted.get(&(*partition, place.clone())).copied());
        deleted.is_some_and(|deleted| marked_at < deleted)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Memory) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn make_room<K, V>(map: &mut HashMap<K, V>) {
    if map.len() >= MOST {
        map.clear();
    }
}
