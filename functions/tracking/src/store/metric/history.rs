//! The history of a metric: segments and waiting points, merged.

use access::Granted;
use entities::points::{self, Point};
use entities::{RunLocation, RunMetrics, read_run_metric, read_segment, unreadable};
use futures::stream::{self, Stream, StreamExt, TryStreamExt};
use key_schema::{Name, rows};
use mlflow_api::answer_size::{self, AnswerSize, LONGEST, PAGE};
use mlflow_api::tracking::Metric;
use mlflow_api::{Error, Result};
use search::{Fingerprint, decode_page_token, encode_page_token};
use serde::{Deserialize, Serialize};
use table::{Item, Query, ReadBytes};

use crate::store::Store;

/// Runs whose histories are read at a time. A history of 100,000 points takes some 20 MB while it
/// is read, the embedded engine's part included. For a chart of 10 runs, 8 at a time took 122 MB
/// and 0.21 s, and 4 take 82 to 107 MB and 0.25 s.
const RUNS_AT_A_TIME: usize = 4;
/// Bytes read for samples, and for histories of several runs, at most. Points that are in no chart
/// row are all read for a sample.
const MOST_SAMPLED: usize = 32 << 20;

/// A run's id as it was asked for, and the run, if there is one.
pub type AskedRun = (String, Option<Granted<RunLocation>>);

/// The state of a metric before its segments are read.
pub(super) struct Unsealed {
    pub(super) run: Item,
    pub(super) metrics: RunMetrics,
}

/// Where a page of history begins.
#[derive(Serialize, Deserialize)]
pub(super) struct Cursor {
    /// After this point.
    last: CursorPoint,
    /// Which lies in or before the segment with this sort key.
    segment: String,
    /// How often points had been packed. Points that waited then may be in a segment now that begins before that one.
    packed: i64,
}

/// A point in a page token: timestamp, step, and the value's bits, as JSON has no NaN.
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

/// Points of a metric that certainly have room on a page.
///
/// # Errors
/// None for a name that can be in JSON.
pub(crate) fn points_on_page(metric: &str) -> Result<usize> {
    Ok((PAGE / longest_point(metric)?.in_response()).max(1))
}

/// Points of a metric that certainly have room in the longest answer.
///
/// # Errors
/// As [`points_on_page`].
pub(crate) fn points_in_answer(metric: &str) -> Result<usize> {
    Ok(LONGEST / longest_point(metric)?.bytes())
}

/// The most that a point can take of an answer, with the comma after it.
fn longest_point(metric: &str) -> Result<AnswerSize> {
    // No number has more characters than these.
    let longest = metric_of(metric, Point { timestamp: i64::MIN, step: i64::MIN, value: -f64::MAX / 3.0 }, None);
    Ok(AnswerSize::of(&answer_size::to_json(&longest)?) + AnswerSize::of_plain(1))
}

impl Store {
    /// The points of a metric in the order of timestamp, step and value. Two requests for 1,000 points and about one per further
    /// 100,000 logged in bulk; a run nobody knows has no points.
    ///
    /// Reads only what a page of `max_results` needs, and returns the token of the next page if there is one.
    pub async fn metric_history(
        &self,
        run: &AskedRun,
        metric: &str,
        max_results: usize,
        page_token: &str,
    ) -> Result<(Vec<Metric>, Option<String>)> {
        let (run_id, at) = run;
        let search = Fingerprint::of_metric_history(run_id, metric);
        let cursor: Option<Cursor> = decode_page_token(search, page_token)?;
        let Some(at) = at else { return Ok((Vec::new(), None)) };
        let Some(unsealed) = self.unsealed(at, metric).await? else { return Ok((Vec::new(), None)) };
        let (points, next) = self.history_from(at, metric, &unsealed, cursor, Some(max_results), None).await?;
        let token = next.map(|cursor| encode_page_token(search, &cursor)).transpose()?;
        Ok((points.into_iter().map(|point| metric_of(metric, point, None)).collect(), token))
    }

    /// The histories of several runs, one after the other in the order of their ids, `max_results` points in all.
    ///
    /// # Errors
    /// More than 32 MB would have to be read: segments that overlap are read until none can hold an earlier point.
    pub async fn metric_history_bulk(
        &self,
        mut runs: Vec<AskedRun>,
        metric: &str,
        max_results: usize,
    ) -> Result<Vec<Metric>> {
        runs.sort_unstable();
        runs.dedup();
        let read = ReadBytes::default();
        let (store, name) = (Self { table: self.table.counting(&read), ..self.clone() }, metric.to_owned());
        let mut histories = std::pin::pin!(of_runs(runs, move |at| {
            let (store, metric, read) = (store.clone(), name.clone(), read.clone());
            async move {
                let Some(unsealed) = store.unsealed(&at, &metric).await? else { return Ok(Vec::new()) };
                Ok(store.history_from(&at, &metric, &unsealed, None, Some(max_results), Some(&read)).await?.0)
            }
        }));
        let mut all = Vec::new();
        while all.len() < max_results
            && let Some((run_id, points)) = histories.try_next().await?
        {
            let room = max_results - all.len();
            all.extend(points.into_iter().take(room).map(|point| metric_of(metric, point, Some(&run_id))));
        }
        Ok(all)
    }

    /// The points from where a page begins, in the order of history. It returns all of them, or as
    /// many as the limit, and where the next page begins.
    ///
    /// Points that wait are read before the segments: a point that is packed in between is found
    /// twice, and never missed. Segments are read in the order of their first points, and may
    /// overlap. Once the limit is reached, a segment that begins after the last point of the page
    /// can add nothing to it.
    pub(super) async fn history_from(
        &self,
        at: &RunLocation,
        metric: &str,
        unsealed: &Unsealed,
        from: Option<Cursor>,
        limit: Option<usize>,
        read: Option<&ReadBytes>,
    ) -> Result<(Vec<Point>, Option<Cursor>)> {
        let last = from.as_ref().map(|cursor| Point::from(cursor.last));
        let is_after = |point: &Point| last.is_none_or(|last| point.by_time(&last).is_gt());
        let (mut points, packed) = (unsealed.metrics.waiting(&unsealed.run, metric)?, unsealed.metrics.packed());
        points.retain(is_after);
        let segments = rows::MetricSegment::all(&at.run).metric(&Name::from(metric)).range();
        let first_segment = from.filter(|cursor| cursor.packed == packed).map(|cursor| cursor.segment);
        let first_segment = first_segment.filter(|segment| segments.place(segment).is_some());
        let mut query = Query::of(match &first_segment {
            Some(segment) => segments.starting_at_key(segment),
            None => segments,
        });
        // The last point of each segment read: the first segment with points beyond the page is where the next page begins.
        let mut ends: Vec<(Point, String)> = Vec::new();
        loop {
            let page = self.table.query_page(&query).await?;
            check_read(read)?;
            let mut newest = None;
            for segment in &page.items {
                let unpacked = read_segment(segment)?.0;
                let key = segment.key().ok_or_else(|| unreadable(segment, "the key of a segment"))?;
                newest = unpacked.first().copied();
                ends.extend(unpacked.last().map(|last| (*last, key.sk)));
                points.extend(unpacked.into_iter().filter(is_after));
            }
            let Some(next) = page.next else { break };
            if let Some(limit) = limit {
                points::sort_by_time(&mut points);
                // Keys are in the order of time and step only.
                if let (Some(beyond), Some(newest)) = (points.get(limit), newest)
                    && (newest.timestamp, newest.step) > (beyond.timestamp, beyond.step)
                {
                    break;
                }
                // Whatever comes, these are beyond the page; one is kept, which tells that there are more.
                points.truncate(limit.saturating_add(1));
            }
            query = query.starting_at(next);
        }
        points::sort_by_time(&mut points);
        let Some(limit) = limit.filter(|limit| points.len() > *limit) else { return Ok((points, None)) };
        points.truncate(limit);
        let Some(last) = points.last().copied() else { return Ok((points, None)) };
        let segment = ends.into_iter().find(|(end, _)| end.by_time(&last).is_gt()).map(|(_, key)| key);
        let segment = segment.or(first_segment).unwrap_or_default();
        Ok((points, Some(Cursor { last: last.into(), segment, packed })))
    }

    /// The state of a metric before its segments are read; `None` if there is no such run. One
    /// request; one more while the run is logged to, or if it is wide.
    pub(super) async fn unsealed(&self, at: &RunLocation, metric: &str) -> Result<Option<Unsealed>> {
        let mut items = self.table.get_many(&[at.key(), at.metrics_key()]).await?;
        let Some(run) = items.remove(&at.key()) else { return Ok(None) };
        let first = items.remove(&at.metrics_key());
        let metrics = read_run_metric(&self.table, at, &run, first, metric).await?;
        Ok(Some(Unsealed { run, metrics }))
    }
}

/// Reads something of runs, in their order, some at a time.
pub(super) fn of_runs<R, F>(runs: Vec<AskedRun>, read: R) -> impl Stream<Item = Result<(String, Vec<Point>)>>
where
    R: Fn(Granted<RunLocation>) -> F,
    F: Future<Output = Result<Vec<Point>>>,
{
    let points = runs.into_iter().map(move |(run_id, at)| {
        let points = at.map(&read);
        async move {
            let points = match points {
                Some(points) => points.await?,
                None => Vec::new(),
            };
            Ok((run_id, points))
        }
    });
    stream::iter(points).buffered(RUNS_AT_A_TIME)
}

/// Whether no more was read for samples, or for histories of several runs, than may be.
pub(super) fn check_read(read: Option<&ReadBytes>) -> Result<()> {
    if read.is_none_or(|read| read.total() <= MOST_SAMPLED) {
        return Ok(());
    }
    let megabytes = MOST_SAMPLED >> 20;
    Err(Error::invalid(format!("The histories of these runs have more than {megabytes} MB. Ask for fewer runs.")))
}

pub(super) fn metric_of(key: &str, point: Point, run_id: Option<&str>) -> Metric {
    Metric {
        key: key.to_owned(),
        value: point.value,
        timestamp: point.timestamp,
        step: point.step,
        run_id: run_id.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_the_longest_points_has_room() {
        for metric in ["m", &"\"".repeat(250)] {
            let points = points_on_page(metric).unwrap();
            let (time, value) = (i64::MIN, f64::MIN_POSITIVE / 3.0);
            let point =
                serde_json::to_vec(&metric_of(metric, Point { timestamp: time, step: time, value: -value }, None));
            let size = AnswerSize::of(&point.unwrap()).in_response() + 2;
            assert!(points * size <= PAGE + points * 4, "{points} of {size}");
        }
        assert!(points_on_page("loss").unwrap() > 25_000, "MLflow's clients get the pages they ask for");
    }
}
