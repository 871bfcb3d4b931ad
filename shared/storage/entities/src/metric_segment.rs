//! Segments: packed points of one metric, in history order.

use key_schema::{Ascending, Digest, Key, Name, key_parts, rows};
use mlflow_api::Result;
use table::{Item, bytes};

use crate::attributes::POINTS;
use crate::compressed_points;
use crate::layout::POINTER_LAYOUT;
use crate::points::{self, Point};
use crate::run_location::RunLocation;
use crate::unreadable_item::unreadable;

/// Minimum number of points of a metric that are sealed as a segment. A segment is an item of its
/// own and costs at least one write unit, while a waiting point costs its bytes whenever the
/// metrics document is written. The two costs are equal at about ten points.
pub const MIN_SEGMENT_POINTS: usize = 10;
/// Maximum number of points in one segment.
const MAX_SEGMENT_POINTS: usize = compressed_points::MAX_POINTS;

/// How the points of new segments are encoded. Both encodings can be read at any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SegmentEncoding {
    /// Without compression, with about 11 bytes per point. The only encoding that versions before
    /// layout 8 can read.
    Plain,
    /// Compressed, if that is shorter.
    #[default]
    Compressed,
}

impl SegmentEncoding {
    /// Returns the encoding that every process can read that uses a table with this layout.
    #[must_use]
    pub fn of_layout(layout: i64) -> Self {
        if layout >= POINTER_LAYOUT { Self::Compressed } else { Self::Plain }
    }
}

/// Start of a segment in history order: timestamp in ms and step of its first point.
pub type SegmentStart = (i64, i64);

/// Identity of a metric's segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentName {
    /// Start of the segment.
    pub place: SegmentStart,
    /// Digest of the segment's points, which does not depend on their encoding.
    pub digest: Digest,
    /// Number of points in the segment.
    pub points: usize,
}

impl SegmentName {
    /// Returns the segment's key.
    #[must_use]
    pub fn key(&self, at: &RunLocation, metric: &str) -> Key {
        let (timestamp, step) = self.place;
        rows::MetricSegment::key(&at.run, &Name::from(metric), &Ascending(timestamp), &Ascending(step), &self.digest)
    }
}

/// Splits points that are in history order into segments, each with its name, its item and its
/// points.
pub fn segments<'a>(
    at: &'a RunLocation,
    metric: &'a str,
    points: &'a [Point],
    encoding: SegmentEncoding,
) -> impl Iterator<Item = (SegmentName, Item, &'a [Point])> + 'a {
    points.chunks(MAX_SEGMENT_POINTS).filter_map(move |points| {
        let first = points.first()?;
        let packed = points::pack(points);
        let place = (first.timestamp, first.step);
        let name = SegmentName { place, digest: points::digest(&packed), points: points.len() };
        let content = match encoding {
            SegmentEncoding::Plain => packed,
            SegmentEncoding::Compressed => match compressed_points::compress(points) {
                Some(compressed) if compressed.len() < packed.len() => compressed,
                _ => packed,
            },
        };
        Some((name, Item::new(name.key(at, metric)).with(POINTS, bytes(content)), points))
    })
}

/// Reads a segment's points, in history order, and their digest.
///
/// # Errors
/// Returns an internal error if the points cannot be read, or are not the ones that were written.
pub fn read_segment(segment: &Item) -> Result<(Vec<Point>, Digest)> {
    let read = || {
        let digest = key_parts::points_of_segment(&segment.key()?.sk)?;
        Some((decode_segment(segment.bytes(POINTS)?, digest)?, digest))
    };
    read().ok_or_else(|| unreadable(segment, "a segment of points"))
}

/// Decodes the content of a segment, in either encoding. Returns `None` if the content does not
/// consist of the points with this digest, for example because it was truncated.
#[must_use]
pub fn decode_segment(content: &[u8], digest: Digest) -> Option<Vec<Point>> {
    // The digest is that of the points without compression, so it also tells the encodings apart.
    if points::digest(content) == digest {
        return points::unpack(content);
    }
    let points = compressed_points::decompress(content)?;
    (points::digest(&points::pack(&points)) == digest).then_some(points)
}

#[cfg(test)]
mod tests {
    use mlflow_api::{ExperimentId, RunId};

    use super::*;

    fn location() -> RunLocation {
        RunLocation { experiment: ExperimentId::DEFAULT, run: RunId::parse("run").unwrap() }
    }

    fn items(points: &[Point], encoding: SegmentEncoding) -> Vec<Item> {
        segments(&location(), "m", points, encoding).map(|(_, item, _)| item).collect()
    }

    #[test]
    fn both_encodings_have_the_same_keys_and_points() {
        let points: Vec<_> = (0..4_500).map(|step| Point::new(step, step / 2, 0.5)).collect();
        let [plain, compressed] =
            [SegmentEncoding::of_layout(7), SegmentEncoding::of_layout(8)].map(|encoding| items(&points, encoding));
        assert_eq!((plain.len(), compressed.len()), (3, 3));
        let mut read = Vec::new();
        for (plain, compressed) in plain.iter().zip(&compressed) {
            assert_eq!(plain.key(), compressed.key());
            // Earlier versions read the plain encoding only.
            assert_eq!(points::unpack(plain.bytes(POINTS).unwrap()).unwrap(), read_segment(compressed).unwrap().0);
            assert!(compressed.size() < plain.size() / 4);
            assert_eq!(read_segment(plain).unwrap(), read_segment(compressed).unwrap());
            read.extend(read_segment(compressed).unwrap().0);
        }
        assert_eq!(read, points);
    }

    #[test]
    fn a_damaged_segment_is_an_error() {
        let points: Vec<_> = (0..100).map(|step| Point::new(step * 3, step, 1.0 / 7.0)).collect();
        for encoding in [SegmentEncoding::Plain, SegmentEncoding::Compressed] {
            let [segment] = &items(&points, encoding)[..] else { panic!("not one segment") };
            let content = segment.bytes(POINTS).unwrap().to_vec();
            for at in 0..content.len() {
                let mut damaged = content.clone();
                damaged[at] ^= 0x10;
                for damaged in [damaged, content[..at].to_vec()] {
                    // Some bits of the format have no meaning.
                    let read = read_segment(&segment.clone().with(POINTS, bytes(damaged)));
                    assert!(read.is_err() || read.unwrap().0 == points, "{encoding:?} {at}");
                }
            }
        }
    }

    #[test]
    fn segments_that_would_become_longer_are_not_compressed() {
        let point = |step: i32| Point::new(i64::from(step * step), step.into(), f64::from(step).sqrt());
        let points: Vec<_> = (1..=10).map(point).collect();
        let [segment] = &items(&points, SegmentEncoding::Compressed)[..] else { panic!("not one segment") };
        assert_eq!(segment.bytes(POINTS).unwrap(), points::pack(&points));
    }
}
