//! The places of a run's metrics, and how they are read.
//!
//! The points of a run's first calls are in its document. Further ones are added to the journal
//! ([`journal`](crate::journal)). The stream's consumer packs them from there into the metrics
//! documents, and from there into segments. Points move in this order only, and the sort keys of
//! journal, documents and segments are in this order too. So a reader that keeps this order may
//! find a point twice, and never misses one.

use std::collections::BTreeMap;

use key_schema::{Bucket, KeyRange, ranges, rows};
use mlflow_api::Result;
use table::{Failure, Item, Query, Table};

use crate::attributes::{PACKED, WIDE, metric_attribute, metric_of};
use crate::charted::{Charted, charted};
use crate::indexing_state::IndexingState;
use crate::journal::{Journal, Series, is_names, is_tail, read_journal};
use crate::metrics::{latest, waiting};
use crate::points::Point;
use crate::run_location::RunLocation;

/// Where the metrics of a run are that are not in its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsPlace {
    /// There are none.
    Nowhere,
    /// In metrics documents.
    Documents,
    /// In the journal and in documents.
    Journal,
}

/// Where a run's metrics are, by its document.
#[must_use]
pub fn place_of_metrics(run: &Item) -> MetricsPlace {
    let state = IndexingState::of(run);
    if state.journal_marks.is_some() {
        MetricsPlace::Journal
    } else if state.packed.is_some() {
        MetricsPlace::Documents
    } else {
        MetricsPlace::Nowhere
    }
}

/// How often points were packed, by a run's document or by a metrics document.
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
    /// The points in them.
    pub journal: Journal,
    /// Rows of names that they may refer to.
    names: Vec<Item>,
}

impl RunMetrics {
    /// The latest point of each metric, those in the run's document included.
    ///
    /// # Errors
    /// An internal one if one of them cannot be read.
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

    /// The points of a metric that are in no segment yet, and the latest, those in the run's document included; in no order, and some may be
    /// there twice.
    ///
    /// # Errors
    /// An internal one if they cannot be read.
    pub fn waiting(&self, run: &Item, metric: &str) -> Result<Vec<Point>> {
        let journal = [&self.journal.waiting, &self.journal.sealed].into_iter().filter_map(|points| points.get(metric));
        let mut points: Vec<Point> = journal.flatten().copied().collect();
        for document in std::iter::once(run).chain(&self.documents) {
            points.extend(waiting(document, metric)?);
        }
        Ok(points)
    }

    /// How far the history of a metric is in chart rows.
    ///
    /// # Errors
    /// An internal one if it cannot be read.
    pub fn charted(&self, metric: &str) -> Result<Charted> {
        let document = self.documents.iter().find(|document| document.0.contains_key(&metric_attribute(metric)));
        let charted = document.map(charted).transpose()?.and_then(|charted| charted.get(metric).copied());
        Ok(charted.unwrap_or_default())
    }

    /// All points that are in no segment yet, likewise, but those that are the latest of many in segments.
    ///
    /// # Errors
    /// An internal one if they cannot be read.
    pub fn all_waiting(&self, run: &Item) -> Result<Series> {
        let mut all = self.journal.waiting.clone();
        for document in std::iter::once(run).chain(&self.documents) {
            for metric in document.0.keys().filter_map(|name| metric_of(name)) {
                all.entry(metric.to_owned()).or_default().extend(waiting(document, metric)?);
            }
        }
        Ok(all)
    }

    /// The same with only these tails, which are some of its own.
    ///
    /// # Errors
    /// An internal one if one of them cannot be read.
    pub fn with_tails(&self, tails: Vec<Item>) -> Result<Self> {
        let journal = read_journal(&tails, &self.names)?;
        Ok(Self { documents: self.documents.clone(), tails, journal, names: self.names.clone() })
    }

    /// How often points had been packed, or were being packed: the documents are written one after the other.
    #[must_use]
    pub fn packed(&self) -> i64 {
        self.documents.iter().map(packed).max().unwrap_or_default()
    }

    /// Its items.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.documents.iter().chain(&self.tails)
    }
}

/// Reads the metrics in a run's partition. `first` is its first metrics document, if that was read
/// with the run or after it. No request for a run whose document holds all its points. None either
/// if the first metrics document was read and is the only one. Otherwise one.
///
/// # Errors
/// Those of the table; [`Failure::Unreadable`] too if the journal cannot be read.
pub async fn read_run_metrics(
    table: &Table,
    at: &RunLocation,
    run: &Item,
    first: Option<Item>,
) -> table::Result<RunMetrics> {
    match place_of_metrics(run) {
        MetricsPlace::Nowhere => Ok(RunMetrics::default()),
        MetricsPlace::Journal => read_journal_and_documents(table, at).await,
        MetricsPlace::Documents => {
            // The two may have been read at different moments. A document from before the run was
            // packed is not the one that the run's document means.
            match first.filter(|first| packed(first) >= packed(run)) {
                Some(first) if !first.has(WIDE) => Ok(RunMetrics { documents: vec![first], ..RunMetrics::default() }),
                _ => sorted(table.query(Query::of(documents(at))).await?),
            }
        }
    }
}

/// Reads a run's journal and its metrics documents, whatever its own document says. One request per MB.
///
/// # Errors
/// As there.
pub async fn read_journal_and_documents(table: &Table, at: &RunLocation) -> table::Result<RunMetrics> {
    sorted(table.query(Query::of(ranges::journal_and_metrics(&at.run))).await?)
}

/// The same of one metric: of a wide run at rest, a document in place of all of them.
///
/// # Errors
/// As there.
pub async fn read_run_metric(
    table: &Table,
    at: &RunLocation,
    run: &Item,
    first: Option<Item>,
    metric: &str,
) -> table::Result<RunMetrics> {
    let is_at_rest = place_of_metrics(run) == MetricsPlace::Documents;
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
