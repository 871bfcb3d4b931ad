//! Schedules the packing of partitions of traces: some minutes after a mark was put into a
//! partition, and again if marks are left that are not quiet yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use entities::attributes::{ALL, FROM, TO_PACK};
use entities::now_ms;
use key_schema::{Ascending, Key, Segment, Shard, rows};
use table::{Item, number, text};
use trace_blocks::{TraceKey, TracePartition};

/// Name of this kind of entity in the rows of postponed entities.
const TRACES_KIND: &str = "traces";
/// Maximum number of partitions whose rows are cached. If a partition is evicted, its row is
/// written once more.
const MAX_CACHED_PARTITIONS: usize = 50_000;

/// Which marks of a partition are packed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct PackingScope {
    /// The mark at which packing begins. `None` to begin with the oldest one.
    pub(crate) from: Option<TraceKey>,
    /// Whether traces are packed even if they are few, because the day is being archived.
    pub(crate) is_all: bool,
}

/// A per-process cache of the partitions that have a row which schedules their packing. Cheap to
/// clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct PackingSchedule(Arc<Mutex<HashMap<TracePartition, i64>>>);

impl PackingSchedule {
    /// Checks whether the cache contains no row that schedules packing of a partition at the time
    /// `by` or earlier. Times are in ms.
    #[must_use]
    pub(crate) fn is_missing(&self, partition: &TracePartition, now: i64, by: i64) -> bool {
        self.all().get(partition).is_none_or(|due| *due <= now || *due > by)
    }

    /// Records that a partition now has a row.
    pub(crate) fn remember(&self, partition: TracePartition, due: i64, now: i64) {
        let mut all = self.all();
        if all.len() >= MAX_CACHED_PARTITIONS {
            all.retain(|_, due| *due > now);
        }
        if all.len() >= MAX_CACHED_PARTITIONS {
            all.clear();
        }
        all.insert(partition, due);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<TracePartition, i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the key of the row that schedules packing of a partition. `due` is the time of packing
/// in ms.
#[must_use]
pub(crate) fn row_of(partition: &TracePartition, due: i64) -> Key {
    let name = format!("{}.{}", Ascending(partition.day).text(), partition.shard);
    let shard = Shard::of(&name);
    rows::Postponed::key(&shard, &Ascending(due), &TRACES_KIND.into(), &partition.experiment, &name.as_str().into())
}

/// Returns the partition of a row that schedules packing, or `None` if the row is about another
/// kind of entity.
#[must_use]
pub(crate) fn partition_of_row(key: &Key) -> Option<TracePartition> {
    let row = rows::Postponed::parse(key).filter(|row| row.entity_type.0 == TRACES_KIND)?;
    let (day, shard) = row.entity.0.split_once('.')?;
    Some(TracePartition { experiment: row.experiment, day: Ascending::read(day)?.0, shard: shard.parse().ok()? })
}

/// Returns the row that requests the stream's consumer to pack a partition. The row contains the
/// current time, so that each request changes it and therefore appears in the stream.
#[must_use]
pub(crate) fn packing_request(partition: &TracePartition, scope: &PackingScope) -> Item {
    let item = Item::new(partition.packing_key()).with(TO_PACK, number(now_ms()));
    let item = match &scope.from {
        Some(from) => item.with(FROM, text(from.text())),
        None => item,
    };
    if scope.is_all { item.with(ALL, number(1)) } else { item }
}

#[cfg(test)]
mod tests {
    use mlflow_api::ExperimentId;

    use super::*;

    fn partition(day: i64) -> TracePartition {
        TracePartition { experiment: ExperimentId::DEFAULT, day, shard: 63 }
    }

    #[test]
    fn a_row_leads_to_its_partition() {
        for day in [-5, 0, 20_000] {
            assert_eq!(partition_of_row(&row_of(&partition(day), 7)), Some(partition(day)));
        }
        let run =
            rows::Postponed::key(&Shard::of("r"), &Ascending(7), &"run".into(), &ExperimentId::DEFAULT, &"r".into());
        assert_eq!(partition_of_row(&run), None);
    }

    #[test]
    fn a_partition_has_a_row_until_it_is_due() {
        let asks = PackingSchedule::default();
        assert!(asks.is_missing(&partition(1), 0, 100));
        asks.remember(partition(1), 100, 0);
        assert!(!asks.is_missing(&partition(1), 99, 200) && asks.is_missing(&partition(1), 100, 200));
        assert!(asks.is_missing(&partition(1), 50, 60), "that would be later");
        for day in 0..2 * i64::try_from(MAX_CACHED_PARTITIONS).unwrap() {
            asks.remember(partition(day), day, day);
        }
        assert!(asks.all().len() <= MAX_CACHED_PARTITIONS);
    }
}
