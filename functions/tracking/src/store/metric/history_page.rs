//! A part of a metric's history: unpacked points, segments in the table and archived segments,
//! merged.

use entities::points::{self, Point};
use entities::{
    ArchivedSegment, RunLocation, RunMetrics, read_archived_segments, read_run_metric, read_segment, unreadable,
};
use key_schema::{Name, rows};
use mlflow_api::{Error, Result};
use serde::{Deserialize, Serialize};
use table::{Item, Query, ReadBytes};

use crate::store::Store;

/// Maximum number of bytes read for samples, or for histories of several runs. Even a sample can
/// require many bytes, because all points that no chart row covers have to be read.
const MAX_READ_BYTES: usize = 32 << 20;
/// Size of a point in bytes that counts towards [`MAX_READ_BYTES`]. It is that of a point which is not
/// compressed.
const POINT_BYTES: usize = 11;

/// Number of points that a segment is expected to have before one has been read. A call writes up to 1,000
/// points into one segment.
const USUAL_SEGMENT_POINTS: usize = 1_000;
/// Minimum number of segments that are requested beyond those that the page is expected to need.
const FURTHER_SEGMENTS: usize = 8;

/// Maximum number of bytes of archived segments that are kept in memory before their points are
/// merged.
const MAX_ARCHIVE_BATCH_BYTES: usize = 16 << 20;

/// The state of a metric without its segments, which are read separately.
pub(super) struct UnsealedMetric {
    pub(super) run: Item,
    pub(super) metrics: RunMetrics,
}

/// The position where a page of a history starts.
#[derive(Serialize, Deserialize)]
pub(super) struct HistoryCursor {
    /// The last point of the previous page. The page starts after it.
    last: CursorPoint,
    /// Sort key of the segment to resume at. Earlier segments have no points after `last`, unless
    /// more points have been packed since the previous page was read.
    segment: String,
    /// How many times the run had been packed when the previous page was read. If it has been
    /// packed again since then, newly packed points may be in a segment that starts before
    /// `segment`.
    packed: i64,
}

/// A point in a page token: timestamp, step and the bits of the value. The value is stored as bits
/// because JSON has no NaN.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct CursorPoint(i64, i64, u64);

impl From<Point> for CursorPoint {
    fn from(point: Point) -> Self {
        Self(point.timestamp, point.step, point.value.to_bits())
    }
}

impl From<CursorPoint> for Point {
    fn from(CursorPoint(timestamp, step, value): CursorPoint) -> Self {
        Self { timestamp, step, value: f64::from_bits(value) }
    }
}

/// A part of a history while it is read.
struct HistoryPage<'a> {
    store: &'a Store,
    at: &'a RunLocation,
    metric: &'a str,
    /// The last point of the previous page.
    last: Option<Point>,
    /// Sort key of the segment that the page starts with. `None` for the first one.
    first_segment: Option<String>,
    /// Maximum number of points on the page.
    limit: Option<usize>,
    read: Option<&'a ReadBytes>,
    points: Vec<Point>,
    /// The last point and the sort key of each segment that was read. The next page starts at the
    /// first segment that has points beyond this page.
    ends: Vec<(Point, String)>,
}

impl Store {
    /// Returns the points of a history from the start of a page up to an optional limit, and the
    /// position where the next page starts.
    ///
    /// Unpacked points are read before the segments in the table, and the list of archived segments
    /// after these. A point that is packed or archived in between is therefore found twice, but
    /// never missed. Segments are read in the order of their first points, and may overlap. Once
    /// the limit is reached, segments that start after the last point of the page are not needed.
    pub(super) async fn history_from(
        &self,
        at: &RunLocation,
        metric: &str,
        unsealed: &UnsealedMetric,
        from: Option<HistoryCursor>,
        limit: Option<usize>,
        read: Option<&ReadBytes>,
    ) -> Result<(Vec<Point>, Option<HistoryCursor>)> {
        let mut page = HistoryPage::begin(self, at, metric, unsealed, from)?;
        (page.limit, page.read) = (limit, read);
        page.read_table().await?;
        if unsealed.metrics.may_be_archived(&unsealed.run, metric)? {
            page.read_archive().await?;
        }
        Ok(page.finish(unsealed.metrics.packed()))
    }

    /// Returns the points of a history that are in the table. This is the whole history unless
    /// segments of it have been archived.
    pub(super) async fn history_in_table(
        &self,
        at: &RunLocation,
        metric: &str,
        unsealed: &UnsealedMetric,
        read: &ReadBytes,
    ) -> Result<Vec<Point>> {
        let mut page = HistoryPage::begin(self, at, metric, unsealed, None)?;
        page.read = Some(read);
        page.read_table().await?;
        Ok(page.finish(unsealed.metrics.packed()).0)
    }

    /// Reads the state of a metric except its segments. Returns `None` if the run does not exist.
    /// Takes one request, and one more if the run has a journal or a large number of metrics.
    pub(super) async fn unsealed(&self, at: &RunLocation, metric: &str) -> Result<Option<UnsealedMetric>> {
        let mut items = self.table.get_many(&[at.key(), at.metrics_key()]).await?;
        let Some(run) = items.remove(&at.key()) else { return Ok(None) };
        let first = items.remove(&at.metrics_key());
        let metrics = read_run_metric(&self.table, at, &run, first, metric).await?;
        Ok(Some(UnsealedMetric { run, metrics }))
    }
}

impl<'a> HistoryPage<'a> {
    /// Starts a page with the points that are in no segment.
    fn begin(
        store: &'a Store,
        at: &'a RunLocation,
        metric: &'a str,
        unsealed: &UnsealedMetric,
        from: Option<HistoryCursor>,
    ) -> Result<Self> {
        let last = from.as_ref().map(|cursor| Point::from(cursor.last));
        let first_segment = from.filter(|cursor| cursor.packed == unsealed.metrics.packed());
        let segments = rows::MetricSegment::all(&at.run).metric(&Name::from(metric)).range();
        let first_segment = first_segment.map(|cursor| cursor.segment);
        let first_segment = first_segment.filter(|segment| segments.place(segment).is_some());
        let (limit, read, ends) = (None, None, Vec::new());
        let mut page = Self { store, at, metric, last, first_segment, limit, read, points: Vec::new(), ends };
        page.add(unsealed.metrics.waiting(&unsealed.run, metric)?);
        Ok(page)
    }

    /// Adds the points that the previous page does not contain.
    fn add(&mut self, points: Vec<Point>) {
        let last = self.last;
        let is_after = |point: &Point| last.is_none_or(|last| point.by_time(&last).is_gt());
        self.points.extend(points.into_iter().filter(is_after));
    }

    /// Sorts the points that were read, and drops points beyond the page, except for one that shows
    /// that there is a next page. Returns the latter.
    fn cut(&mut self) -> Option<Point> {
        let limit = self.limit?;
        points::sort_by_time(&mut self.points);
        self.points.truncate(limit.saturating_add(1));
        self.points.get(limit).copied()
    }

    /// Reads segments in the table, until no later one can have a point of the page.
    async fn read_table(&mut self) -> Result<()> {
        let segments = rows::MetricSegment::all(&self.at.run).metric(&Name::from(self.metric)).range();
        let mut query = Query::of(match &self.first_segment {
            Some(segment) => segments.starting_at_key(segment),
            None => segments,
        });
        let mut count = 0;
        loop {
            if let Some(most) = self.segments_to_request(count) {
                query = query.limit(most);
            }
            let page = self.store.table.query_page(&query).await?;
            check_read_bytes(self.read)?;
            count += page.items.len();
            let mut newest = None;
            for segment in &page.items {
                let unpacked = read_counted_segment(segment, self.read)?;
                let key = segment.key().ok_or_else(|| unreadable(segment, "the key of a segment"))?;
                newest = unpacked.first().copied();
                self.ends.extend(unpacked.last().map(|last| (*last, key.sk)));
                self.add(unpacked);
            }
            let Some(next) = page.next else { return Ok(()) };
            // Reading stops only at a segment with a later time or step, because the keys of
            // segments do not contain values. A segment with equal time and step may have smaller
            // values.
            if let (Some(beyond), Some(newest)) = (self.cut(), newest)
                && (newest.timestamp, newest.step) > (beyond.timestamp, beyond.step)
            {
                return Ok(());
            }
            query = query.starting_at(next);
        }
    }

    /// Returns the number of segments that the rest of the page probably needs, and some more,
    /// because a segment after the page shows that no later one can have a point of the page. `count`
    /// segments have been read. Returns `None` if the page has no limit.
    fn segments_to_request(&self, count: usize) -> Option<usize> {
        let missing = self.limit?.saturating_add(1).saturating_sub(self.points.len());
        let points = self.points.len().checked_div(count).map_or(USUAL_SEGMENT_POINTS, |mean| mean.max(1));
        // If the expectation was wrong, each request reads twice as many segments as those before.
        Some(missing / points + FURTHER_SEGMENTS.max(count))
    }

    /// Reads archived segments, until no later one can have a point of the page.
    async fn read_archive(&mut self) -> Result<()> {
        let (store, at, metric) = (self.store, self.at, self.metric);
        let lists = read_archived_segments(&store.table, at, metric).await?;
        let mut segments: Vec<_> = lists.into_iter().flat_map(|list| list.segments).collect();
        if let Some(first) = &self.first_segment {
            segments.retain(|segment| segment.name.key(at, metric).sk >= *first);
        }
        segments.sort_unstable_by_key(|segment| (segment.name.place, segment.name.digest.0));
        let mut rest = segments.as_slice();
        while let Some((batch, later)) =
            rest.split_at_checked(self.batch_size(rest)).filter(|(batch, _)| !batch.is_empty())
        {
            rest = later;
            if let Some(read) = self.read {
                read.add(batch.iter().map(|segment| segment.length.max(segment.name.points * POINT_BYTES)).sum());
                check_read_bytes(self.read)?;
            }
            let read = metric_archive::read_segments(&store.archive, at, metric, batch).await?;
            for (segment, points) in batch.iter().zip(read) {
                self.ends.extend(points.last().map(|last| (*last, segment.name.key(at, metric).sk)));
                self.add(points);
            }
        }
        Ok(())
    }

    /// Returns how many of the archived segments to read next: as many as the page needs if none of
    /// their points is on it yet, and none if all of them start after the page.
    fn batch_size(&mut self, segments: &[ArchivedSegment]) -> usize {
        let beyond = self.cut();
        let starts_later = |segment: &ArchivedSegment| {
            beyond.is_some_and(|beyond| segment.name.place > (beyond.timestamp, beyond.step))
        };
        // The previous page may contain points of the first segment.
        let of_first = segments.first().map_or(0, |first| first.name.points);
        let needed = self.limit.map_or(usize::MAX, |limit| limit.saturating_add(of_first));
        let (mut points, mut bytes) = (0_usize, 0_usize);
        let is_needed = |segment: &&ArchivedSegment| {
            let is_needed = points <= needed && bytes <= MAX_ARCHIVE_BATCH_BYTES && !starts_later(segment);
            points = points.saturating_add(segment.name.points);
            bytes = bytes.saturating_add(segment.length);
            is_needed
        };
        segments.iter().take_while(is_needed).count()
    }

    /// Returns the points of the page and the position where the next page starts. `packed` is the
    /// number of times that the run has been packed.
    fn finish(mut self, packed: i64) -> (Vec<Point>, Option<HistoryCursor>) {
        let mut points = std::mem::take(&mut self.points);
        points::sort_by_time(&mut points);
        let Some(limit) = self.limit.filter(|limit| points.len() > *limit) else { return (points, None) };
        points.truncate(limit);
        let Some(last) = points.last().copied() else { return (points, None) };
        self.ends.sort_by(|(_, one), (_, other)| one.cmp(other));
        let segment = self.ends.into_iter().find(|(end, _)| end.by_time(&last).is_gt()).map(|(_, key)| key);
        let segment = segment.or(self.first_segment).unwrap_or_default();
        (points, Some(HistoryCursor { last: last.into(), segment, packed }))
    }
}

/// Reads the points of a segment, and counts them as if they were not compressed, because they take as
/// much memory in either case.
pub(super) fn read_counted_segment(segment: &Item, read: Option<&ReadBytes>) -> Result<Vec<Point>> {
    let (points, _) = read_segment(segment)?;
    if let Some(read) = read {
        read.add((points.len() * POINT_BYTES).saturating_sub(segment.size()));
        check_read_bytes(Some(read))?;
    }
    Ok(points)
}

/// Checks that the bytes read so far, for samples or for histories of several runs, do not exceed
/// the maximum.
pub(super) fn check_read_bytes(read: Option<&ReadBytes>) -> Result<()> {
    if read.is_none_or(|read| read.total() <= MAX_READ_BYTES) {
        return Ok(());
    }
    let megabytes = MAX_READ_BYTES >> 20;
    Err(Error::invalid(format!("The histories of these runs have more than {megabytes} MB. Ask for fewer runs.")))
}
