//! Reads archived segments.

use artifact_store::{Archive, ArchiveError};
use bytes::Bytes;
use entities::points::Point;
use entities::{ArchivedSegment, RunLocation, decode_segment, read_archived_segments};
use futures::stream::{self, StreamExt, TryStreamExt};
use mlflow_api::{ArchiveObject, Error, ErrorCode, Result};
use table::Table;

/// Number of ranges that are requested concurrently.
const CONCURRENCY: usize = 4;
/// Maximum size of a range, in bytes.
const MAX_RANGE_BYTES: usize = if Archive::MAX_READ_BYTES < 4 << 20 { Archive::MAX_READ_BYTES } else { 4 << 20 };

/// Reads the points of all archived segments of a metric, in no particular order. Takes the requests
/// of [`read_archived_segments`] and [`read_segments`].
///
/// # Errors
/// Returns failures of the table, and the errors of [`read_segments`].
pub async fn read_archived_points(
    table: &Table,
    archive: &Archive,
    at: &RunLocation,
    metric: &str,
) -> Result<Vec<Point>> {
    let lists = read_archived_segments(table, at, metric).await?;
    let segments: Vec<_> = lists.into_iter().flat_map(|list| list.segments).collect();
    Ok(read_segments(archive, at, metric, &segments).await?.into_iter().flatten().collect())
}

/// Adjacent segments of an object, which one request reads.
struct SegmentRange<'a> {
    object: ArchiveObject,
    offset: u64,
    length: usize,
    segments: &'a [ArchivedSegment],
}

/// Reads the points of archived segments of a metric, in the order of `segments`. Takes one request
/// to the archive per up to 4 MB of segments that are adjacent both in the slice and in their
/// object.
///
/// # Errors
/// Returns an error that names the run and the metric if an object is missing or incomplete, or
/// has different content. Returns an error that clients retry if the archive is unavailable.
pub async fn read_segments(
    archive: &Archive,
    at: &RunLocation,
    metric: &str,
    segments: &[ArchivedSegment],
) -> Result<Vec<Vec<Point>>> {
    let reads = ranges_of(segments).into_iter().map(|range| async move {
        let content = archive.read(range.object, range.offset, range.length).await;
        let content = content.map_err(|error| failure(at, metric, error))?;
        points_of(&range, &content).ok_or_else(|| lost(at, metric, "an object has different content"))
    });
    let read: Vec<Vec<Vec<Point>>> =
        stream::iter(reads.collect::<Vec<_>>()).buffered(CONCURRENCY).try_collect().await?;
    Ok(read.into_iter().flatten().collect())
}

/// Groups adjacent segments.
fn ranges_of(segments: &[ArchivedSegment]) -> Vec<SegmentRange<'_>> {
    let (mut ranges, mut rest) = (Vec::new(), segments);
    while let Some(first) = rest.first() {
        let (mut count, mut length) = (1, first.length);
        while let Some(next) = rest.get(count)
            && next.object == first.object
            && u64::try_from(length).is_ok_and(|length| next.offset == first.offset + length)
            && length + next.length <= MAX_RANGE_BYTES
        {
            count += 1;
            length += next.length;
        }
        let (segments, others) = rest.split_at(count);
        ranges.push(SegmentRange { object: first.object, offset: first.offset, length, segments });
        rest = others;
    }
    ranges
}

/// Splits the content of a range into segments. Returns `None` if a segment is not the one that was
/// archived.
fn points_of(range: &SegmentRange<'_>, content: &Bytes) -> Option<Vec<Vec<Point>>> {
    let mut rest: &[u8] = content;
    let mut all = Vec::with_capacity(range.segments.len());
    for segment in range.segments {
        let (content, after) = rest.split_at_checked(segment.length)?;
        rest = after;
        all.push(decode_segment(content, segment.name.digest)?);
    }
    Some(all)
}

fn failure(at: &RunLocation, metric: &str, error: ArchiveError) -> Error {
    if error.is_of_object() { lost(at, metric, &error.to_string()) } else { error.into() }
}

fn lost(at: &RunLocation, metric: &str, cause: &str) -> Error {
    let message = format!(
        "The history of metric '{metric}' of run {} cannot be read, because an object of the archive is missing or damaged.",
        at.run
    );
    Error { cause: Some(cause.to_string()), ..Error::new(ErrorCode::InternalError, message) }
}

#[cfg(test)]
mod tests {
    use entities::SegmentName;
    use key_schema::Digest;

    use super::*;

    fn segment(object: u128, offset: u64, length: usize) -> ArchivedSegment {
        let name = SegmentName { place: (0, 0), digest: Digest(0), points: 10 };
        ArchivedSegment { name, object: ArchiveObject::new(object), offset, length }
    }

    #[test]
    fn adjacent_segments_are_read_together() {
        let half = MAX_RANGE_BYTES / 2;
        let long = u64::try_from(half).unwrap();
        let segments = [
            segment(1, 0, 10),
            segment(1, 10, 20),
            segment(1, 40, 5),
            segment(2, 45, half),
            segment(2, 45 + long, half),
            segment(2, 45 + 2 * long, half),
            segment(2, 45 + 3 * long, half),
            segment(2, 45 + 4 * long, 1),
        ];
        let ranges = ranges_of(&segments);
        let ranges: Vec<_> = ranges.iter().map(|range| (range.segments.len(), range.offset, range.length)).collect();
        let expected = [(2, 0, 30), (1, 40, 5), (2, 45, 2 * half), (2, 45 + 2 * long, 2 * half), (1, 45 + 4 * long, 1)];
        assert_eq!(ranges, expected);
        assert!(ranges_of(&[]).is_empty());
    }
}
