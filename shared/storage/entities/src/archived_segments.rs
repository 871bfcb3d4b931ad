//! Archived segments: segments of a long history whose points were moved to the archive. An item in
//! the run's partition lists them, so that a reader can merge them with the segments that are left
//! in the table, and request only the parts of an object that it needs.
//!
//! The crate `metric-archive` writes these items and reads the objects.

use key_schema::{Digest, Key, Name, Ordinal, key_parts, rows};
use mlflow_api::{ArchiveObject, Result};
use table::{Item, Query, Table, bytes, number};

use crate::attributes::{ARCHIVED_SEGMENTS, NEWEST, OBJECT};
use crate::metric_segment::SegmentName;
use crate::points::{read_signed, write_signed};
use crate::run_location::RunLocation;
use crate::unreadable_item::unreadable;

/// Number of points in chart rows up to which a history is never archived. Charts of such a history
/// are drawn from the complete history, and charts do not read the archive.
pub const MAX_UNARCHIVED_POINTS: u64 = 10_000;

/// A segment in an object of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchivedSegment {
    /// The segment.
    pub name: SegmentName,
    /// Object that contains the segment's content.
    pub object: ArchiveObject,
    /// Position of the content in the object.
    pub offset: u64,
    /// Length of the content in bytes.
    pub length: usize,
}

/// The segments of one metric in one object of the archive. The object is the concatenation of
/// their contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedSegments {
    /// Number of the item among those of the metric, starting at 0.
    pub number: u32,
    /// The object.
    pub object: ArchiveObject,
    /// Timestamp of the latest point, in ms.
    pub newest: i64,
    /// The segments, in the order of the object.
    pub segments: Vec<ArchivedSegment>,
}

impl ArchivedSegments {
    /// Creates a list without segments.
    #[must_use]
    pub fn new(number: u32, object: ArchiveObject) -> Self {
        Self { number, object, newest: i64::MIN, segments: Vec::new() }
    }

    /// Appends a segment, given the length of its content in bytes, and the timestamp of its latest
    /// point in ms.
    pub fn push(&mut self, name: SegmentName, length: usize, newest: i64) {
        let end = |segment: &ArchivedSegment| segment.offset + u64::try_from(segment.length).unwrap_or(u64::MAX);
        let offset = self.segments.last().map_or(0, end);
        self.segments.push(ArchivedSegment { name, object: self.object, offset, length });
        self.newest = self.newest.max(newest);
    }

    /// Returns the key of a metric's item with this number.
    #[must_use]
    pub fn key(at: &RunLocation, metric: &str, number: u32) -> Key {
        rows::ArchivedSegments::key(&at.run, &Name::from(metric), &Ordinal(number))
    }

    /// Returns the item.
    #[must_use]
    pub fn item(&self, at: &RunLocation, metric: &str) -> Item {
        let mut packed = Vec::new();
        let (mut timestamp, mut step) = (0_i64, 0_i64);
        for ArchivedSegment { name, length, .. } in &self.segments {
            write_signed(&mut packed, name.place.0.wrapping_sub(timestamp));
            write_signed(&mut packed, name.place.1.wrapping_sub(step));
            (timestamp, step) = name.place;
            packed.extend_from_slice(&name.digest.0.to_le_bytes());
            write_signed(&mut packed, i64::try_from(name.points).unwrap_or(i64::MAX));
            write_signed(&mut packed, i64::try_from(*length).unwrap_or(i64::MAX));
        }
        Item::new(Self::key(at, metric, self.number))
            .with(OBJECT, bytes(self.object.number().to_be_bytes().to_vec()))
            .with(ARCHIVED_SEGMENTS, bytes(packed))
            .with(NEWEST, number(self.newest))
    }

    /// Reads the item.
    ///
    /// # Errors
    /// Returns an internal error if it cannot be read.
    pub fn read(item: &Item) -> Result<Self> {
        Self::from_item(item).ok_or_else(|| unreadable(item, "archived segments"))
    }

    fn from_item(item: &Item) -> Option<Self> {
        let (key, object) = object_of_segments(item)?;
        let mut archived = Self::new(key_parts::number_of_archived_segments(&key.sk)?, object);
        let mut rest = item.bytes(ARCHIVED_SEGMENTS)?;
        let (mut timestamp, mut step) = (0_i64, 0_i64);
        while !rest.is_empty() {
            timestamp = timestamp.wrapping_add(read_signed(&mut rest)?);
            step = step.wrapping_add(read_signed(&mut rest)?);
            let (digest, after) = rest.split_first_chunk()?;
            rest = after;
            let points = usize::try_from(read_signed(&mut rest)?).ok()?;
            let length = usize::try_from(u32::try_from(read_signed(&mut rest)?).ok()?).ok()?;
            let digest = Digest(u64::from_le_bytes(*digest));
            archived.push(SegmentName { place: (timestamp, step), digest, points }, length, i64::MIN);
        }
        archived.newest = item.get(NEWEST)?;
        Some(archived)
    }
}

/// Returns the key of an item with archived segments, and the object that it refers to. Returns
/// `None` for any other item.
#[must_use]
pub fn object_of_segments(item: &Item) -> Option<(Key, ArchiveObject)> {
    let key = item.key()?;
    key_parts::number_of_archived_segments(&key.sk)?;
    let name = item.bytes(OBJECT)?.try_into().ok()?;
    Some((key, ArchiveObject::new(u128::from_be_bytes(name))))
}

/// Reads the items with a metric's archived segments. Takes one request per MB. An item takes less
/// than 20 bytes per segment, and a segment of a long history usually has 1,000 points or more.
///
/// Archived segments are listed before they are deleted from the table. A reader that needs all
/// points therefore has to read the segments in the table first.
///
/// # Errors
/// Returns failures of the table, and an internal error if an item cannot be read.
pub async fn read_archived_segments(table: &Table, at: &RunLocation, metric: &str) -> Result<Vec<ArchivedSegments>> {
    let range = rows::ArchivedSegments::all(&at.run).metric(&Name::from(metric)).range();
    table.query(Query::of(range)).await?.iter().map(ArchivedSegments::read).collect()
}

#[cfg(test)]
mod tests {
    use mlflow_api::{ExperimentId, RunId};
    use proptest::prelude::*;

    use super::*;

    fn location() -> RunLocation {
        RunLocation { experiment: ExperimentId::DEFAULT, run: RunId::parse("run").unwrap() }
    }

    fn segment() -> impl Strategy<Value = (SegmentName, usize)> {
        let name = (any::<(i64, i64)>(), any::<u64>(), 0_usize..1 << 40);
        (
            name.prop_map(|(place, digest, points)| SegmentName { place, digest: Digest(digest), points }),
            0_usize..1 << 30,
        )
    }

    proptest! {
        #[test]
        fn it_comes_back(
            segments in proptest::collection::vec(segment(), 0..30),
            object: u128,
            newest: i64,
            number: u32,
            metric in "\\PC{1,300}",
        ) {
            let mut archived = ArchivedSegments::new(number, ArchiveObject::new(object));
            for (name, length) in segments {
                archived.push(name, length, newest);
            }
            let item = archived.item(&location(), &metric);
            prop_assert_eq!(ArchivedSegments::read(&item).unwrap(), archived);
        }

        #[test]
        fn foreign_bytes_do_no_harm(foreign in proptest::collection::vec(any::<u8>(), 0..60)) {
            let item = ArchivedSegments::new(0, ArchiveObject::new(1)).item(&location(), "m");
            let _ = ArchivedSegments::read(&item.with(ARCHIVED_SEGMENTS, bytes(foreign)));
        }
    }

    #[test]
    fn contents_follow_each_other() {
        let mut archived = ArchivedSegments::new(0, ArchiveObject::new(1));
        for (time, length) in [(1, 30), (2, 0), (3, 12), (4, 1)] {
            archived.push(SegmentName { place: (time, 0), digest: Digest(7), points: 10 }, length, time);
        }
        assert_eq!(archived.segments.iter().map(|segment| segment.offset).collect::<Vec<_>>(), [0, 30, 30, 42]);
        assert_eq!(archived.newest, 4);
    }

    #[test]
    fn a_segment_takes_few_bytes() {
        let mut archived = ArchivedSegments::new(0, ArchiveObject::new(1));
        for number in 0..1_000 {
            let place = (1_700_000_000_000 + number * 2_000_000, number * 2_000);
            archived.push(SegmentName { place, digest: Digest(u64::MAX), points: 2_000 }, 22_000, place.0);
        }
        assert!(archived.item(&location(), "loss").size() < 20_000);
    }
}
