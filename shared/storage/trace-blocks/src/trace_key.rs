//! The order of an experiment's traces in time, and the partitions that contain them.

use std::cmp::Ordering;

use entities::{StoredTrace, TracePointer};
use key_schema::{Ascending, Descending, Key, KeyRange, Ordinal, Segment, WideDigest, rows};
use mlflow_api::{ExperimentId, TraceId};

/// One day in ms.
const DAY_MS: i64 = 86_400_000;
/// Number of partitions across which the spans of one partition's blocks are distributed.
const SPAN_PARTITIONS: u32 = 16;

/// Returns the UTC day of a time in ms, in days since 1970.
#[must_use]
pub fn day_of(time: i64) -> i64 {
    time.div_euclid(DAY_MS)
}

/// A position in the time order of an experiment's traces. Newest first, ties broken by ID.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TraceKey {
    /// Start time of the trace in ms.
    pub time: i64,
    /// ID of the trace.
    pub trace: TraceId,
}

impl Ord for TraceKey {
    /// Compares positions, newest first, and breaks ties by ID. Their texts in keys have this order
    /// too.
    fn cmp(&self, other: &Self) -> Ordering {
        other.time.cmp(&self.time).then_with(|| self.trace.cmp(&other.trace))
    }
}

impl PartialOrd for TraceKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl TraceKey {
    /// Returns the position of a trace.
    #[must_use]
    pub fn of(trace: &StoredTrace) -> Self {
        Self { time: trace.request_time(), trace: trace.id().clone() }
    }

    /// Returns the position in the key of a mark or a block. The position of a block is the end of
    /// its range.
    #[must_use]
    pub fn of_key(key: &Key) -> Option<Self> {
        if let Some(row) = rows::TraceMark::parse(key) {
            return Some(Self { time: row.time.0, trace: row.trace });
        }
        if let Some(row) = rows::TraceMarkWithSpans::parse(key) {
            return Some(Self { time: row.time.0, trace: row.trace });
        }
        let row = rows::TraceBlock::parse(key)?;
        Some(Self { time: row.time.0, trace: row.trace })
    }

    /// Parses a position from its text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (time, trace) = text.split_once('#')?;
        Some(Self { time: Descending::read(time)?.0, trace: TraceId::parse(trace)? })
    }

    /// Returns the text of the position in keys.
    #[must_use]
    pub fn text(&self) -> String {
        key_schema::list_positions::newest_first(self.time, self.trace.as_str())
    }
}

/// A partition of an experiment's traces. It contains the traces of one UTC day, or a part of them
/// if the day has several partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TracePartition {
    /// Experiment of the traces.
    pub experiment: ExperimentId,
    /// Day, in days since 1970.
    pub day: i64,
    /// Number that distinguishes the partitions of one day.
    pub shard: u32,
}

impl TracePartition {
    /// Returns the partition of a trace.
    #[must_use]
    pub fn of(trace: &StoredTrace) -> Self {
        Self { experiment: trace.experiment(), day: day_of(trace.request_time()), shard: trace.shard() }
    }

    /// Returns the partition that contains the block of a packed trace.
    #[must_use]
    pub fn of_pointer(pointer: &TracePointer) -> Self {
        Self { experiment: pointer.experiment(), day: day_of(pointer.request_time()), shard: pointer.shard() }
    }

    /// Returns the partition that a row belongs to.
    #[must_use]
    pub fn of_key(key: &Key) -> Option<Self> {
        let (experiment, day, shard) = if let Some(row) = rows::TraceMark::parse(key) {
            (row.experiment, row.day, row.shard)
        } else if let Some(row) = rows::TraceMarkWithSpans::parse(key) {
            (row.experiment, row.day, row.shard)
        } else if let Some(row) = rows::TraceBlock::parse(key) {
            (row.experiment, row.day, row.shard)
        } else {
            let row = rows::Packing::parse(key)?;
            (row.experiment, row.day, row.shard)
        };
        Some(Self { experiment, day: day.0, shard: shard.0 })
    }

    /// Checks whether a mark in this partition at `place` is the current mark of the trace.
    #[must_use]
    pub fn holds(&self, trace: &StoredTrace, place: &TraceKey) -> bool {
        Self::of(trace) == *self && trace.request_time() == place.time && *trace.id() == place.trace
    }

    fn day(&self) -> Ascending {
        Ascending(self.day)
    }

    fn shard(&self) -> Ordinal {
        Ordinal(self.shard)
    }

    /// Returns the key of the mark at a position.
    #[must_use]
    pub fn mark_key(&self, place: &TraceKey) -> Key {
        rows::TraceMark::key(&self.experiment, &self.day(), &self.shard(), &Descending(place.time), &place.trace)
    }

    /// Returns the key of the mark at a position that has the spans of the export with this digest.
    #[must_use]
    pub fn mark_with_spans_key(&self, place: &TraceKey, export: &WideDigest) -> Key {
        let (day, shard, time) = (self.day(), self.shard(), Descending(place.time));
        rows::TraceMarkWithSpans::key(&self.experiment, &day, &shard, &time, &place.trace, export)
    }

    /// Returns the key of the block that ends at a position.
    #[must_use]
    pub fn block_key(&self, end: &TraceKey) -> Key {
        rows::TraceBlock::key(&self.experiment, &self.day(), &self.shard(), &Descending(end.time), &end.trace)
    }

    /// Returns the key of an item with a block's spans, given the digest of its content.
    #[must_use]
    pub fn spans_key(&self, digest: &WideDigest) -> Key {
        let part = Ordinal(u32::try_from(digest.0 % u128::from(SPAN_PARTITIONS)).unwrap_or_default());
        rows::BlockSpans::key(&self.experiment, &self.day(), &self.shard(), &part, digest)
    }

    /// Returns the key of the row that requests packing of the partition.
    #[must_use]
    pub fn packing_key(&self) -> Key {
        rows::Packing::key(&self.experiment, &self.day(), &self.shard())
    }

    /// Returns the key of the row with the partition's lock.
    #[must_use]
    pub fn lock_key(&self) -> Key {
        rows::PackingLock::key(&self.experiment, &self.day(), &self.shard())
    }

    /// Returns the range of all marks. The marks of one position follow each other: first the mark
    /// without spans, and then those with spans.
    #[must_use]
    pub fn marks(&self) -> KeyRange {
        rows::TraceMark::all(&self.experiment, &self.day(), &self.shard()).range()
    }

    /// Returns the range of the marks after a position.
    #[must_use]
    pub fn marks_after(&self, place: &TraceKey) -> KeyRange {
        self.marks().after_beginning(&marks_of(place))
    }

    /// Returns the range of the marks up to a position, including all marks of the position.
    #[must_use]
    pub fn marks_until(&self, place: &TraceKey) -> KeyRange {
        self.marks().until_beginning(&marks_of(place))
    }

    /// Returns the range of all blocks.
    #[must_use]
    pub fn blocks(&self) -> KeyRange {
        rows::TraceBlock::all(&self.experiment, &self.day(), &self.shard()).range()
    }

    /// Returns the range of the blocks' ends. It is a range of an index that contains only keys, so
    /// reading it is cheap.
    #[must_use]
    pub fn block_ends(&self) -> KeyRange {
        key_schema::index::TraceBlocks::all(&self.experiment, &self.day(), &self.shard()).range()
    }

    /// Returns the ranges of all spans of the partition's blocks. Each range is a partition.
    pub fn spans(&self) -> impl Iterator<Item = KeyRange> {
        (0..SPAN_PARTITIONS)
            .map(|part| rows::BlockSpans::partition(&self.experiment, &self.day(), &self.shard(), &Ordinal(part)))
    }
}

/// Returns the beginning that the keys of a position's marks with spans share.
fn marks_of(place: &TraceKey) -> String {
    format!("{}#", place.text())
}

/// Checks whether a row is a mark, with or without spans.
#[must_use]
pub fn is_mark(key: &Key) -> bool {
    rows::TraceMark::parse(key).is_some() || rows::TraceMarkWithSpans::parse(key).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_begin_at_midnight() {
        for (time, day) in [(0, 0), (DAY_MS - 1, 0), (DAY_MS, 1), (-1, -1), (i64::MIN, -106_751_991_168)] {
            assert_eq!(day_of(time), day, "{time}");
        }
    }

    #[test]
    fn places_are_in_the_order_of_keys() {
        let partition = TracePartition { experiment: ExperimentId::DEFAULT, day: 0, shard: 0 };
        let ids = ["a", "a-b", "tr-0", "tr-00", "z"].map(|id| TraceId::parse(id).unwrap());
        let times = [i64::MIN, -5, 0, 7, i64::MAX];
        let places = times.iter().flat_map(|time| ids.iter().map(|id| TraceKey { time: *time, trace: id.clone() }));
        let mut places: Vec<_> = places.collect();
        places.sort();
        for key in [TracePartition::mark_key, TracePartition::block_key] {
            let keys: Vec<_> = places.iter().map(|place| key(&partition, place)).collect();
            assert!(keys.is_sorted());
            assert!(keys.iter().zip(&places).all(|(key, place)| TraceKey::of_key(key).as_ref() == Some(place)));
            assert!(keys.iter().all(|key| TracePartition::of_key(key) == Some(partition)));
        }
        let digests = [WideDigest(0), WideDigest(u128::MAX)];
        let marks_of = |place: &TraceKey| {
            let with_spans = digests.iter().map(|digest| partition.mark_with_spans_key(place, digest));
            std::iter::once(partition.mark_key(place)).chain(with_spans).collect::<Vec<_>>()
        };
        let marks: Vec<_> = places.iter().flat_map(marks_of).collect();
        assert!(marks.is_sorted() && marks.iter().all(is_mark));
        assert!(marks.iter().all(|key| TracePartition::of_key(key) == Some(partition)));
        for (at, place) in places.iter().enumerate() {
            let (after, until) = (partition.marks_after(place), partition.marks_until(place));
            for (key, of) in marks.iter().zip(places.iter().flat_map(|place| [place; 3])) {
                assert_eq!(TraceKey::of_key(key).as_ref(), Some(of));
                assert_eq!(after.contains(key), of > place, "{at} {key:?}");
                assert_eq!(until.contains(key), of <= place, "{at} {key:?}");
            }
        }
        assert!(!is_mark(&partition.block_key(&places[0])) && !is_mark(&partition.packing_key()));
        assert!(places.iter().all(|place| TraceKey::parse(&place.text()).as_ref() == Some(place)));
        assert_eq!(TracePartition::of_key(&partition.packing_key()), Some(partition));
        let spans = partition.spans_key(&WideDigest(u128::MAX));
        assert_eq!(partition.spans().filter(|range| range.contains(&spans)).count(), 1);
        assert!(partition.marks().contains(&partition.mark_key(&places[0])));
        assert!(!partition.marks().contains(&partition.block_key(&places[0])));
        assert!(partition.blocks().after(&places[3].text()).contains(&partition.block_key(&places[4])));
        assert!(!partition.blocks().after(&places[3].text()).contains(&partition.block_key(&places[3])));
    }
}
