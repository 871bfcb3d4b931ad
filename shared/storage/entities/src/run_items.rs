//! The items of runs, and how they are read.

use std::collections::BTreeMap;

use futures::future::{try_join, try_join_all};
use futures::stream::{self, Stream, TryStreamExt};
use key_schema::{Key, KeyRange, ranges, rows};
use mlflow_api::{Error, ExperimentId};
use table::{Item, Query, Result, Table};

use crate::attributes::{LINKS, PARAM_ROWS, TAG_ROWS};
use crate::points::Point;
use crate::run_location::RunLocation;
use crate::run_metrics::{MetricsStorage, RunMetrics, place_of_metrics, read_run_metrics};

/// Number of runs whose rows are read concurrently.
const CONCURRENCY: usize = 16;

/// The items of one run.
#[derive(Clone, Debug, Default)]
pub struct RunItems {
    /// The run's document.
    pub run: Item,
    /// The metrics in the run's partition. Points in the run's document are not included.
    pub metrics: RunMetrics,
    /// Rows of params.
    pub params: Vec<Item>,
    /// Rows of tags.
    pub tags: Vec<Item>,
    /// Rows of datasets and logged models.
    pub links: Vec<Item>,
}

impl RunItems {
    /// Returns the latest point of each metric. This works for a copy as well, because the copy's
    /// single item contains these points.
    ///
    /// # Errors
    /// Returns an internal error if one of them cannot be read.
    pub fn latest_metrics(&self) -> mlflow_api::Result<BTreeMap<&str, Point>> {
        self.metrics.latest(&self.run)
    }

    /// Returns the approximate total size of the items in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let others = [&self.params, &self.tags, &self.links];
        let items = std::iter::once(&self.run).chain(others.into_iter().flatten());
        items.chain(self.metrics.items()).map(Item::size).sum()
    }
}

/// Reads a run's rows other than its document. Takes one request for each kind of row that the run
/// has. If the caller has read the first metrics document, together with the run or later, it can
/// pass it as `metrics` to save a request.
///
/// # Errors
/// Returns failures of the table.
pub async fn read_run_items(table: &Table, at: &RunLocation, run: Item, metrics: Option<Item>) -> Result<RunItems> {
    let rows = RunRowKeys::of(at);
    let wanted = [(run.has(PARAM_ROWS), rows.params), (run.has(TAG_ROWS), rows.tags), (run.has(LINKS), rows.links)];
    let queries = wanted.into_iter().map(|(wanted, range)| async move {
        if wanted { table.query(Query::of(range)).await } else { Ok(Vec::new()) }
    });
    let (metrics, parts) = try_join(read_run_metrics(table, at, &run, metrics), try_join_all(queries)).await?;
    let mut parts = parts.into_iter();
    let mut part = || parts.next().unwrap_or_default();
    Ok(RunItems { run, metrics, params: part(), tags: part(), links: part() })
}

/// Reads several runs with all their items. Runs that no longer exist are left out. Takes one
/// request per 100 runs, one per 100 runs with a metrics document, and one for each kind of row
/// that a run has. The documents of all runs are read at once. Rows are read for a few runs at a
/// time, because a run may have any number of rows.
pub fn read_runs(table: &Table, places: &[RunLocation]) -> impl Stream<Item = Result<(RunLocation, RunItems)>> {
    let documents = async move {
        let mut runs = table.get_many(&places.iter().map(RunLocation::key).collect::<Vec<_>>()).await?;
        let runs: Vec<_> = places.iter().filter_map(|at| Some((at, runs.remove(&at.key())?))).collect();
        let packed = runs.iter().filter(|(_, run)| place_of_metrics(run) == MetricsStorage::Documents);
        let packed: Vec<_> = packed.map(|(at, _)| at.metrics_key()).collect();
        let mut metrics = table.get_many(&packed).await?;
        let documents = runs.into_iter().map(|(at, run)| (at, run, metrics.remove(&at.metrics_key())));
        Ok(stream::iter(documents.collect::<Vec<_>>().into_iter().map(Ok)))
    };
    let whole = stream::once(documents).try_flatten().map_ok(move |(at, run, metrics)| async move {
        Ok((at.clone(), read_run_items(table, at, run, metrics).await?))
    });
    whole.try_buffered(CONCURRENCY)
}

/// Streams all runs of an experiment from their documents, in the order of their IDs, for callers
/// with too many runs to read them one by one. Takes one request per MB of documents and rows, and
/// one for each run that has logged more than its document holds. One page is in memory at a time.
pub fn read_all_runs(
    table: &Table,
    experiment: ExperimentId,
) -> impl Stream<Item = mlflow_api::Result<(RunLocation, RunItems)>> {
    let begin = Some((Query::of(rows::Run::all(&experiment)), None));
    let pages = stream::try_unfold(begin, move |rest| async move {
        let Some((query, unfinished)) = rest else { return Ok(None) };
        let page = table.query_page(&query).await?;
        let mut groups = group_by_run(experiment, unfinished, page.items);
        // The items of this page's last run may continue on the next page.
        let rest = page.next.map(|next| (query.starting_at(next), groups.pop()));
        Ok::<_, Error>(Some((stream::iter(groups.into_iter().map(Ok)), rest)))
    });
    let whole = pages.try_flatten().map_ok(move |(at, mut items)| async move {
        items.metrics = read_run_metrics(table, &at, &items.run, None).await?;
        Ok((at, items))
    });
    whole.try_buffered(CONCURRENCY)
}

/// Groups the items of the runs in a partition by run. `unfinished` contains the items of the last
/// run of the previous page, to which the first items may belong. A run's document comes first
/// among its items. Items whose run has no document are left out.
fn group_by_run(
    experiment: ExperimentId,
    unfinished: Option<(RunLocation, RunItems)>,
    items: Vec<Item>,
) -> Vec<(RunLocation, RunItems)> {
    let mut groups: Vec<(RunLocation, RunItems)> = unfinished.into_iter().collect();
    let mut rows = groups.last().map(|(at, _)| RunRowKeys::of(at));
    for item in items {
        let Some(key) = item.key() else { continue };
        if let Some(row) = rows::Run::parse(&key) {
            let at = RunLocation { experiment, run: row.run };
            rows = Some(RunRowKeys::of(&at));
            groups.push((at, RunItems { run: item, ..RunItems::default() }));
        } else if let (Some(rows), Some((_, group))) = (&rows, groups.last_mut())
            && let Some(part) = rows.part(group, &key)
        {
            part.push(item);
        }
    }
    groups
}

/// Keys of a run's rows other than its document.
struct RunRowKeys {
    params: KeyRange,
    tags: KeyRange,
    links: KeyRange,
}

impl RunRowKeys {
    fn of(at: &RunLocation) -> Self {
        let RunLocation { experiment, run } = at;
        Self {
            params: rows::RunParam::all(experiment).run(run).range(),
            tags: rows::RunTag::all(experiment).run(run).range(),
            links: ranges::links_of_run(experiment, run),
        }
    }

    /// Returns the part of a run's items that a row with this key belongs to. Returns `None` for a
    /// row of another run.
    fn part<'a>(&self, items: &'a mut RunItems, key: &Key) -> Option<&'a mut Vec<Item>> {
        match key {
            key if self.params.contains(key) => Some(&mut items.params),
            key if self.tags.contains(key) => Some(&mut items.tags),
            key if self.links.contains(key) => Some(&mut items.links),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use key_schema::WideDigest;
    use mlflow_api::RunId;

    use super::*;

    fn at(run: &str) -> RunLocation {
        RunLocation { experiment: ExperimentId::DEFAULT, run: RunId::parse(run).unwrap() }
    }

    #[test]
    fn items_are_grouped_across_pages() {
        let (one, two) = (at("run"), at("run-2"));
        let long = "#".repeat(2_000);
        let (experiment, run) = (&two.experiment, &two.run);
        let rows = [
            rows::RunInput::key(experiment, run, &WideDigest(7)),
            rows::RunOutput::key(experiment, run, &"m".into()),
            rows::RunParam::key(experiment, run, &long.as_str().into()),
            rows::RunTag::key(experiment, run, &"t".into()),
            // A row belongs to no run if its document no longer exists.
            rows::RunTag::key(experiment, &at("run-3").run, &"t".into()),
        ];
        let tag_of_one = rows::RunTag::key(experiment, &one.run, &"t".into());
        let first = [one.key(), tag_of_one, two.key()].map(Item::new).to_vec();
        let mut groups = group_by_run(ExperimentId::DEFAULT, None, first);
        let unfinished = groups.pop();
        assert_eq!((groups.len(), &groups[0].0, groups[0].1.tags.len()), (1, &one, 1));
        let groups = group_by_run(ExperimentId::DEFAULT, unfinished, rows.map(Item::new).to_vec());
        assert_eq!((groups.len(), &groups[0].0), (1, &two));
        let items = &groups[0].1;
        let counts = [&items.links, &items.params, &items.tags].map(Vec::len);
        assert_eq!((items.run.key(), counts), (Some(two.key()), [2, 1, 1]));
        let row = rows::RunTag::key(experiment, &one.run, &"t".into());
        assert!(group_by_run(ExperimentId::DEFAULT, None, vec![Item::new(row)]).is_empty());
    }
}
