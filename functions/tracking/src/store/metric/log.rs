//! Logging metrics.
//!
//! The points of a run's first calls go into its document. Further calls add theirs to the run's
//! journal, in a partition of the run's own; the stream's consumer packs them
//! (`metric-packing/src/pack.rs`). If a call has many points of one metric, they are packed here.
//! Adding to a set needs no knowledge of its content, and may be repeated.

use entities::attributes::CALLS;
use entities::journal::{Sealed, Series};
use entities::points::{self, Point};
use entities::{
    ExperimentState, Marked, Moment, RunLocation, SEAL_AT, metric_attribute, pack_set, run_stage, segments,
};
use experiments::check_run_is_active;
use key_schema::{Key, rows};
use mlflow_api::{Error, Result};
use table::{Condition, Failure, Item, Update, Value, bytes_set};

use crate::store::Store;
use crate::store::run::{LoggedRun, RunDocument};
use documents::{Change, Document};

/// Bytes of points that go into one item: that has room for 400 KB.
const PART_BYTES: usize = 200 << 10;

impl Store {
    /// The run to log to, which is active, and its experiment. One request where a lease on one of them has run out, else none.
    pub(crate) async fn run_to_log(&self, at: &RunLocation) -> Result<(ExperimentState, LoggedRun)> {
        let run = match self.logged_runs.get(at) {
            Some(run) => (self.run_experiment(at).await?, run),
            None => self.read_run_to_log(at).await?,
        };
        check_run_is_active(&at.run, run_stage(&run.1.stage, &run.0))?;
        Ok(run)
    }

    async fn read_run_to_log(&self, at: &RunLocation) -> Result<(ExperimentState, LoggedRun)> {
        let since = Moment::now();
        let (experiment, run) = if let Some(experiment) = self.experiments.held(at.experiment) {
            (experiment, self.table.get(&at.key()).await?)
        } else {
            let key = rows::Experiment::key(&at.experiment);
            let mut items = self.table.get_many(&[key.clone(), at.key()]).await?;
            let experiment = items.remove(&key).ok_or_else(|| at.not_found())?;
            (self.experiments.keep_lease(at.experiment, since, &experiment), items.remove(&at.key()))
        };
        let run = LoggedRun::of(since, &run.ok_or_else(|| at.not_found())?);
        check_run_is_active(&at.run, run_stage(&run.stage, &experiment))?;
        self.logged_runs.keep(at, run.clone());
        Ok((experiment, run))
    }

    /// Logs points to an active run, and changes its document with them. Where the document takes the points, one request of the document's size. Else
    /// one for each 200 KB of them, a write unit per KB; one of the document's size where its mark may not stay or it is changed itself; and
    /// one for a row of names that calls bring again. Where there are ten points and more of a metric, one for each 25 segments.
    pub(crate) async fn metrics_log(
        &self,
        document: &RunDocument<'_>,
        run: &LoggedRun,
        series: Series,
        mut change: Change,
    ) -> Result<()> {
        let Split { waiting, segments, sealed } = Split::of(document.at, series);
        let is_inline = (sealed.is_empty() || run.is_empty()) && run.takes(&waiting, self.points_in_document);
        if is_inline {
            let points = waiting.iter().map(|(metric, points)| (metric_attribute(metric), pack_set(points)));
            change.add.extend(points);
        }
        if is_inline || !change.params.is_empty() || !change.tags.is_empty() || !change.set.is_empty() {
            let since = Moment::now();
            let item = documents::change(&self.table, document, change).await?;
            self.logged_runs.keep(document.at, LoggedRun::of(since, &item));
        }
        if is_inline {
            return Ok(self.table.write_many(segments, &[]).await?);
        }
        // Before the journal names the segments: a pass that packs the journal must find them.
        self.table.write_many(segments, &[]).await?;
        for part in parts(waiting) {
            self.journal_add(document, run, &part, &sealed).await?;
        }
        Ok(())
    }

    /// Adds points to the journal. They are found once the run's document is marked, and says that there is a journal; where it does
    /// already and the mark stays, there is nothing to write to it.
    async fn journal_add(
        &self,
        document: &RunDocument<'_>,
        run: &LoggedRun,
        series: &Series,
        sealed: &Sealed,
    ) -> Result<()> {
        let addition = self.logged_runs.addition(document.at, run, series, sealed);
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
                self.logged_runs.keep(document.at, LoggedRun::of(since, &item));
                Ok(())
            }
            Err(Failure::Refused { item, .. }) => {
                // It was deleted, or removed for good, while we wrote.
                self.journal_remove(&tail, calls).await?;
                document.check(item.as_ref())?;
                Err(Error::unavailable("the run kept changing"))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Takes a call out of its tail. A tail has one at least.
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

/// The points of a call in parts that an item has room for. One, where names are not very many and very long.
fn parts(series: Series) -> Vec<Series> {
    let (mut parts, mut part, mut size) = (Vec::new(), Series::new(), 0);
    for (metric, points) in series {
        let more = metric.len() + 4 + points.len() * 28;
        if size + more > PART_BYTES && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
            size = 0;
        }
        size += more;
        part.insert(metric, points);
    }
    parts.push(part);
    parts
}

/// The points of a call.
struct Split {
    /// Those that wait for a segment, and the latest of those that are one already.
    waiting: Series,
    /// Many points of a metric.
    segments: Vec<Item>,
    /// The names of these.
    sealed: Sealed,
}

impl Split {
    fn of(at: &RunLocation, series: Series) -> Self {
        let mut split = Self { waiting: Series::new(), segments: Vec::new(), sealed: Sealed::new() };
        for (metric, mut points) in series {
            points::sort_by_time(&mut points);
            if points.len() >= SEAL_AT {
                for (name, segment, _) in segments(at, &metric, &points) {
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
