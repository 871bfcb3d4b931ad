//! The indexer: consumes the table's stream and keeps the data that searches read up to date. It is
//! named after full-text search, and does more by now.
//!
//! A record of the stream only says *which* entity has changed. The indexer reads the entity as it
//! is now, writes its copy, and puts and deletes entries of the index. So several changes of one
//! entity in a batch are one, and the order of records does not matter. A batch that comes twice
//! finds nothing left to do.
//!
//! `docs/stream.md` tells how records arrive, `docs/run-metrics.md` how points are packed,
//! `docs/run-index.md` how runs are indexed, `docs/traces-at-rest.md` how traces are packed.
//!
//! | module | what it does |
//! |---|---|
//! | [`batch`] | sorts the records by entity |
//! | [`schedule`] | says which runs are indexed now |
//! | [`ticks`] | looks at postponed runs and partitions |
//! | [`run`] | indexes a run: its copy and its entries, which the crate `run-index` names |
//! | [`turns`] | keeps two indexers from one run |
//! | [`usage`] | counts for workspaces |
//! | [`attempts`] | gives up records that keep failing |
//!
//! Only links of traces that have not come have a time to live. `run-index` clears up everything
//! else: runs, logged models and experiments that were removed for good, and evaluation datasets
//! that a client deleted.

mod attempts;
mod batch;
mod declaration;
mod filter;
mod run;
mod schedule;
mod ticks;
mod turns;
mod usage;

use std::collections::{BTreeSet, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::event::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
pub use batch::{Batch, Event};
pub use declaration::FUNCTION;
use entities::fields::Setting;
use entities::{Moment, RunLocation};
pub use filter::{filter_patterns, is_wanted};
use futures::FutureExt;
use futures::stream::{self, StreamExt};
use run_index::{Directory, RunIndex};
pub use schedule::INTERVAL;
use table::{Condition, Failure, Item, Result, Table};
use trace_blocks::{ASKED_AFTER, TraceKey, TracePartition};
pub use trace_packing::Packing;
use trace_packing::{Asks, asking, grow, pack_partition};

use attempts::Attempts;
use batch::{Subject, Work};
use schedule::{Schedule, Sorted, row_of};
use turns::Turns;
use usage::{Brought, Counting};

/// Partitions of traces that are packed at a time.
const PARTITIONS_AT_ONCE: usize = 4;
/// Runs that are indexed together: so many share their requests, and if one of them fails, they are tried one by one.
const RUNS_AT_ONCE: usize = 50;
/// Rows of postponed runs that are written together: as many requests of 25 as run at a time.
const ROWS_AT_ONCE: usize = 400;
/// How long a call goes on with further runs. The function has 120 seconds.
const LONGEST: Duration = Duration::from_secs(90);
/// How long a call begins to pack further partitions of traces.
const PACKING: Duration = Duration::from_secs(20);

/// The indexer of one table. Cheap to clone; clones share the memory of postponed runs and failed
/// records.
///
/// The stream feeds one indexer at a time with the changes of an experiment, and only the indexer
/// puts its entries. Where there are two after all, each leaves the other's runs alone ([`turns`]).
/// `reindex` and `gc` delete some entries.
#[derive(Clone, Debug)]
pub struct Indexer {
    table: Table,
    index: RunIndex,
    schedule: Schedule,
    attempts: Attempts,
    directory: Directory,
    asks: Asks,
    packing: Packing,
    turns: Turns,
    counting: Option<Counting>,
}

impl Indexer {
    /// An indexer of the table whose stream it is fed.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self {
            index: RunIndex::new(table.clone()),
            table: table.in_background(),
            schedule: Schedule::default(),
            attempts: Attempts::default(),
            directory: Directory::default(),
            asks: Asks::default(),
            packing: Packing::default(),
            turns: Turns::default(),
            counting: None,
        }
    }

    /// The same, that indexes a run which has not ended at most once in this time; with each change, if it is zero.
    #[must_use]
    pub fn with_interval(mut self, interval: Duration) -> Self {
        self.schedule.interval = interval;
        self
    }

    /// The same, which need not leave runs to another indexer: a lock says that there is none.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.turns.is_alone = true;
        self
    }

    /// The same, which counts the usage of workspaces, and holds them to their quotas.
    #[must_use]
    pub fn counting(mut self) -> Self {
        self.counting = Some(Counting::of(self.table.clone()));
        self
    }

    /// The same with another clock, in ms: for tests.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        self.schedule.clock = Arc::new(clock);
        self
    }

    /// The same that packs other numbers of traces: for tests.
    #[must_use]
    pub fn with_packing(mut self, packing: Packing) -> Self {
        self.packing = packing;
        self
    }

    /// Carries a batch of the stream over to the index. The answer names the records that have to
    /// come again: Lambda sends the batch again from the first of them.
    ///
    /// Where the table is busy or away, the rest of the batch is not tried, and comes again until
    /// it is done. Records that fail for another reason, or cannot be read, are given up after ten
    /// retries.
    ///
    /// It logs a line with the requests and units of the batch, as functions do for a request.
    pub async fn handle(&self, batch: Batch) -> DynamoDbEventResponse {
        Box::pin(service::told_work("stream", self.handle_batch(batch))).await
    }

    async fn handle_batch(&self, batch: Batch) -> DynamoDbEventResponse {
        if let Some(counting) = &self.counting
            && let Err(error) = counting.count(Brought::of(&batch), self.schedule.now()).await
        {
            // The batch need not come again because counting failed.
            tracing::warn!(?error, "what came to workspaces could not be counted");
        }
        let work = Work::of(batch);
        let sorted = self.schedule.sort(work.changed_runs());
        let mut left = Left::of(&sorted, &work);
        let ends_early = self.carry_over(&work, &sorted, &mut left).await.err();
        let mut again: BTreeSet<String> = left.failed.iter().filter_map(|subject| work.first_record(subject)).collect();
        again.extend(work.unreadable.iter().cloned());
        again.retain(|record| self.attempts.goes_on(record));
        if let Some(why) = ends_early {
            tracing::warn!(why, subjects = left.undone.len(), "the rest of a batch has to come again");
            again.extend(work.first_record_of(|subject| left.undone.contains(subject)));
        }
        let failures = again.into_iter().map(|record| {
            let mut failure = DynamoDbBatchItemFailure::default();
            failure.item_identifier = Some(record);
            failure
        });
        let mut response = DynamoDbEventResponse::default();
        response.batch_item_failures = failures.collect();
        response
    }

    /// Does the work of a batch, and removes what was done from `left`.
    ///
    /// # Errors
    /// Why it ends early: the table is busy or away, or time is short.
    async fn carry_over(&self, work: &Work, sorted: &Sorted, left: &mut Left) -> std::result::Result<(), String> {
        let begin = Moment::now();
        for runs in sorted.later.chunks(ROWS_AT_ONCE) {
            let put_off = self.put_off(runs).await;
            left.settle(runs.iter().map(|(at, _)| Subject::Run(at.clone())), &put_off, "runs could not be put off")?;
        }
        for runs in sorted.now.chunks(RUNS_AT_ONCE) {
            if begin.age() > LONGEST {
                return Err("it takes too long for one call".to_owned());
            }
            self.index_or_name(runs, left).await?;
        }
        for removed in work.removed() {
            let cleared = self.clear_up(removed).await;
            left.settle([removed.clone()], &cleared, "what an entity left behind could not be removed")?;
        }
        let marked: Vec<_> = work.marked_traces().collect();
        let put_off = self.pack_later(&marked, ASKED_AFTER).await;
        left.settle(marked.into_iter().map(Subject::MarkedTraces), &put_off, "traces could not be put off")?;
        grow(&self.table, work.marked.crowded(), || self.schedule.now()).await;
        // At last: this takes longest.
        let begin_packing = Moment::now();
        let packings = work.traces_to_pack().map(|(partition, from)| async move {
            let packed = if begin_packing.age() > PACKING || begin.age() > LONGEST {
                // After the other records of the stream.
                self.table.put(asking(&partition, from.as_ref()), &Condition::Always).await
            } else {
                self.pack_or_put_off(partition, from.as_ref()).await
            };
            (Subject::TracesToPack(partition, from), packed)
        });
        // A pass rests after each block, for its own partition; the others have time
        // meanwhile. All of them come to their end: each holds a lock.
        let packings = stream::iter(packings.collect::<Vec<_>>()).buffer_unordered(PARTITIONS_AT_ONCE);
        for (subject, packed) in packings.collect::<Vec<_>>().await {
            left.settle([subject], &packed, "traces could not be packed")?;
        }
        Ok(())
    }

    /// Removes the remains of a deleted entity, unless it is there again.
    async fn clear_up(&self, subject: &Subject) -> Result<()> {
        match subject {
            Subject::Run(_) | Subject::MarkedTraces(_) | Subject::TracesToPack(..) => Ok(()),
            Subject::RemovedRun(at, started) => self.index.clear_up_run(at, *started).await,
            Subject::RemovedExperiment(experiment, workspace, name) => {
                self.index.clear_up_experiment(*experiment, workspace, name).await
            }
            Subject::RemovedDataset(dataset) => self.index.clear_up_dataset(dataset).await,
        }
    }

    /// Packs a partition of traces. If that fails, it is tried again some minutes later, so that
    /// other changes do not wait for it.
    async fn pack_or_put_off(&self, partition: TracePartition, from: Option<&TraceKey>) -> Result<()> {
        let packed = AssertUnwindSafe(self.pack_traces(partition, from)).catch_unwind().await;
        let Err(failure) = packed.unwrap_or_else(|_| Err(Failure::Unexpected("a panic".to_owned()))) else {
            return Ok(());
        };
        tracing::error!(?failure, ?partition, "traces could not be packed, and are put off");
        self.pack_later(&[partition], ASKED_AFTER).await
    }

    /// Packs a partition of traces, from a mark on or from the oldest. If more is left, or
    /// something was too early, the partition is looked at again.
    async fn pack_traces(&self, partition: TracePartition, from: Option<&TraceKey>) -> Result<()> {
        let again = pack_partition(&self.table, partition, from, self.packing, self.schedule.now()).await?;
        if let Some(from) = &again.from {
            // After the other records of the stream.
            self.table.put(asking(&partition, Some(from)), &Condition::Always).await?;
        }
        match again.within {
            Some(ms) => self.pack_later(&[partition], ms).await,
            None => Ok(()),
        }
    }

    /// Has partitions of traces packed some time from now, in ms, that have no row yet that says so. A request per 25.
    async fn pack_later(&self, partitions: &[TracePartition], ms: i64) -> Result<()> {
        let now = self.schedule.now();
        // Those that are asked for again and again are due at the same time.
        let grain = if ms > 3_600_000 { 3_600_000 } else { 30_000 };
        let due = now.saturating_add(ms).div_euclid(grain).saturating_add(1).saturating_mul(grain);
        let missing = || partitions.iter().filter(|partition| self.asks.is_missing(partition, now, due));
        let rows = missing().map(|partition| Item::new(trace_packing::row_of(partition, due)));
        self.table.write_many(rows.collect(), &[]).await?;
        for partition in missing().copied().collect::<Vec<_>>() {
            self.asks.remember(partition, due, now);
        }
        Ok(())
    }

    /// Indexes runs together; if that fails, one by one.
    async fn index_or_name(&self, runs: &[RunLocation], left: &mut Left) -> std::result::Result<(), String> {
        // A panic is a defect that one run meets, and not a reason to lose the others.
        let indexed = AssertUnwindSafe(self.index_or_put_off(runs)).catch_unwind().await;
        let indexed = indexed.unwrap_or_else(|_| Err(Failure::Unexpected("a panic".to_owned())));
        match indexed {
            Err(failure) if runs.len() > 1 && busy(&failure).is_none() => {
                tracing::warn!(?failure, "runs could not be indexed together");
                for run in runs {
                    Box::pin(self.index_or_name(std::slice::from_ref(run), left)).await?;
                }
                Ok(())
            }
            indexed => left.settle(runs.iter().cloned().map(Subject::Run), &indexed, "a run could not be indexed"),
        }
    }

    async fn index_or_put_off(&self, runs: &[RunLocation]) -> Result<()> {
        // Once per portion: a batch may take minutes, and a rebuild relies on settings that were
        // made before it began.
        let setting = Setting::read(&self.table).await?;
        let later = self.index_runs(runs, &setting).await?;
        self.put_off(&later).await
    }

    /// Writes the rows that have runs looked at when they are due. A request per 25.
    async fn put_off(&self, runs: &[(RunLocation, i64)]) -> Result<()> {
        let rows = runs.iter().map(|(at, due)| Item::new(row_of(at, *due)));
        self.table.write_many(rows.collect(), &[]).await?;
        self.schedule.remember(runs);
        Ok(())
    }
}

/// Why the table could not be asked, if that was all that was wrong.
fn busy(failure: &Failure) -> Option<&String> {
    match failure {
        Failure::Throttled(cause) | Failure::Unavailable(cause) => Some(cause),
        _ => None,
    }
}

/// The unfinished part of a batch.
struct Left {
    /// Not yet.
    undone: HashSet<Subject>,
    /// It failed.
    failed: Vec<Subject>,
}

impl Left {
    /// All that a batch asks for, but runs that were put off already.
    fn of(sorted: &Sorted, work: &Work) -> Self {
        let runs = sorted.now.iter().chain(sorted.later.iter().map(|(at, _)| at)).cloned().map(Subject::Run);
        let traces = work.marked_traces().map(Subject::MarkedTraces);
        let traces =
            traces.chain(work.traces_to_pack().map(|(partition, from)| Subject::TracesToPack(partition, from)));
        Self { undone: runs.chain(work.removed().cloned()).chain(traces).collect(), failed: Vec::new() }
    }

    /// Says how subjects went. Where the table was busy or away, they are still to be done.
    fn settle(
        &mut self,
        subjects: impl IntoIterator<Item = Subject>,
        outcome: &Result<()>,
        what: &str,
    ) -> std::result::Result<(), String> {
        if let Some(cause) = outcome.as_ref().err().and_then(busy) {
            return Err(cause.clone());
        }
        for subject in subjects {
            self.undone.remove(&subject);
            if let Err(failure) = outcome {
                tracing::error!(?failure, ?subject, "{what}");
                self.failed.push(subject);
            }
        }
        Ok(())
    }
}
