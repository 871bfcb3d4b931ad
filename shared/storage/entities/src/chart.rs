//! Chart rows: stored samples that charts of long histories are drawn from.
//!
//! A row of the first level represents about 1,000 points of a metric, made up of whole segments.
//! It holds 256 of these points, evenly spaced in step order. Four rows of one level are combined
//! into one row of the next level, which also has 256 points. A chart of a million points therefore
//! needs about ten rows. Rows are numbered in the order in which they are created and never change,
//! so a row's number determines its key.

use std::ops::Range;

use key_schema::{Digest, Key, Name, Ordinal, rows};
use mlflow_api::Result;
use table::{Item, bytes, number};

use crate::attributes::{DIGESTS, PACKED, POINTS, SPAN};
use crate::metric_segment::SegmentStart;
use crate::points::{self, Point, read_signed, write_signed};
use crate::run_location::RunLocation;
use crate::unreadable_item::unreadable;

/// Minimum number of points that uncharted segments must hold before they become a chart row.
pub const MIN_ROW_SOURCE_POINTS: usize = 1_000;
/// Maximum number of points in a row. With times and steps, 256 points take less than 4 KB, which
/// is one read unit.
pub const MAX_ROW_POINTS: usize = 256;
/// Number of rows that are combined into one row of the next level.
pub const ROWS_PER_PARENT: u32 = 4;

/// A point, with the number of points of the history that it represents.
pub type WeightedPoint = (Point, u64);

/// Position of a row among those of a metric: its level, starting at 1, and its number there,
/// starting at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowNumber {
    /// Level, starting at 1.
    pub level: u32,
    /// Number within the level, starting at 0.
    pub number: u32,
}

impl RowNumber {
    /// Returns the row's key.
    #[must_use]
    pub fn key(&self, at: &RunLocation, metric: &str) -> Key {
        rows::MetricChart::key(&at.run, &Name::from(metric), &Ordinal(self.level), &Ordinal(self.number))
    }

    /// Returns the rows that this row was combined from. Rows of the first level have none.
    pub fn parts(self) -> impl Iterator<Item = Self> {
        let parts = if self.level > 1 { ROWS_PER_PARENT } else { 0 };
        (0..parts).map(move |part| Self { level: self.level - 1, number: self.number * ROWS_PER_PARENT + part })
    }

    /// Returns the row of the next level that this row completes, if it is the last of its group.
    #[must_use]
    pub fn completed(self) -> Option<Self> {
        let is_last = self.number % ROWS_PER_PARENT == ROWS_PER_PARENT - 1;
        is_last.then_some(Self { level: self.level + 1, number: self.number / ROWS_PER_PARENT })
    }
}

/// Returns the fewest rows that together cover a history with `rows` rows of the first level. Most
/// of them belong to the coarsest level that has at least `at_least` rows. Up to three rows of each
/// finer level follow. Rows are ordered by creation.
#[must_use]
pub fn cover(rows: u32, at_least: u32) -> Vec<RowNumber> {
    let mut level = 1;
    let mut size = 1_u32;
    while let Some(next) = size.checked_mul(ROWS_PER_PARENT)
        && rows / next >= at_least.max(1)
    {
        (level, size) = (level + 1, next);
    }
    let (mut cover, mut done) = (Vec::new(), 0);
    while level > 0 {
        let numbers: Range<u32> = done / size..rows / size;
        done = numbers.end * size;
        cover.extend(numbers.map(|number| RowNumber { level, number }));
        (level, size) = (level - 1, (size / ROWS_PER_PARENT).max(1));
    }
    cover
}

/// A chart row.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartRow {
    /// Level and number of the row.
    pub number: RowNumber,
    /// The row's points in step order, including the first and the last point that the row
    /// represents.
    pub points: Vec<Point>,
    /// Number of points that the row represents.
    pub represented_points: u64,
    /// Exclusive lower bound: the row covers segments that begin after this position. `None` if it
    /// covers the history from its beginning.
    pub after: Option<SegmentStart>,
    /// Inclusive upper bound of the covered segments. If it equals `after`, the row holds all
    /// points of delayed segments, which arrived when later segments were already in rows.
    pub through: SegmentStart,
    /// Digests of the covered segments. Only rows of the first level have them.
    pub digests: Vec<Digest>,
    /// Number of times that points had been packed into the metric's document when the row was
    /// created.
    pub packed: i64,
}

impl ChartRow {
    /// Samples points of the history for a new row. Returns the row's points and the number of
    /// points that they represent.
    #[must_use]
    pub fn points_of(mut points: Vec<Point>) -> (Vec<Point>, u64) {
        points.sort_unstable_by(Point::by_step);
        points.dedup();
        let count = u64::try_from(points.len()).unwrap_or(u64::MAX);
        let points: Vec<_> = points.into_iter().map(|point| (point, 1)).collect();
        (sample(&points, MAX_ROW_POINTS), count)
    }

    /// Combines the parts of a row of a higher level. Returns `None` if there are no parts.
    #[must_use]
    pub fn of_parts(number: RowNumber, parts: &[Self], packed: i64) -> Option<Self> {
        let (first, last) = (parts.first()?, parts.last()?);
        let mut points: Vec<_> = parts.iter().flat_map(Self::weighted).collect();
        points.sort_by(|(one, _), (other, _)| one.by_step(other));
        Some(Self {
            number,
            points: sample(&points, MAX_ROW_POINTS),
            represented_points: parts.iter().map(|part| part.represented_points).sum(),
            after: first.after,
            through: last.through,
            digests: Vec::new(),
            packed,
        })
    }

    /// Returns the row's points, each with the number of points that it represents.
    pub fn weighted(&self) -> impl Iterator<Item = WeightedPoint> {
        let count = u64::try_from(self.points.len()).unwrap_or(u64::MAX).max(1);
        let (whole, more) = (self.represented_points / count, self.represented_points % count);
        // If the division leaves a remainder, it is spread evenly over the row's points.
        let before = move |point: u64| {
            whole * point + u64::try_from(u128::from(more) * u128::from(point) / u128::from(count)).unwrap_or(0)
        };
        (0..).zip(&self.points).map(move |(number, point)| (*point, before(number + 1) - before(number)))
    }

    /// Checks whether the row contains every point that it represents.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        u64::try_from(self.points.len()).is_ok_and(|count| count == self.represented_points)
    }

    /// Checks whether any of the represented points may lie between two steps, both inclusive.
    #[must_use]
    pub fn overlaps(&self, start: i64, end: i64) -> bool {
        let ends = self.points.first().zip(self.points.last());
        ends.is_some_and(|(first, last)| first.step <= end && last.step >= start)
    }

    /// Estimates how many of the represented points lie between two steps, both inclusive.
    #[must_use]
    pub fn about(&self, start: i64, end: i64) -> u64 {
        self.weighted().filter(|(point, _)| (start..=end).contains(&point.step)).map(|(_, weight)| weight).sum()
    }

    /// Returns the row as an item.
    #[must_use]
    pub fn item(&self, at: &RunLocation, metric: &str) -> Item {
        let mut span = Vec::new();
        write_signed(&mut span, i64::try_from(self.points.len()).unwrap_or(i64::MAX));
        write_signed(&mut span, i64::try_from(self.represented_points).unwrap_or(i64::MAX));
        for (timestamp, step) in std::iter::once(self.through).chain(self.after) {
            write_signed(&mut span, timestamp);
            write_signed(&mut span, step);
        }
        let item = Item::new(self.number.key(at, metric))
            .with(POINTS, bytes(points::pack(&self.points)))
            .with(SPAN, bytes(span))
            .with(PACKED, number(self.packed));
        if self.digests.is_empty() {
            return item;
        }
        item.with(DIGESTS, bytes(self.digests.iter().flat_map(|digest| digest.0.to_le_bytes()).collect()))
    }

    /// Reads a row from its item.
    ///
    /// # Errors
    /// Returns an internal error if the row cannot be read.
    pub fn read(number: RowNumber, item: &Item) -> Result<Self> {
        Self::from_item(number, item).ok_or_else(|| unreadable(item, "a row of a chart"))
    }

    fn from_item(number: RowNumber, item: &Item) -> Option<Self> {
        let mut span = item.bytes(SPAN)?;
        let points = points::unpack(item.bytes(POINTS)?)?;
        let count = usize::try_from(read_signed(&mut span)?).ok()?;
        let stands_for = u64::try_from(read_signed(&mut span)?).ok()?;
        let through = (read_signed(&mut span)?, read_signed(&mut span)?);
        let after = match span {
            [] => None,
            _ => Some((read_signed(&mut span)?, read_signed(&mut span)?)),
        };
        let digests = if item.has(DIGESTS) { item.bytes(DIGESTS)? } else { &[] };
        let (digests, rest) = digests.as_chunks();
        let digests = digests.iter().map(|digest| Digest(u64::from_le_bytes(*digest))).collect();
        let is_whole = points.len() == count && !points.is_empty() && span.is_empty() && rest.is_empty();
        let packed = item.get(PACKED)?.into();
        is_whole.then_some(Self { number, points, represented_points: stands_for, after, through, digests, packed })
    }
}

/// Samples points that are in step order: takes the first point of each of `count` evenly filled
/// buckets, and the very last point. Buckets are filled like those of SQL's `NTILE`. If the buckets
/// alone already give `count` points, the very last point replaces the point of the last bucket. A
/// weighted point fills its bucket as much as all the points that it represents.
#[must_use]
pub fn sample(points: &[WeightedPoint], count: usize) -> Vec<Point> {
    let Some((last, _)) = points.last() else { return Vec::new() };
    let count = count.max(1);
    let total: u64 = points.iter().map(|(_, weight)| weight).sum();
    let buckets = u64::try_from(count).unwrap_or(u64::MAX).min(total.max(1));
    let (size, larger) = (total / buckets, total % buckets);
    let mut starts = (0..buckets).map(|bucket| bucket * size + bucket.min(larger)).peekable();
    let (mut sample, mut seen) = (Vec::new(), 0);
    for (point, weight) in points {
        seen += weight;
        // Whether any bucket begins among the points that this point represents.
        let mut begins = false;
        while starts.next_if(|start| *start < seen).is_some() {
            begins = true;
        }
        if begins {
            sample.push(*point);
        }
    }
    if sample.last() != Some(last) {
        if sample.len() >= count {
            sample.pop();
        }
        sample.push(*last);
    }
    sample
}

#[cfg(test)]
mod tests;
