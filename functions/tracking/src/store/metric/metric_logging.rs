//! Logging metrics.
//!
//! The points of a run's first calls go into the run's document. Later calls add their points to
//! the run's journal, which is in a separate partition. The indexer packs the journal
//! (`shared/storage/metric-packing/src/pack.rs`). If a call has many points of one metric, the call
//! packs them itself. The journal consists of sets, because adding to a set does not require
//! reading it and may be repeated.

use entities::attributes::CALLS;
use entities::experiments::check_run_is_active;
use entities::journal::{SealedSegments, Series};
use entities::points::{self, Point};
use entities::{
    ExperimentState, MIN_SEGMENT_POINTS, MarkUpdate, Moment, RunLocation, SegmentEncoding, metric_attribute, pack_set,
    run_stage, segments,
};
use key_schema::{Key, rows};
use mlflow_api::{Error, Result};
use table::{Condition, Failure, Item, Update, Value, bytes_set};

use crate::store::Store;
use crate::store::run::{CachedRun, RunDocument};
use entities::documents::{Document, DocumentChange};

/// Maximum number of bytes of points in one item. An item can have up to 400 KB.
const MAX_PART_BYTES: usize = 200 << 10;

impl Store {
    /// Returns the active run to log to, and its experiment. Takes no request if the leases on both
    /// are valid, and one otherwise.
    pub(crate) async fn run_to_log(&self, at: &RunLocation) -> Result<(ExperimentState, CachedRun)> {
        let run = match self.logged_runs.get(at) {
            Some(run) => (self.run_experiment(at).await?, run),
            None => self.read_run_to_log(at).await?,
        };
        check_run_is_active(&at.run, run_stage(&run.1.stage, &run.0))?;
        Ok(run)
    }

    async fn read_run_to_log(&self, at: &RunLocation) -> Result<(ExperimentState, CachedRun)> {
        let since = Moment::now();
        let (experiment, run) = if let Some(experiment) = self.experiments.held(at.experiment) {
            (experiment, self.table.get(&at.key()).await?)
        } else {
            let key = rows::Experiment::key(&at.experiment);
            let mut items = self.table.get_many(&[key.clone(), at.key()]).await?;
            let experiment = items.remove(&key).ok_or_else(|| at.not_found())?;
            (self.experiments.keep_lease(at.experiment, since, &experiment), items.remove(&at.key()))
        };
        let run = CachedRun::of(since, &run.ok_or_else(|| at.not_found())?);
        check_run_is_active(&at.run, run_stage(&run.stage, &experiment))?;
        self.logged_runs.keep(at, run.clone());
        Ok((experiment, run))
    }

    /// Logs points to an active run, and applies `change` to the run's document.
    ///
    /// If the document has room for the points, this takes one request, billed by the document's
    /// size. Otherwise, it takes:
    ///
    /// - one request per 200 KB of points, with one write unit per KB,
    /// - one update of the document, billed by its size, if `change` is not empty or the call may
    ///   not rely on the run's mark, which leads readers to the journal,
    /// - one request for a row with the names of metrics, the first time that a call repeats a
    ///   set of names whose elements would be large.
    ///
    /// In either case, metrics with ten or more points take one request per 25 segments.
    pub(crate) async fn metrics_log(
        &self,
        document: &RunDocument<'_>,
        run: &CachedRun,
        series: Series,
        mut change: DocumentChange,
    ) -> Result<()> {
        let SplitPoints { waiting, segments, sealed } = SplitPoints::of(document.at, series, self.segments);
        let is_inline =
            (sealed.is_empty() || run.is_empty()) && run.fits_in_document(&waiting, self.points_in_document);
        if is_inline {
            let points = waiting.iter().map(|(metric, points)| (metric_attribute(metric), pack_set(points)));
            change.add.extend(points);
        }
        if is_inline || !change.params.is_empty() || !change.tags.is_empty() || !change.set.is_empty() {
            let since = Moment::now();
            let item = entities::documents::change(&self.table, document, change).await?;
            self.logged_runs.keep(document.at, CachedRun::of(since, &item));
        }
        if is_inline {
            return Ok(self.table.write_many(segments, &[]).await?);
        }
        // Segments are written before the journal refers to them, so that the indexer finds them
        // when it packs the journal.
        self.table.write_many(segments, &[]).await?;
        for part in split_into_items(waiting) {
            self.journal_add(document, run, &part, &sealed).await?;
        }
        Ok(())
    }

    /// Adds points to the journal. Readers look for a journal only if the run's document is marked
    /// and records that there is one. If the document is already in this state and the mark is
    /// certain to stay, the document does not have to be written.
    async fn journal_add(
        &self,
        document: &RunDocument<'_>,
        run: &CachedRun,
        series: &Series,
        sealed: &SealedSegments,
    ) -> Result<()> {
        let addition = self.logged_runs.journal_addition(document.at, run, series, sealed);
        if let Some((names, row)) = addition.names {
            self.table.put(row, &Condition::Always).await?;
            self.logged_runs.names_are_there(document.at, names);
        }
        let (tail, calls) = (addition.tail, bytes_set([addition.element]));
        if addition.is_alone {
            self.table.put(Item::new(tail.clone()).with(CALLS, calls.clone()), &Condition::Always).await?;
        } else {
            self.table.apply(&Update::upsert(tail.clone()).add(CALLS, calls.clone())).await?;
        }
        if run.mark_stays() && !addition.asks_for_packing {
            return Ok(());
        }
        let update = Update::new(document.key()).only_if(document.writable());
        let (rely, asks_for_packing) = (run.may_be_relied_on(), addition.asks_for_packing);
        let update = update.marked_for_journal(&document.at.run, rely, asks_for_packing);
        let since = Moment::now();
        match self.table.update(&update).await {
            Ok(item) => {
                self.logged_runs.keep(document.at, CachedRun::of(since, &item));
                Ok(())
            }
            Err(Failure::Refused { item, .. }) => {
                // The run was deleted, possibly permanently, while the points were written.
                self.journal_remove(&tail, calls).await?;
                document.check(item.as_ref())?;
                Err(Error::unavailable("the run kept changing"))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Removes a call from a tail of the journal, that is, from an item that holds a set of calls.
    /// If the tail contains no other call, the tail is deleted, because a set cannot be empty.
    async fn journal_remove(&self, tail: &Key, calls: Value) -> Result<()> {
        let is_alone = Condition::Equals(CALLS.into(), calls.clone());
        match self.table.delete(tail, &is_alone).await {
            Err(Failure::Refused { item: Some(_), .. }) => {
                let update = Update::new(tail.clone()).delete(CALLS, calls);
                match self.table.apply(&update.only_if(Condition::Not(Box::new(is_alone)))).await {
                    Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
                    Err(failure) => Err(failure.into()),
                }
            }
            Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }
}

/// Splits the points of a call into parts that each fit into one item. There is more than one part
/// only if a call has a very large number of metrics with very long names.
fn split_into_items(series: Series) -> Vec<Series> {
    let (mut parts, mut part, mut size) = (Vec::new(), Series::new(), 0);
    for (metric, points) in series {
        let more = metric.len() + 4 + points.len() * 28;
        if size + more > MAX_PART_BYTES && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
            size = 0;
        }
        size += more;
        part.insert(metric, points);
    }
    parts.push(part);
    parts
}

/// The points of a call, divided by how they are stored.
struct SplitPoints {
    /// Points that are not in a segment yet, and also the latest point of each metric that has new
    /// segments.
    waiting: Series,
    /// Segments of the metrics with many points.
    segments: Vec<Item>,
    /// The names of the new segments, by metric.
    sealed: SealedSegments,
}

impl SplitPoints {
    fn of(at: &RunLocation, series: Series, encoding: SegmentEncoding) -> Self {
        let mut split = Self { waiting: Series::new(), segments: Vec::new(), sealed: SealedSegments::new() };
        for (metric, mut points) in series {
            points::sort_by_time(&mut points);
            if points.len() >= MIN_SEGMENT_POINTS {
                for (name, segment, _) in segments(at, &metric, &points, encoding) {
                    split.segments.push(segment);
                    split.sealed.entry(metric.clone()).or_default().push(name);
                }
                points = points.into_iter().max_by(Point::by_step).into_iter().collect();
            }
            split.waiting.insert(metric, points);
        }
        split
    }
}
