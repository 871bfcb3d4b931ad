//! Metric histories: segments and unpacked points, merged.

use access::Granted;
use entities::points::{self, Point};
use entities::{RunLocation, RunMetrics, read_run_metric, read_segment, unreadable};
use futures::stream::{self, Stream, StreamExt, TryStreamExt};
use key_schema::{Name, rows};
use mlflow_api::response_size::{self, MAX_JSON_BYTES, MAX_PAGE_BYTES, ResponseSize};
use mlflow_api::tracking::Metric;
use mlflow_api::{Error, Result};
use search::{Fingerprint, decode_page_token, encode_page_token};
use serde::{Deserialize, Serialize};
use table::{Item, Query, ReadBytes};

use crate::store::Store;

/// Number of runs whose histories are read concurrently. Reading a history of 100,000 points takes
/// about 20 MB of memory, including the embedded engine's share. A chart of 10 runs took 122 MB and
/// 0.21 s with a concurrency of 8. With 4, it takes 82 to 107 MB and 0.25 s.
const RUN_CONCURRENCY: usize = 4;
/// Maximum number of bytes read for samples, or for histories of several runs. Even a sample can
/// require many bytes, because all points that no chart row covers have to be read.
const MAX_READ_BYTES: usize = 32 << 20;

/// The id of a requested run, and its location if the run exists.
pub type RequestedRun = (String, Option<Granted<RunLocation>>);

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

/// Returns how many points of a metric are certain to fit on a page.
///
/// # Errors
/// Does not fail for names that can be represented in JSON.
pub(crate) fn points_on_page(metric: &str) -> Result<usize> {
    Ok((MAX_PAGE_BYTES / max_point_size(metric)?.bytes_in_response()).max(1))
}

/// Returns how many points of a metric are certain to fit in the longest possible response.
///
/// # Errors
/// Does not fail for names that can be represented in JSON.
pub(crate) fn points_in_response(metric: &str) -> Result<usize> {
    Ok(MAX_JSON_BYTES / max_point_size(metric)?.bytes())
}

/// Returns the maximum size of a point in a response, including the comma after it.
fn max_point_size(metric: &str) -> Result<ResponseSize> {
    // A point whose numbers have the longest possible representations.
    let longest = metric_of(metric, Point { timestamp: i64::MIN, step: i64::MIN, value: -f64::MAX / 3.0 }, None);
    Ok(ResponseSize::of(&response_size::to_json(&longest)?) + ResponseSize::of_plain(1))
}

impl Store {
    /// Returns one page of a metric's history, in the order of timestamp, step and value, and the
    /// token of the next page if there is one. The history of an unknown run is empty.
    ///
    /// Reads only what a page of `max_results` points needs. Takes two requests for 1,000 points,
    /// and about one more per 100,000 points if the points were logged in bulk.
    pub async fn metric_history(
        &self,
        run: &RequestedRun,
        metric: &str,
        max_results: usize,
        page_token: &str,
    ) -> Result<(Vec<Metric>, Option<String>)> {
        let (run_id, at) = run;
        let search = Fingerprint::of_metric_history(run_id, metric);
        let cursor: Option<HistoryCursor> = decode_page_token(search, page_token)?;
        let Some(at) = at else { return Ok((Vec::new(), None)) };
        let Some(unsealed) = self.unsealed(at, metric).await? else { return Ok((Vec::new(), None)) };
        let (points, next) = self.history_from(at, metric, &unsealed, cursor, Some(max_results), None).await?;
        let token = next.map(|cursor| encode_page_token(search, &cursor)).transpose()?;
        Ok((points.into_iter().map(|point| metric_of(metric, point, None)).collect(), token))
    }

    /// Returns the histories of several runs, one after the other in the order of their ids, with
    /// `max_results` points in total.
    ///
    /// # Errors
    /// Returns an error if more than 32 MB would have to be read. If segments overlap, they are
    /// read until none of the remaining segments can contain an earlier point.
    pub async fn metric_history_bulk(
        &self,
        mut runs: Vec<RequestedRun>,
        metric: &str,
        max_results: usize,
    ) -> Result<Vec<Metric>> {
        runs.sort_unstable();
        runs.dedup();
        let read = ReadBytes::default();
        let (store, name) = (Self { table: self.table.counting(&read), ..self.clone() }, metric.to_owned());
        let mut histories = std::pin::pin!(points_of_runs(runs, move |at| {
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

    /// Returns the points of a history from the start of a page up to an optional limit, and the
    /// position where the next page starts.
    ///
    /// Unpacked points are read before the segments. A point that is packed in between is therefore
    /// found twice, but never missed. Segments are read in the order of their first points, and may
    /// overlap. Once the limit is reached, segments that start after the last point of the page are
    /// not needed.
    pub(super) async fn history_from(
        &self,
        at: &RunLocation,
        metric: &str,
        unsealed: &UnsealedMetric,
        from: Option<HistoryCursor>,
        limit: Option<usize>,
        read: Option<&ReadBytes>,
    ) -> Result<(Vec<Point>, Option<HistoryCursor>)> {
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
        // The last point and the key of each segment that was read. The next page starts at the
        // first segment that has points beyond this page.
        let mut ends: Vec<(Point, String)> = Vec::new();
        loop {
            let page = self.table.query_page(&query).await?;
            check_read_bytes(read)?;
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
                // Reading stops only at a segment with a later time or step, because the keys of
                // segments do not contain values. A segment with equal time and step may have
                // smaller values.
                if let (Some(beyond), Some(newest)) = (points.get(limit), newest)
                    && (newest.timestamp, newest.step) > (beyond.timestamp, beyond.step)
                {
                    break;
                }
                // The points beyond the page are not needed, except for one that shows that there
                // is a next page.
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
        Ok((points, Some(HistoryCursor { last: last.into(), segment, packed })))
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

/// Reads points of runs with a limited concurrency, and returns them in the order of the runs.
pub(super) fn points_of_runs<R, F>(runs: Vec<RequestedRun>, read: R) -> impl Stream<Item = Result<(String, Vec<Point>)>>
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
    stream::iter(points).buffered(RUN_CONCURRENCY)
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
            let size = ResponseSize::of(&point.unwrap()).bytes_in_response() + 2;
            assert!(points * size <= MAX_PAGE_BYTES + points * 4, "{points} of {size}");
        }
        assert!(points_on_page("loss").unwrap() > 25_000, "MLflow's clients get the pages they ask for");
    }
}
