//! Logging metrics.
//!
//! A run's metrics document holds, for each metric, a set of packed points: the latest, and those that wait to be packed into a
//! segment of their own. Logging adds to the sets, which needs no knowledge of what is there, and may be repeated. The
//! answer brings the document; a set that has grown to [`SEAL_AT`] points is **sealed**: written as a segment, then taken
//! out of the document but for the latest point. A crash in between leaves points in both, which reading makes one.
//!
//! More than [`DOCUMENT_KEYS`] metrics make a run **wide**: further ones live in 16 more documents, by their hash.

use std::collections::{BTreeMap, HashSet};

use entities::attributes::{POINTS, STAGE, STAGE_VERSION, WIDE, metric_of};
use entities::points::{self, Point};
use entities::{
    ExperimentState, Marked, RunLocation, marked_item, metric_attribute, pack_set, run_stage, unreadable, waiting,
};
use experiments::{check_run_is_active, run_is_active};
use futures::future::try_join_all;
use key_schema::{Ascending, Bucket, Key, Name, rows};
use mlflow_api::Result;
use table::{Condition, Failure, Item, Update, Value, Write, number};

use crate::store::Store;
use crate::store::run::unchanged_stage;

/// Points of a metric that wait in the document before they are sealed. A segment is an item of its own and costs at least a
/// write unit; a waiting point costs its bytes with every later point. The two meet at about ten.
pub(crate) const SEAL_AT: usize = 10;
/// Metrics in the first document.
pub(crate) const DOCUMENT_KEYS: usize = 128;
/// Metrics that one update changes: an expression has 4 KB.
const UPDATE_KEYS: usize = 256;
/// Metrics that are logged on the off-chance that the run is not wide; for more, the document is read first.
const OPTIMISTIC_KEYS: usize = 64;
/// Metrics of a wide run's first document that an update may name in its condition.
const CHECKED_KEYS: usize = 8;
/// Points in one segment.
const SEGMENT_POINTS: usize = 2_000;

/// Points by metric.
pub(crate) type Series = BTreeMap<String, Vec<Point>>;

/// A segment of points that are in the order of history.
fn segment(at: &RunLocation, metric: &str, points: &[Point]) -> Option<Item> {
    let first = points.first()?;
    let packed = points::pack(points);
    let key = rows::MetricSegment::key(
        &at.run,
        &Name::from(metric),
        &Ascending(first.timestamp),
        &Ascending(first.step),
        &points::digest(&packed),
    );
    Some(Item::new(key).with(POINTS, Value::B(packed.into())))
}

fn segments<'a>(at: &'a RunLocation, metric: &'a str, points: &'a [Point]) -> impl Iterator<Item = Item> + 'a {
    points.chunks(SEGMENT_POINTS).filter_map(move |points| segment(at, metric, points))
}

impl Store {
    /// Logs points to an active run. One request for a few metrics; two more when points are sealed.
    pub(crate) async fn metrics_log(
        &self,
        at: &RunLocation,
        experiment: &ExperimentState,
        series: Series,
    ) -> Result<()> {
        let (waiting, mut sealed) = split_bulk(at, series);
        let documents = self.metrics_add(at, experiment, &waiting).await?;
        let mut removals = Vec::new();
        for document in &documents {
            removals.extend(seal(at, document, &waiting, &mut sealed)?);
        }
        // Points that a crash left in a document and that now come again in bulk make one segment twice.
        let mut keys = HashSet::new();
        sealed.retain(|segment| keys.insert(segment.key()));
        self.table.write_many(sealed, &[]).await?;
        try_join_all(removals.iter().map(|removal| self.metrics_remove_sealed(removal))).await?;
        Ok(())
    }

    /// Adds points to the run's documents and returns these as they are then.
    async fn metrics_add(&self, at: &RunLocation, experiment: &ExperimentState, series: &Series) -> Result<Vec<Item>> {
        // The first document as last seen, and what is still to be added.
        let mut seen: Option<Item> = None;
        let mut is_missing = false;
        let mut rest = series.clone();
        let mut attempts = self.table.attempts("a run's metrics document");
        loop {
            attempts.next().await?;
            if seen.is_none() && rest.len() > OPTIMISTIC_KEYS {
                seen = self.table.get(&at.metrics_key()).await?;
                is_missing = seen.is_none();
            }
            if is_missing {
                is_missing = false;
                // Somebody else may have made it meanwhile.
                let Some(document) = self.metrics_create(at, experiment, series).await? else { continue };
                rest = series.clone().into_iter().skip(DOCUMENT_KEYS).collect();
                if rest.is_empty() {
                    return Ok(vec![document]);
                }
                seen = Some(document);
            }
            let placement = match &seen {
                None => Placement::optimistic(at, experiment, &rest),
                Some(document) => {
                    check_run_is_active(&at.run, run_stage(document, experiment))?;
                    Placement::from_document(at, experiment, &rest, document)
                }
            };
            if !placement.first.is_empty() {
                match self.table.update(&placement.first.clone().marked(&at.run)).await {
                    Ok(document) => seen = Some(document),
                    Err(Failure::Refused { item: Some(document), .. }) => {
                        seen = Some(document);
                        continue;
                    }
                    Err(Failure::Refused { item: None, .. }) => {
                        is_missing = true;
                        continue;
                    }
                    Err(failure) => return Err(failure.into()),
                }
            }
            if !placement.postponed.is_empty() {
                rest = placement.postponed;
                continue;
            }
            let mut documents = try_join_all(placement.buckets.iter().map(|update| self.table.update(update))).await?;
            documents.extend(seen);
            return Ok(documents);
        }
    }

    /// Makes a run's metrics document, if the run is there and active, with as many of the metrics as it takes; returns it.
    async fn metrics_create(
        &self,
        at: &RunLocation,
        experiment: &ExperimentState,
        series: &Series,
    ) -> Result<Option<Item>> {
        let run = self.table.get(&at.key()).await?.ok_or_else(|| at.not_found())?;
        check_run_is_active(&at.run, run_stage(&run, experiment))?;
        let mut document = Item::new(at.metrics_key());
        for attribute in [STAGE, STAGE_VERSION] {
            if let Some(value) = run.0.get(attribute) {
                document = document.with(attribute, value.clone());
            }
        }
        for (metric, points) in series.iter().take(DOCUMENT_KEYS) {
            document = document.with(metric_attribute(metric), pack_set(points));
        }
        // Whoever deletes the run now either sees the document or changes the run before it is made.
        let run_unchanged = Condition::item_exists().and(unchanged_stage(&run));
        let document = marked_item(document, &at.run);
        let writes = [Write::Check(at.key(), run_unchanged), Write::Put(document.clone(), Condition::item_missing())];
        match self.table.transact(&writes).await {
            Ok(()) => Ok(Some(document)),
            // Made by somebody else, or the run has changed: the next attempt finds out.
            Err(Failure::Cancelled(_)) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    async fn metrics_remove_sealed(&self, removal: &Update) -> Result<()> {
        match self.table.update(removal).await {
            // The run is gone, its points with it.
            Ok(_) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }
}

/// Which points go to the documents and which, being many of one metric, straight into segments. The latest of those goes to
/// the document as well.
fn split_bulk(at: &RunLocation, series: Series) -> (Series, Vec<Item>) {
    let mut sealed = Vec::new();
    let mut waiting = Series::new();
    for (metric, mut points) in series {
        points::sort_by_time(&mut points);
        if points.len() >= SEAL_AT {
            sealed.extend(segments(at, &metric, &points));
            points = points.into_iter().max_by(Point::by_step).into_iter().collect();
        }
        waiting.insert(metric, points);
    }
    (waiting, sealed)
}

/// Seals the sets that have grown to [`SEAL_AT`] points among the metrics just logged: adds their segments, and returns the
/// updates that take the points out of the document. Also marks the first document wide when it is.
fn seal(at: &RunLocation, document: &Item, logged: &Series, sealed: &mut Vec<Item>) -> Result<Vec<Update>> {
    let key = document.key().ok_or_else(|| unreadable(document, "the key of a document"))?;
    let mut removals = vec![Update::new(key.clone())];
    let mut metrics_in_update = 0;
    for metric in logged.keys() {
        let mut points = waiting(document, metric)?;
        if points.len() < SEAL_AT {
            continue;
        }
        points::sort_by_time(&mut points);
        sealed.extend(segments(at, metric, &points));
        let newest = points.iter().copied().max_by(Point::by_step);
        points.retain(|point| Some(*point) != newest);
        if metrics_in_update == UPDATE_KEYS {
            removals.push(Update::new(key.clone()));
            metrics_in_update = 0;
        }
        metrics_in_update += 1;
        let update = removals.pop().unwrap_or_else(|| Update::new(key.clone()));
        removals.push(update.delete(metric_attribute(metric), pack_set(&points)));
    }
    let is_first = key == at.metrics_key();
    if is_first && !document.has(WIDE) && metric_count(document) >= DOCUMENT_KEYS {
        let update = removals.pop().unwrap_or_else(|| Update::new(key));
        removals.push(update.set(WIDE, number(1)));
    }
    removals.retain(|update| !update.is_empty());
    Ok(removals)
}

fn metric_count(document: &Item) -> usize {
    document.0.keys().filter(|name| metric_of(name).is_some()).count()
}

/// Which document gets which metrics.
struct Placement {
    first: Update,
    buckets: Vec<Update>,
    /// What cannot be placed before the first document is wide: until then, somebody else may add the same metric to it. Also
    /// what one update has no room for.
    postponed: Series,
}

impl Placement {
    /// All to the first document, refused if the run is wide and one of the metrics is not there.
    fn optimistic(at: &RunLocation, experiment: &ExperimentState, series: &Series) -> Self {
        let not_wide = Condition::Missing(WIDE.into());
        let takes_them = if series.len() <= CHECKED_KEYS {
            let all_there = series.keys().map(|metric| Condition::Exists(metric_attribute(metric).into())).collect();
            Condition::Any(vec![not_wide, Condition::All(all_there)])
        } else {
            not_wide
        };
        let update = Update::new(at.metrics_key()).only_if(run_is_active(experiment)).only_if(takes_them);
        let first = series
            .iter()
            .fold(update, |update, (metric, points)| update.add(metric_attribute(metric), pack_set(points)));
        Self { first, buckets: Vec::new(), postponed: Series::new() }
    }

    /// From the first document as it was seen: it keeps what it has and takes what there is room for, unless it is wide.
    fn from_document(at: &RunLocation, experiment: &ExperimentState, series: &Series, document: &Item) -> Self {
        let is_wide = document.has(WIDE);
        let mut room = if is_wide { 0 } else { DOCUMENT_KEYS.saturating_sub(metric_count(document)) };
        let mut first = Update::new(at.metrics_key());
        let mut others: Vec<(&String, &Vec<Point>)> = Vec::new();
        let (mut adds_metrics, mut metrics_in_update, mut is_cut) = (false, 0, false);
        for (metric, points) in series {
            let is_there = document.has(&metric_attribute(metric));
            // Many at once can give it more metrics than one update may name.
            is_cut |= is_there && metrics_in_update == UPDATE_KEYS;
            if (is_there || room > 0) && metrics_in_update < UPDATE_KEYS {
                metrics_in_update += 1;
                room -= usize::from(!is_there);
                adds_metrics |= !is_there;
                first = first.add(metric_attribute(metric), pack_set(points));
            } else {
                others.push((metric, points));
            }
        }
        // A document that is not wide may become so meanwhile; then what is new here belongs elsewhere.
        if !is_wide && (adds_metrics || !others.is_empty()) {
            first = first.only_if(Condition::Missing(WIDE.into()));
        }
        if !is_wide && !others.is_empty() {
            first = first.set(WIDE, number(1));
        }
        let first = if first.is_empty() { first } else { first.only_if(run_is_active(experiment)) };
        if !is_wide || is_cut {
            let postponed = others.into_iter().map(|(metric, points)| (metric.clone(), points.clone())).collect();
            return Self { first, buckets: Vec::new(), postponed };
        }
        let mut by_bucket: BTreeMap<Bucket, Vec<(&String, &Vec<Point>)>> = BTreeMap::new();
        for (metric, points) in others {
            by_bucket.entry(Bucket::of(metric)).or_default().push((metric, points));
        }
        let buckets = by_bucket.into_iter().flat_map(|(bucket, metrics)| {
            let key: Key = rows::RunMetricsBucket::key(&at.experiment, &at.run, &bucket);
            let updates: Vec<_> = metrics
                .chunks(UPDATE_KEYS)
                .map(|metrics| {
                    let update = Update::upsert(key.clone()).marked(&at.run);
                    metrics
                        .iter()
                        .fold(update, |update, (metric, points)| update.add(metric_attribute(metric), pack_set(points)))
                })
                .collect();
            updates
        });
        Self { first, buckets: buckets.collect(), postponed: Series::new() }
    }
}
