//! The history of a metric: segments and waiting points, merged.

use futures::stream::{self, Stream, StreamExt, TryStreamExt};
use key_schema::{Bucket, Name, prefix, rows};
use mlflow_api::tracking::Metric;
use mlflow_api::{Result, RunId};
use search::{Fingerprint, decode_page_token, encode_page_token};
use serde::{Deserialize, Serialize};
use table::{Item, Query};

use super::Store;
use super::metric::{POINTS, WIDE, waiting};
use super::points::{self, Point};
use super::run_document::RunLocation;

/// Runs whose histories are read at a time.
const RUNS_AT_A_TIME: usize = 8;

/// Steps of which a sample is taken, both included.
#[derive(Clone, Copy, Debug)]
pub struct SampleRange {
    /// First step.
    pub start: i64,
    /// Last step.
    pub end: i64,
}

/// Where a page of history begins: after this point, which lies in or before the segment with this sort key.
#[derive(Serialize, Deserialize)]
struct Cursor {
    timestamp: i64,
    step: i64,
    /// The value's bits: JSON has no NaN.
    value: u64,
    segment: String,
}

impl Store {
    /// The points of a metric in the order of timestamp, step and value. Two requests for 1,000 points and about one per further
    /// 100,000 logged in bulk; a run nobody knows has no points.
    ///
    /// With `max_results`, reads only what the page needs, and returns the token of the next page if there is one.
    pub async fn metric_history(
        &self,
        run_id: &str,
        metric: &str,
        max_results: Option<usize>,
        page_token: &str,
    ) -> Result<(Vec<Metric>, Option<String>)> {
        let search = Fingerprint::of_metric_history(run_id, metric);
        let cursor: Option<Cursor> = decode_page_token(search, page_token)?;
        let Some(at) = self.run_locate_leniently(run_id).await? else { return Ok((Vec::new(), None)) };
        let after = cursor.map(|cursor| {
            let value = f64::from_bits(cursor.value);
            (Point { timestamp: cursor.timestamp, step: cursor.step, value }, cursor.segment)
        });
        let (mut points, segment) = self.history_from(&at, metric, after, max_results).await?;
        let mut token = None;
        if let Some(limit) = max_results
            && points.len() > limit
        {
            points.truncate(limit);
            if let Some(last) = points.last() {
                let (timestamp, step, value) = (last.timestamp, last.step, last.value.to_bits());
                token = Some(encode_page_token(search, &Cursor { timestamp, step, value, segment })?);
            }
        }
        Ok((points.into_iter().map(|point| metric_of(metric, point, None)).collect(), token))
    }

    /// The histories of several runs, one after the other in the order of their ids, `max_results` points in all.
    pub async fn metric_history_bulk(&self, run_ids: &[&str], metric: &str, max_results: usize) -> Result<Vec<Metric>> {
        let mut run_ids: Vec<_> = run_ids.iter().map(|run_id| (*run_id).to_owned()).collect();
        run_ids.sort_unstable();
        run_ids.dedup();
        let mut histories = std::pin::pin!(self.histories(run_ids, metric));
        let mut all = Vec::new();
        while all.len() < max_results
            && let Some((run_id, points)) = histories.try_next().await?
        {
            let room = max_results - all.len();
            all.extend(points.into_iter().take(room).map(|point| metric_of(metric, point, Some(&run_id))));
        }
        Ok(all)
    }

    /// A sample of each run's history in the order of steps: at most `max_results` points a run, evenly spaced, the first
    /// and the last among them.
    pub async fn metric_history_sample(
        &self,
        run_ids: Vec<String>,
        metric: &str,
        range: Option<SampleRange>,
        max_results: usize,
    ) -> Result<Vec<Metric>> {
        let mut histories = std::pin::pin!(self.histories(run_ids, metric));
        let mut all = Vec::new();
        while let Some((run_id, mut points)) = histories.try_next().await? {
            points.retain(|point| range.is_none_or(|range| (range.start..=range.end).contains(&point.step)));
            points.sort_unstable_by(Point::by_step);
            all.extend(sample(&points, max_results).into_iter().map(|point| metric_of(metric, point, Some(&run_id))));
        }
        Ok(all)
    }

    /// The histories of runs, in their order, some read at a time.
    fn histories(
        &self,
        run_ids: Vec<String>,
        metric: &str,
    ) -> impl Stream<Item = Result<(String, Vec<Point>)>> + use<> {
        let (store, metric) = (self.clone(), metric.to_owned());
        let histories = run_ids.into_iter().map(move |run_id| {
            let (store, metric) = (store.clone(), metric.clone());
            async move {
                let points = match store.run_locate_leniently(&run_id).await? {
                    Some(at) => store.history_from(&at, &metric, None, None).await?.0,
                    None => Vec::new(),
                };
                Ok((run_id, points))
            }
        });
        stream::iter(histories).buffered(RUNS_AT_A_TIME)
    }

    /// Where a run is, if it is anywhere.
    async fn run_locate_leniently(&self, run_id: &str) -> Result<Option<RunLocation>> {
        if RunId::parse(run_id).is_none() {
            return Ok(None);
        }
        match self.run_locate(run_id).await {
            Ok(at) => Ok(Some(at)),
            Err(error) if error.code == mlflow_api::ErrorCode::ResourceDoesNotExist => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The points after a point, in the order of history: all of them, or one more than the limit; and the sort key of the first
    /// segment that the page after the limit needs.
    ///
    /// Segments are read in the order of their first points, and may overlap. Once the limit is reached, a segment that begins
    /// after the last point of the page can add nothing to it.
    async fn history_from(
        &self,
        at: &RunLocation,
        metric: &str,
        after: Option<(Point, String)>,
        limit: Option<usize>,
    ) -> Result<(Vec<Point>, String)> {
        let mut points = self.waiting_points(at, metric).await?;
        let is_after = |point: &Point| after.as_ref().is_none_or(|(last, _)| point.by_time(last).is_gt());
        points.retain(is_after);
        let prefix = prefix::metric_segments(&Name::from(metric));
        let partition = prefix::run_partition(&at.run);
        let mut query = match &after {
            // Sort keys of segments end in hexadecimal digits, all less than this one.
            Some((_, segment)) if !segment.is_empty() => Query::between(&partition, segment, format!("{prefix}~")),
            _ => Query::begins_with(&partition, &prefix),
        };
        // Segments with points beyond the page: the first of them is where the next page begins to read.
        let mut open: Vec<(Point, String)> = Vec::new();
        loop {
            let page = self.table.query_page(&query).await?;
            for segment in &page.items {
                let (unpacked, key) = read_segment(segment);
                if let Some(last) = unpacked.last() {
                    open.push((*last, key));
                }
                points.extend(unpacked.into_iter().filter(is_after));
            }
            let Some(next) = page.next else { break };
            if let Some(limit) = limit {
                points::sort_by_time(&mut points);
                let newest = page.items.last().map(read_segment).and_then(|(points, _)| points.first().copied());
                if let (Some(beyond), Some(newest)) = (points.get(limit), newest)
                    && newest.by_time(beyond).is_gt()
                {
                    break;
                }
            }
            query = query.starting_at(next);
        }
        points::sort_by_time(&mut points);
        let mut start = String::new();
        if let Some(limit) = limit {
            let last_of_page = points.get(limit.saturating_sub(1)).copied();
            points.truncate(limit + 1);
            let still_open = |last: &Point| last_of_page.is_none_or(|point| last.by_time(&point).is_gt());
            let next = open.into_iter().find(|(last, _)| still_open(last));
            start = next.map(|(_, key)| key).or_else(|| after.map(|(_, key)| key)).unwrap_or_default();
        }
        Ok((points, start))
    }

    /// The points of a metric that wait in the run's documents.
    async fn waiting_points(&self, at: &RunLocation, metric: &str) -> Result<Vec<Point>> {
        let Some(document) = self.table.get(&at.metrics_key()).await? else { return Ok(Vec::new()) };
        let points = waiting(&document, metric);
        if !points.is_empty() || !document.has(WIDE) {
            return Ok(points);
        }
        let key = rows::RunMetricsBucket::key(&at.experiment, &at.run, &Bucket::of(metric));
        Ok(self.table.get(&key).await?.map(|document| waiting(&document, metric)).unwrap_or_default())
    }
}

/// A segment's points and its sort key. What cannot be read is logged: it would be a defect of ours.
fn read_segment(segment: &Item) -> (Vec<Point>, String) {
    let key = segment.key().map(|key| key.sk).unwrap_or_default();
    let bytes = segment.0.get(POINTS).and_then(|value| value.as_b().ok());
    let points = bytes.and_then(|bytes| points::unpack(bytes.as_ref())).unwrap_or_else(|| {
        tracing::error!(key, "segment cannot be read");
        Vec::new()
    });
    (points, key)
}

fn metric_of(key: &str, point: Point, run_id: Option<&str>) -> Metric {
    Metric {
        key: key.to_owned(),
        value: point.value,
        timestamp: point.timestamp,
        step: point.step,
        run_id: run_id.map(str::to_owned),
    }
}

/// The first point of each of `count` evenly filled buckets, as SQL's `NTILE` fills them, and the last point of all, in place of
/// the last bucket's where there are `count` already.
fn sample(points: &[Point], count: usize) -> Vec<Point> {
    let Some(last) = points.last() else { return Vec::new() };
    let count = count.max(1);
    let buckets = count.min(points.len());
    let (size, larger) = (points.len() / buckets, points.len() % buckets);
    let starts = (0..buckets).map(|bucket| bucket * size + bucket.min(larger));
    let mut sample: Vec<_> = starts.map(|start| points[start]).collect();
    if sample.last() != Some(last) {
        if sample.len() >= count {
            sample.pop();
        }
        sample.push(*last);
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(count: i64, wanted: usize) -> Vec<i64> {
        let points: Vec<_> = (0..count).map(|step| Point::new(0, step, 0.0)).collect();
        sample(&points, wanted).iter().map(|point| point.step).collect()
    }

    #[test]
    fn samples_are_even_and_keep_both_ends() {
        assert_eq!(steps(0, 5), Vec::<i64>::new());
        assert_eq!(steps(3, 5), [0, 1, 2]);
        assert_eq!(steps(10, 5), [0, 2, 4, 6, 9]);
        assert_eq!(steps(7, 3), [0, 3, 6]);
        assert_eq!(steps(11, 3), [0, 4, 10]);
        assert_eq!(steps(5, 1), [4]);
    }
}
