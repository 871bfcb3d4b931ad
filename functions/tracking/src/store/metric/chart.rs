//! Charts: samples of metric histories. Samples of long histories are taken from chart rows
//! ([`entities::chart`]). Charts never read the archive, because chart rows represent all archived
//! segments.

use std::collections::HashMap;

use access::Granted;
use entities::chart::{ChartRow, MAX_ROW_POINTS, RowNumber, WeightedPoint, cover, sample};
use entities::points::Point;
use entities::{ChartProgress, MAX_UNARCHIVED_POINTS, RunLocation, SegmentStart, read_archived_segments, unreadable};
use futures::TryStreamExt;
use futures::future::try_join;
use key_schema::{Key, Name, ranges};
use mlflow_api::Result;
use mlflow_api::response_size::{MAX_JSON_BYTES, too_long};
use mlflow_api::tracking::Metric;
use table::{Item, Query, ReadBytes};

use super::history::{RequestedRun, metric_of, points_in_response, points_of_runs};
use super::history_page::{UnsealedMetric, check_read_bytes, read_counted_segment};
use crate::store::Store;

/// Maximum number of points in a history, or in the requested range of steps, for which a sample is
/// taken from all points.
const MAX_EXACT_POINTS: u64 = MAX_UNARCHIVED_POINTS;
/// Maximum number of chart rows read for a range of steps. More rows than this can overlap the
/// range only if steps do not increase with time. In that case, the whole history is read instead,
/// or, if it is archived, as few rows as necessary.
const MAX_ROWS: usize = 400;
/// Batch size for reading late segments. A batch is one request.
const LATE_BATCH_SIZE: usize = 100;

/// The range of steps that a sample covers. Both ends are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRange {
    /// First step.
    pub start: i64,
    /// Last step.
    pub end: i64,
}

/// The chart rows for a range of steps.
struct NarrowedRows {
    rows: Vec<ChartRow>,
    /// Whether the next finer level has too many rows.
    is_too_wide: bool,
}

/// A request for the chart of one metric of one run.
struct ChartRequest<'a> {
    store: &'a Store,
    at: &'a Granted<RunLocation>,
    metric: &'a str,
    range: Option<SampleRange>,
    max_results: usize,
    read: ReadBytes,
}

impl Store {
    /// Returns a sample of each run's history, in the order of steps. A sample has at most
    /// `max_results` evenly spaced points per run, including the first and the last. For histories
    /// of up to about 10,000 points, the sample equals MLflow's. For longer histories, the points
    /// are only approximately evenly spaced, and a sample of a range of steps may lack the ends of
    /// the range. If segments of a range of up to 10,000 points have been archived or deleted, their
    /// points are taken from chart rows, which have about a quarter of them.
    ///
    /// A sample of an entire long history takes three requests, and one read unit per 200 points of
    /// the history. A sample of a range takes up to one more request per level of chart rows.
    ///
    /// # Errors
    /// Returns an error if more than 32 MB are read, or if the samples exceed the maximum size of a
    /// response.
    pub async fn metric_history_sample(
        &self,
        runs: Vec<RequestedRun>,
        metric: &str,
        range: Option<SampleRange>,
        max_results: usize,
    ) -> Result<Vec<Metric>> {
        let (read, most) = (ReadBytes::default(), points_in_response(metric)?);
        let store = Self { table: self.table.counting(&read), ..self.clone() };
        let name = metric.to_owned();
        // While the sample of a run is taken, the next runs are read concurrently. Only the samples
        // of those runs are kept in memory, not their histories.
        let mut samples = std::pin::pin!(points_of_runs(runs, move |at| {
            let (store, metric, read) = (store.clone(), name.clone(), read.clone());
            async move { ChartRequest { store: &store, at: &at, metric: &metric, range, max_results, read }.sample().await }
        }));
        let mut all = Vec::new();
        while let Some((run_id, sample)) = samples.try_next().await? {
            if all.len() + sample.len() > most {
                return Err(too_long("The sample", MAX_JSON_BYTES));
            }
            all.extend(sample.into_iter().map(|point| metric_of(metric, point, Some(&run_id))));
        }
        Ok(all)
    }
}

impl ChartRequest<'_> {
    /// Returns at most `max_results` points, in the order of steps.
    async fn sample(&self) -> Result<Vec<Point>> {
        let Some(unsealed) = self.store.unsealed(self.at, self.metric).await? else { return Ok(Vec::new()) };
        let charted = unsealed.metrics.charted(self.metric)?;
        let drawn =
            if charted.points > MAX_EXACT_POINTS { self.points_of_rows(&unsealed, &charted).await? } else { None };
        let mut points: Vec<WeightedPoint> = if let Some(points) = drawn {
            points
        } else {
            let whole = self.store.history_in_table(self.at, self.metric, &unsealed, &self.read);
            whole.await?.into_iter().map(|point| (point, 1)).collect()
        };
        points.retain(|(point, _)| self.range.is_none_or(|range| (range.start..=range.end).contains(&point.step)));
        // Among duplicates of a point, the copy that represents more points is kept.
        points.sort_unstable_by(|(one, weight), (other, more)| one.by_step(other).then(more.cmp(weight)));
        points.dedup_by(|(one, _), (other, _)| one == other);
        Ok(sample(&points, self.max_results))
    }

    /// Returns points that represent the whole history, or the requested range of it. They come
    /// from chart rows, from segments that no chart row covers yet, and from points that have not
    /// been packed into segments. If too many chart rows would have to be read, returns the whole
    /// history. Returns `None` if there are no chart rows.
    async fn points_of_rows(
        &self,
        unsealed: &UnsealedMetric,
        charted: &ChartProgress,
    ) -> Result<Option<Vec<WeightedPoint>>> {
        let Some(through) = charted.through() else { return Ok(None) };
        let top =
            cover(charted.rows, self.sufficient_points().div_ceil(u32::try_from(MAX_ROW_POINTS).unwrap_or(u32::MAX)));
        let (rows, tail) = try_join(self.cover_rows(&top, through), self.segments(Some(through), None)).await?;
        let mut points = tail;
        points.extend(unsealed.metrics.waiting(&unsealed.run, self.metric)?);
        points.extend(self.late_points(unsealed, through).await?);
        let NarrowedRows { rows, is_too_wide } = self.narrow_to_range(rows).await?;
        if is_too_wide {
            // The segments are read before the list of archived segments, so that segments that are
            // archived in between are noticed.
            let whole = self.store.history_in_table(self.at, self.metric, unsealed, &self.read).await?;
            if read_archived_segments(&self.store.table, self.at, self.metric).await?.is_empty() {
                return Ok(Some(whole.into_iter().map(|point| (point, 1)).collect()));
            }
        }
        let drawn: u64 = rows.iter().map(|row| self.estimate_points(row)).sum();
        let is_exact =
            self.range.is_some() && drawn <= MAX_EXACT_POINTS && rows.iter().all(|row| row.number.level == 1);
        let (exact, mut thinned): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| is_exact && !row.is_whole());
        let count = points.len();
        for (after, through) in spans(&exact) {
            points.extend(self.segments(after, Some(through)).await?);
        }
        let expected: u64 = exact.iter().map(|row| row.represented_points).sum();
        if u64::try_from(points.len() - count).is_ok_and(|found| found < expected) {
            // Segments whose points the chart rows still represent may have been archived, or
            // removed by a retention policy, so the points of the rows are returned too.
            thinned.extend(exact);
        }
        let points = points.into_iter().map(|point| (point, 1));
        Ok(Some(points.chain(thinned.iter().flat_map(ChartRow::weighted)).collect()))
    }

    /// Returns how many points are enough for an approximately evenly spaced sample.
    fn sufficient_points(&self) -> u32 {
        u32::try_from(self.max_results.saturating_mul(3) / 2).unwrap_or(u32::MAX)
    }

    /// Estimates how many of the points that a chart row represents are in the requested range.
    fn estimate_points(&self, row: &ChartRow) -> u64 {
        self.range.map_or(row.represented_points, |range| row.about(range.start, range.end))
    }

    /// Narrows the chart rows to those with points in the range. The coarsest rows are replaced,
    /// level by level, by the finer rows that they were made from, until there are enough points in
    /// the range. If the range has few points, this continues down to the first level. Takes one
    /// request per level. Stops before a level that has too many rows.
    async fn narrow_to_range(&self, mut rows: Vec<ChartRow>) -> Result<NarrowedRows> {
        let Some(range) = self.range else { return Ok(NarrowedRows { rows, is_too_wide: false }) };
        loop {
            rows.retain(|row| row.overlaps(range.start, range.end));
            let coarsest = rows.iter().map(|row| row.number.level).max().unwrap_or(1);
            let drawn: u64 = rows.iter().map(|row| self.estimate_points(row)).sum();
            let is_drawn = |point: &&Point| (range.start..=range.end).contains(&point.step);
            let count = rows.iter().flat_map(|row| &row.points).filter(is_drawn).count();
            let is_scarce = u32::try_from(count).is_ok_and(|count| count < self.sufficient_points());
            if coarsest == 1 || (drawn > MAX_EXACT_POINTS && !is_scarce) {
                return Ok(NarrowedRows { rows, is_too_wide: false });
            }
            let (coarse, fine): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.number.level == coarsest);
            let parts: Vec<_> = coarse.iter().flat_map(|row| row.number.parts()).collect();
            if parts.len() > MAX_ROWS {
                return Ok(NarrowedRows { rows: coarse.into_iter().chain(fine).collect(), is_too_wide: true });
            }
            let spans: HashMap<_, _> = coarse.iter().map(|row| (row.number, (row.after, row.through))).collect();
            let read = self.rows(&parts, |read| {
                // The finer rows are consistent with the coarser ones if each group of four covers
                // exactly the segments of the row that was made from the group.
                read.chunk_by(|one, other| one.number.number / 4 == other.number.number / 4).all(|parts| {
                    let above = parts.last().and_then(|last| last.number.completed());
                    let span = parts.first().zip(parts.last()).map(|(first, last)| (first.after, last.through));
                    above.and_then(|above| spans.get(&above)) == span.as_ref() && is_chain(parts)
                })
            });
            let read = read.await?;
            rows = fine;
            rows.extend(read);
        }
    }

    /// Reads the chart rows that together cover all segments up to `through`.
    async fn cover_rows(&self, top: &[RowNumber], through: SegmentStart) -> Result<Vec<ChartRow>> {
        let fit = |rows: &[ChartRow]| {
            let ends = rows.first().zip(rows.last());
            is_chain(rows) && ends.is_some_and(|(first, last)| first.after.is_none() && last.through == through)
        };
        self.rows(top, fit).await
    }

    /// Reads chart rows, in the order of their numbers. Rows are immutable once the metrics
    /// document counts them. However, an eventually consistent read may miss a row, or return a row
    /// that an interrupted pass of the indexer wrote under the same number. If the rows do not fit
    /// together for one of these reasons, they are read again with strong consistency.
    async fn rows(&self, numbers: &[RowNumber], fit: impl Fn(&[ChartRow]) -> bool) -> Result<Vec<ChartRow>> {
        let keys: Vec<_> = numbers.iter().map(|number| number.key(self.at, self.metric)).collect();
        let read = |found: &HashMap<Key, Item>| {
            let rows = numbers.iter().zip(&keys).map(|(number, key)| Some(ChartRow::read(*number, found.get(key)?)));
            rows.collect::<Option<Result<Vec<_>>>>().transpose()
        };
        let found = self.store.table.get_many_eventually(&keys).await?;
        check_read_bytes(Some(&self.read))?;
        if let Some(rows) = read(&found)?
            && fit(&rows)
        {
            return Ok(rows);
        }
        let found = self.store.table.get_many(&keys).await?;
        let rows = read(&found)?.filter(|rows| fit(rows));
        let missing = || Item::new(self.at.metrics_key());
        rows.ok_or_else(|| unreadable(&missing(), "a consistent set of chart rows"))
    }

    /// Reads the points of the segments that start after `after`, up to and including `through`.
    async fn segments(&self, after: Option<SegmentStart>, through: Option<SegmentStart>) -> Result<Vec<Point>> {
        let range = ranges::segments_between(&self.at.run, &Name::from(self.metric), after, through);
        let mut query = Query::of(range);
        let mut points = Vec::new();
        loop {
            let page = self.store.table.query_page(&query).await?;
            check_read_bytes(Some(&self.read))?;
            for segment in &page.items {
                points.extend(read_counted_segment(segment, Some(&self.read))?);
            }
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => return Ok(points),
            }
        }
    }

    /// Reads the points of late segments, which were written after chart rows had been made for
    /// segments with later start times. No chart row covers late segments. Takes no request if
    /// there are none.
    async fn late_points(&self, unsealed: &UnsealedMetric, through: SegmentStart) -> Result<Vec<Point>> {
        let announced = unsealed.metrics.journal.segments.get(self.metric).into_iter().flatten();
        let late: Vec<_> = announced.filter(|segment| segment.place <= through).collect();
        let mut points = Vec::new();
        // The segments are read in batches, so that the total amount is checked before each further
        // batch.
        for late in late.chunks(LATE_BATCH_SIZE) {
            let keys: Vec<_> = late.iter().map(|segment| segment.key(self.at, self.metric)).collect();
            let found = self.store.table.get_many(&keys).await?;
            check_read_bytes(Some(&self.read))?;
            // A retention policy may have removed some of the late segments, and those that chart
            // rows represent may have been archived.
            for segment in keys.iter().filter_map(|key| found.get(key)) {
                points.extend(read_counted_segment(segment, Some(&self.read))?);
            }
        }
        Ok(points)
    }
}

/// Checks whether each row starts where the previous one ends.
fn is_chain(rows: &[ChartRow]) -> bool {
    rows.windows(2).all(|pair| pair[1].after == Some(pair[0].through))
}

/// Returns the ranges of segments that these first-level chart rows cover. Adjacent ranges are
/// merged.
fn spans(rows: &[ChartRow]) -> Vec<(Option<SegmentStart>, SegmentStart)> {
    let mut spans: Vec<_> = rows.iter().map(|row| (row.after, row.through)).collect();
    spans.sort_unstable();
    let mut joined: Vec<(Option<SegmentStart>, SegmentStart)> = Vec::new();
    for (after, through) in spans {
        match joined.last_mut() {
            Some((_, last)) if after.is_some_and(|after| after <= *last) => *last = through.max(*last),
            _ => joined.push((after, through)),
        }
    }
    joined
}
