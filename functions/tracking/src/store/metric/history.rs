//! Metric histories: of one run in pages, and of several runs.

use access::Granted;
use entities::RunLocation;
use entities::points::Point;
use futures::stream::{self, Stream, StreamExt, TryStreamExt};
use mlflow_api::Result;
use mlflow_api::response_size::{self, MAX_JSON_BYTES, MAX_PAGE_BYTES, ResponseSize};
use mlflow_api::tracking::Metric;
use search::{Fingerprint, decode_page_token, encode_page_token};
use table::ReadBytes;

use super::history_page::HistoryCursor;
use crate::store::Store;

/// Number of runs whose histories are read concurrently. Reading a history of 100,000 points takes
/// about 20 MB of memory, including the embedded engine's share. A chart of 10 runs took 122 MB and
/// 0.21 s with a concurrency of 8. With 4, it takes 82 to 107 MB and 0.25 s.
const RUN_CONCURRENCY: usize = 4;
/// The id of a requested run, and its location if the run exists.
pub type RequestedRun = (String, Option<Granted<RunLocation>>);

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
    /// and about one more per 100,000 points if the points were logged in bulk. For a history of
    /// more than 10,000 points, takes one more for the list of archived segments. If the page needs
    /// such segments, takes one or two requests to the archive.
    ///
    /// # Errors
    /// Returns an error if an object of the archive is missing.
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
