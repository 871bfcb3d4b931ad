//! Where a run's metrics are stored, and how they are read.
//!
//! The points of a run's first calls are in its document. Later points are added to the journal
//! ([`journal`](crate::journal)). The consumer of the stream packs them from the journal into the
//! metrics documents, and from there into segments. Points only move in this direction, and the
//! sort keys of journal, documents and segments are in the same order. A reader that reads them in
//! key order may find a point twice, but never misses one.

use std::collections::BTreeMap;

use key_schema::{Bucket, KeyRange, ranges, rows};
use mlflow_api::Result;
use table::{Failure, Item, Query, Table};

use crate::archived_segments::MAX_UNARCHIVED_POINTS;
use crate::attributes::{PACKED, WIDE, metric_attribute, metric_of};
use crate::chart_progress::{ChartProgress, charted};
use crate::indexing_state::IndexingState;
use crate::journal::{Journal, Series, is_names, is_tail, read_journal};
use crate::metrics::{latest, waiting};
use crate::points::Point;
use crate::run_location::RunLocation;

/// Where a run's metrics are stored, apart from those in the run's document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsStorage {
    /// All metrics are in the run's document.
    Nowhere,
    /// In metrics documents.
    Documents,
    /// In the journal and in metrics documents.
    Journal,
}

/// Returns where a run's metrics are stored, according to its document.
#[must_use]
pub fn place_of_metrics(run: &Item) -> MetricsStorage {
    let state = IndexingState::of(run);
    if state.journal_marks.is_some() {
        MetricsStorage::Journal
    } else if state.packed.is_some() {
        MetricsStorage::Documents
    } else {
        MetricsStorage::Nowhere
    }
}

/// Returns the number of times that points had been packed when a run's document or a metrics
/// document was written.
#[must_use]
pub fn packed(item: &Item) -> i64 {
    item.get(PACKED).map_or(0, i64::from)
}

/// The metrics in a run's partition.
#[derive(Clone, Debug, Default)]
pub struct RunMetrics {
    /// The metrics documents.
    pub documents: Vec<Item>,
    /// The tails of the journal.
    pub tails: Vec<Item>,
    /// The points in the tails.
    pub journal: Journal,
    /// Rows of names that the tails may refer to.
    names: Vec<Item>,
}

impl RunMetrics {
    /// Returns the latest point of each metric, including points in the run's document.
    ///
    /// # Errors
    /// Returns an internal error if one of them cannot be read.
    pub fn latest<'a>(&'a self, run: &'a Item) -> Result<BTreeMap<&'a str, Point>> {
        let mut found: BTreeMap<&str, Point> = BTreeMap::new();
        let mut keep = |metric: &'a str, point: Point| {
            let known = found.entry(metric).or_insert(point);
            if point.by_step(known).is_gt() {
                *known = point;
            }
        };
        for metric in std::iter::once(run).chain(&self.documents).flat_map(latest) {
            let (metric, point) = metric?;
            keep(metric, point);
        }
        for (metric, points) in self.journal.waiting.iter().chain(&self.journal.sealed) {
            for point in points {
                keep(metric, *point);
            }
        }
        Ok(found)
    }

    /// Returns the points of a metric that are in no segment yet, and the metric's latest point.
    /// Points in the run's document are included. The points are in no particular order, and may
    /// contain duplicates.
    ///
    /// # Errors
    /// Returns an internal error if they cannot be read.
    pub fn waiting(&self, run: &Item, metric: &str) -> Result<Vec<Point>> {
        let journal = [&self.journal.waiting, &self.journal.sealed].into_iter().filter_map(|points| points.get(metric));
        let mut points: Vec<Point> = journal.flatten().copied().collect();
        for document in std::iter::once(run).chain(&self.documents) {
            points.extend(waiting(document, metric)?);
        }
        Ok(points)
    }

    /// Returns how much of a metric's history is in chart rows.
    ///
    /// # Errors
    /// Returns an internal error if it cannot be read.
    pub fn charted(&self, metric: &str) -> Result<ChartProgress> {
        let document = self.documents.iter().find(|document| document.0.contains_key(&metric_attribute(metric)));
        let charted = document.map(charted).transpose()?.and_then(|charted| charted.get(metric).copied());
        Ok(charted.unwrap_or_default())
    }

    /// Checks whether segments of a metric may be in the archive. A run with a journal may have been
    /// packed since its document was read, and the history may have become long enough.
    ///
    /// # Errors
    /// Returns an internal error if the progress of chart rows cannot be read.
    pub fn may_be_archived(&self, run: &Item, metric: &str) -> Result<bool> {
        let charted = self.charted(metric)?;
        let has_journal = place_of_metrics(run) == MetricsStorage::Journal;
        Ok(charted.points > MAX_UNARCHIVED_POINTS || (has_journal && charted.rows > 0))
    }

    /// Returns the points of all metrics that are in no segment yet, including points in the run's
    /// document. Unlike [`waiting`](Self::waiting), leaves out points of the journal that are also
    /// in segments.
    ///
    /// # Errors
    /// Returns an internal error if they cannot be read.
    pub fn all_waiting(&self, run: &Item) -> Result<Series> {
        let mut all = self.journal.waiting.clone();
        for document in std::iter::once(run).chain(&self.documents) {
            for metric in document.0.keys().filter_map(|name| metric_of(name)) {
                all.entry(metric.to_owned()).or_default().extend(waiting(document, metric)?);
            }
        }
        Ok(all)
    }

    /// Returns a copy of these metrics in which `tails` replaces the tails of the journal.
    ///
    /// # Errors
    /// Returns an internal error if one of the tails cannot be read.
    pub fn with_tails(&self, tails: Vec<Item>) -> Result<Self> {
        let journal = read_journal(&tails, &self.names)?;
        Ok(Self { documents: self.documents.clone(), tails, journal, names: self.names.clone() })
    }

    /// Returns the number of times that points were packed. A packing that is still in progress may
    /// be included, because it writes the documents one after the other.
    #[must_use]
    pub fn packed(&self) -> i64 {
        self.documents.iter().map(packed).max().unwrap_or_default()
    }

    /// Returns the items of documents and tails.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.documents.iter().chain(&self.tails)
    }
}

/// Reads the metrics in a run's partition. `first` is the first metrics document, if it was read
/// together with the run or later. Takes no request if the run's document has all points, or if
/// `first` is the only metrics document. Otherwise takes one request.
///
/// # Errors
/// Returns failures of the table, and [`Failure::Unreadable`] if the journal cannot be read.
pub async fn read_run_metrics(
    table: &Table,
    at: &RunLocation,
    run: &Item,
    first: Option<Item>,
) -> table::Result<RunMetrics> {
    match place_of_metrics(run) {
        MetricsStorage::Nowhere => Ok(RunMetrics::default()),
        MetricsStorage::Journal => read_journal_and_documents(table, at).await,
        MetricsStorage::Documents => {
            // `first` and the run's document may have been read at different times. If the run was
            // packed after `first` was read, `first` lacks points that are no longer in the run's
            // document.
            match first.filter(|first| packed(first) >= packed(run)) {
                Some(first) if !first.has(WIDE) => Ok(RunMetrics { documents: vec![first], ..RunMetrics::default() }),
                _ => sorted(table.query(Query::of(documents(at))).await?),
            }
        }
    }
}

/// Reads a run's journal and its metrics documents, even if the run's own document says that it has
/// none. Takes one request per MB.
///
/// # Errors
/// Returns failures of the table, and [`Failure::Unreadable`] if the journal cannot be read.
pub async fn read_journal_and_documents(table: &Table, at: &RunLocation) -> table::Result<RunMetrics> {
    sorted(table.query(Query::of(ranges::journal_and_metrics(&at.run))).await?)
}

/// Reads the part of [`read_run_metrics`]'s result that is needed for a single metric. For a run
/// with many metrics and without a journal, this is the first metrics document, and at most one of
/// the further documents.
///
/// # Errors
/// Returns failures of the table, and [`Failure::Unreadable`] if the journal cannot be read.
pub async fn read_run_metric(
    table: &Table,
    at: &RunLocation,
    run: &Item,
    first: Option<Item>,
    metric: &str,
) -> table::Result<RunMetrics> {
    let is_at_rest = place_of_metrics(run) == MetricsStorage::Documents;
    match first.filter(|first| is_at_rest && packed(first) >= packed(run)) {
        Some(first) => {
            let is_further = first.has(WIDE) && !first.0.contains_key(&metric_attribute(metric));
            let bucket = rows::RunMetricsBucket::key(&at.run, &Bucket::of(metric));
            let further = if is_further { table.get(&bucket).await? } else { None };
            let documents = [first].into_iter().chain(further).collect();
            Ok(RunMetrics { documents, ..RunMetrics::default() })
        }
        None => read_run_metrics(table, at, run, None).await,
    }
}

fn documents(at: &RunLocation) -> KeyRange {
    rows::RunMetrics::all(&at.run).range()
}

fn sorted(items: Vec<Item>) -> table::Result<RunMetrics> {
    let mut metrics = RunMetrics::default();
    for item in items {
        match item.key() {
            Some(key) if is_tail(&key) => metrics.tails.push(item),
            Some(key) if is_names(&key) => metrics.names.push(item),
            _ => metrics.documents.push(item),
        }
    }
    let journal = read_journal(&metrics.tails, &metrics.names);
    metrics.journal = journal.map_err(|error| Failure::Unreadable(error.to_string()))?;
    Ok(metrics)
}
