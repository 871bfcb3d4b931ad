//! The indexer, which consumes the table's stream and keeps the data that searches read up to date.
//! It is named after full-text search, but now has several more tasks.
//!
//! A record of the stream only says *which* entity has changed. The indexer reads the entity's
//! current state, writes the entity's copy, and writes and deletes entries of the index. Several
//! changes of one entity in a batch are therefore processed as one, and the order of records does
//! not matter. A batch that is delivered twice has no further effect. Events for webhooks are the
//! exception: they are queued in the order of the records, and an event whose record arrives again
//! after the event was delivered is delivered again.
//!
//! `docs/design/stream.md` describes how records arrive, `docs/design/run-metrics.md` how points
//! are packed, `docs/design/run-index.md` how runs are indexed, and `docs/design/traces-at-rest.md`
//! how traces are packed. `docs/design/webhooks.md` describes events for webhooks.
//!
//! | module | what it does |
//! |---|---|
//! | [`stream_batch`] | sorts the records by entity |
//! | [`schedule`] | decides which runs are indexed now |
//! | [`scheduled_ticks`] | checks postponed runs, partitions and pending deliveries |
//! | [`run_indexing`] | indexes a run: its copy, and its entries as determined by the crate `run-index` |
//! | [`trace_packing`] | packs traces into blocks |
//! | [`webhook_events`] | queues events for webhooks, and invokes the function that delivers them |
//! | [`run_ownership`] | prevents two indexers from indexing a run at the same time |
//! | [`workspace_usage`] | counts the usage of workspaces |
//! | [`record_failures`] | gives up on records that keep failing |
//! | [`access_errors`] | logs that the table cannot be accessed |
//!
//! The indexer also removes leftovers with the crate `run-index`: the data of runs, logged models
//! and experiments that were permanently deleted, and of evaluation datasets that a client deleted.
//! Links to traces that have not arrived are removed by DynamoDB's time to live instead.

mod access_errors;
mod declaration;
mod record_failures;
mod record_filter;
mod run_indexing;
mod run_ownership;
mod schedule;
mod scheduled_ticks;
mod stream_batch;
mod trace_packing;
mod webhook_events;
mod workspace_usage;

use artifact_store::Archive;
use std::collections::{BTreeSet, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

pub use crate::trace_packing::PackingThresholds;
use crate::trace_packing::{PackingSchedule, PackingScope, add_partitions, pack_partition, packing_request};
use aws_lambda_events::event::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
pub use declaration::FUNCTION;
use entities::indexed_fields_setting::IndexedFieldsSetting;
use entities::layout::POINTER_LAYOUT;
use entities::webhooks::WebhookDeliverer;
use entities::{Moment, RunLocation, SegmentEncoding};
use futures::FutureExt;
use futures::stream::{self, StreamExt};
pub use record_filter::{filter_patterns, is_for_indexer};
use run_index::{ListDirectory, RunIndex};
pub use schedule::DEFAULT_INTERVAL;
pub use stream_batch::{IndexerEvent, StreamBatch};
use table::{Condition, Failure, Item, Result, Table};
use trace_blocks::{PACKING_DELAY, TracePartition};

use access_errors::AccessErrors;
use record_failures::RecordFailures;
use run_ownership::RunOwnership;
use schedule::{IndexingSchedule, SortedRuns, row_of};
use stream_batch::{BatchWork, RecordSubject};
use webhook_events::WebhookQueues;
use workspace_usage::{BatchUsage, UsageCounter};

/// Number of partitions of traces that are packed concurrently.
const PARTITION_CONCURRENCY: usize = 4;
/// Number of runs that are indexed together and share their requests. If indexing them together
/// fails, they are retried one by one.
const RUN_BATCH_SIZE: usize = 50;
/// Number of rows of postponed runs per batch, which is the capacity of the concurrent requests,
/// with 25 rows each.
const ROW_BATCH_SIZE: usize = 400;
/// How long a call keeps starting to index further runs. The function has a timeout of 120 seconds.
const MAX_DURATION: Duration = Duration::from_secs(90);
/// How long a call keeps starting to pack further partitions of traces.
const MAX_PACKING_DURATION: Duration = Duration::from_secs(20);

/// The indexer of one table. Cheap to clone. Clones share the cache of postponed runs and the
/// counters of failed records.
///
/// The stream delivers an experiment's changes to one indexer at a time, and only the indexer
/// writes the experiment's index entries, except that `reindex` and `gc` delete some of them. If
/// two indexers run nevertheless, neither processes runs that the other one is indexing
/// ([`run_ownership`]).
#[derive(Clone, Debug)]
pub struct Indexer {
    table: Table,
    archive: Archive,
    /// Whether pointers may replace the documents of packed traces.
    releases: bool,
    /// How new segments of points are encoded.
    segments: SegmentEncoding,
    index: RunIndex,
    schedule: IndexingSchedule,
    attempts: RecordFailures,
    access_errors: AccessErrors,
    directory: ListDirectory,
    packing_schedule: PackingSchedule,
    packing_thresholds: PackingThresholds,
    ownership: RunOwnership,
    usage_counter: Option<UsageCounter>,
    webhooks: WebhookQueues,
}

impl Indexer {
    /// Creates the indexer of the table whose stream it consumes.
    #[must_use]
    pub fn new(table: Table) -> Self {
        let table = table.in_background();
        Self {
            index: RunIndex::new(table.clone()),
            webhooks: WebhookQueues::of(table.clone()),
            table,
            archive: Archive::default(),
            releases: true,
            segments: SegmentEncoding::default(),
            schedule: IndexingSchedule::default(),
            attempts: RecordFailures::default(),
            access_errors: AccessErrors::default(),
            directory: ListDirectory::default(),
            packing_schedule: PackingSchedule::default(),
            packing_thresholds: PackingThresholds::default(),
            ownership: RunOwnership::default(),
            usage_counter: None,
        }
    }

    /// Sets the minimum interval between two indexings of a run that has not ended. If the interval
    /// is zero, the run is indexed on every change.
    #[must_use]
    pub fn with_interval(mut self, interval: Duration) -> Self {
        self.schedule.interval = interval;
        self
    }

    /// Declares that there is no other indexer, which the caller ensures with a lock. Indexing then
    /// never waits for another indexer.
    #[must_use]
    pub fn as_only_indexer(mut self) -> Self {
        self.ownership.is_alone = true;
        self
    }

    /// Makes the indexer count the usage of workspaces, and enforce their quotas.
    #[must_use]
    pub fn with_usage_counter(mut self) -> Self {
        self.usage_counter = Some(UsageCounter::of(self.table.clone()));
        self
    }

    /// Sets the function that delivers events to webhooks. Without it, events are queued, but not
    /// delivered.
    #[must_use]
    pub fn with_webhooks(mut self, deliverer: Arc<dyn WebhookDeliverer>) -> Self {
        self.webhooks.deliverer = Some(deliverer);
        self
    }

    /// Sets where the spans of archived traces are stored. Without it, blocks with archived spans
    /// cannot be rewritten.
    #[must_use]
    pub fn with_archive(mut self, archive: Archive) -> Self {
        self.archive = archive;
        self
    }

    /// Sets the layout of the table, which is the current one by default. In a table with an earlier
    /// layout, packed traces keep their own documents and spans, and points are not compressed.
    #[must_use]
    pub fn with_layout(mut self, layout: i64) -> Self {
        self.releases = layout >= POINTER_LAYOUT;
        self.segments = SegmentEncoding::of_layout(layout);
        self
    }

    /// Sets another clock, in ms. For tests.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        self.schedule.clock = Arc::new(clock);
        self
    }

    /// Sets other thresholds for packing traces. For tests.
    #[must_use]
    pub fn with_packing_thresholds(mut self, packing: PackingThresholds) -> Self {
        self.packing_thresholds = packing;
        self
    }

    /// Processes a batch of the stream. The response lists the records that have to be delivered
    /// again. Lambda repeats the batch from the first of these records.
    ///
    /// If the table is throttled, unavailable or inaccessible, the rest of the batch is not
    /// attempted, and is delivered again until it succeeds. A record that fails for another reason,
    /// or that cannot be parsed, is skipped after ten retries.
    ///
    /// Like other functions do for each request, logs a line with the requests and units of the
    /// batch.
    pub async fn handle(&self, batch: StreamBatch) -> DynamoDbEventResponse {
        Box::pin(service::log_work("stream", self.handle_batch(batch))).await
    }

    async fn handle_batch(&self, batch: StreamBatch) -> DynamoDbEventResponse {
        if let Some(counting) = &self.usage_counter
            && let Err(error) = counting.count(BatchUsage::of(&batch), self.schedule.now()).await
        {
            // A failure to count is only logged, and does not cause the batch to be delivered
            // again.
            tracing::warn!(?error, "the usage of workspaces could not be counted");
        }
        let work = BatchWork::of(batch);
        let sorted = self.schedule.sort(work.changed_runs());
        let mut left = UnfinishedWork::of(&sorted, &work);
        let ends_early = self.do_work(&work, &sorted, &mut left).await.err();
        let mut again: BTreeSet<String> = left.failed.iter().filter_map(|subject| work.first_record(subject)).collect();
        again.extend(work.unreadable.iter().cloned());
        again.retain(|record| self.attempts.should_retry(record));
        if let Some(why) = ends_early {
            match &why {
                Failure::Inaccessible(cause) => self.access_errors.log(cause),
                Failure::Throttled(cause) | Failure::Unavailable(cause) => {
                    tracing::warn!(why = cause, subjects = left.undone.len(), "the rest of a batch has to come again");
                }
                _ => {}
            }
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

    /// Does the work of a batch. Removes completed work from `left`.
    ///
    /// # Errors
    /// Returns the reason for ending early: either the table is throttled, unavailable or
    /// inaccessible, or time has run out.
    async fn do_work(&self, work: &BatchWork, sorted: &SortedRuns, left: &mut UnfinishedWork) -> Result<()> {
        let begin = Moment::now();
        // Events come first, because receivers wait for them. If the table fails, the rest of the
        // batch is processed nevertheless, and the batch is then delivered again.
        let events = self.queue_webhook_events(work, left).await;
        for runs in sorted.later.chunks(ROW_BATCH_SIZE) {
            let put_off = self.postpone_runs(runs).await;
            left.record_outcome(
                runs.iter().map(|(at, _)| RecordSubject::Run(at.clone())),
                &put_off,
                "runs could not be put off",
            )?;
        }
        for runs in sorted.now.chunks(RUN_BATCH_SIZE) {
            if begin.age() > MAX_DURATION {
                return Err(Failure::Unavailable("the batch takes too long for one call".to_owned()));
            }
            self.index_or_report(runs, left).await?;
        }
        for removed in work.removed() {
            let cleared = self.delete_leftovers(removed).await;
            left.record_outcome([removed.clone()], &cleared, "what an entity left behind could not be removed")?;
        }
        let marked: Vec<_> = work.marked_traces().collect();
        let put_off = self.pack_later(&marked, PACKING_DELAY).await;
        left.record_outcome(
            marked.into_iter().map(RecordSubject::MarkedTraces),
            &put_off,
            "traces could not be put off",
        )?;
        add_partitions(&self.table, work.marked.crowded_days(), || self.schedule.now()).await;
        // Packing comes last because it takes longest.
        let begin_packing = Moment::now();
        let packings = work.traces_to_pack().map(|(partition, scope)| async move {
            let packed = if begin_packing.age() > MAX_PACKING_DURATION || begin.age() > MAX_DURATION {
                // The time for packing is over, so packing of the partition is requested again. The
                // stream delivers the new request after its other records.
                self.table.put(packing_request(&partition, &scope), &Condition::Always).await
            } else {
                self.pack_or_postpone(partition, &scope).await
            };
            (RecordSubject::TracesToPack(partition, scope), packed)
        });
        // A pass pauses after each block to reduce the load on its partition, and other passes run
        // during the pause. All passes run to completion, because each of them holds a lock.
        let packings = stream::iter(packings.collect::<Vec<_>>()).buffer_unordered(PARTITION_CONCURRENCY);
        for (subject, packed) in packings.collect::<Vec<_>>().await {
            left.record_outcome([subject], &packed, "traces could not be packed")?;
        }
        events
    }

    /// Queues the events of a batch for their webhooks.
    ///
    /// # Errors
    /// Returns a failure that concerns the table ([`has_to_wait`]). The events that were not queued
    /// remain to be done.
    async fn queue_webhook_events(&self, work: &BatchWork, left: &mut UnfinishedWork) -> Result<()> {
        let events: Vec<_> = work.webhook_events().collect();
        if events.is_empty() {
            return Ok(());
        }
        let mut outcome = Ok(());
        for (event, queued) in self.webhooks.add(&events).await {
            let subject = RecordSubject::WebhookEvent(event.clone());
            outcome = outcome.and(left.record_outcome([subject], &queued, "an event could not be queued"));
        }
        outcome
    }

    /// Deletes the remaining data of a deleted entity, unless the entity has been created again.
    async fn delete_leftovers(&self, subject: &RecordSubject) -> Result<()> {
        match subject {
            RecordSubject::Run(_)
            | RecordSubject::MarkedTraces(_)
            | RecordSubject::TracesToPack(..)
            | RecordSubject::WebhookEvent(_) => Ok(()),
            RecordSubject::RemovedRun(at, started) => self.index.clear_up_run(at, *started).await,
            RecordSubject::RemovedExperiment(experiment, workspace, name) => {
                self.index.clear_up_experiment(*experiment, workspace, name).await
            }
            RecordSubject::RemovedDataset(dataset) => self.index.clear_up_dataset(dataset).await,
        }
    }

    /// Packs a partition of traces. If that fails, it is retried some minutes later, so that other
    /// changes do not wait for it.
    async fn pack_or_postpone(&self, partition: TracePartition, scope: &PackingScope) -> Result<()> {
        let packed = AssertUnwindSafe(self.pack_traces(partition, scope)).catch_unwind().await;
        let Err(failure) = packed.unwrap_or_else(|_| Err(Failure::Unexpected("a panic".to_owned()))) else {
            return Ok(());
        };
        if matches!(failure, Failure::Inaccessible(_)) {
            // Postponing the partition would fail as well, so the failure is returned.
            return Err(failure);
        }
        tracing::error!(?failure, ?partition, "traces could not be packed, and are put off");
        self.pack_later(&[partition], PACKING_DELAY).await
    }

    /// Packs a partition of traces. If marks are left, or if some were too recent to be packed,
    /// schedules another check of the partition.
    async fn pack_traces(&self, partition: TracePartition, scope: &PackingScope) -> Result<()> {
        let (thresholds, now) = (self.packing_thresholds, self.schedule.now());
        let thresholds = if scope.is_all { thresholds.for_few_traces() } else { thresholds };
        let from = scope.from.as_ref();
        let again =
            Box::pin(pack_partition(&self.table, &self.archive, partition, from, thresholds, self.releases, now))
                .await?;
        if let Some(from) = &again.from {
            // The rest of the partition is packed later: the stream delivers the new request after
            // its other records.
            let rest = PackingScope { from: Some(from.clone()), is_all: scope.is_all };
            self.table.put(packing_request(&partition, &rest), &Condition::Always).await?;
        }
        match again.within {
            Some(ms) => self.pack_later(&[partition], ms).await,
            None => Ok(()),
        }
    }

    /// Schedules packing of partitions in `ms` ms, unless they already have a row that schedules
    /// it. Takes one request per 25 partitions.
    async fn pack_later(&self, partitions: &[TracePartition], ms: i64) -> Result<()> {
        let now = self.schedule.now();
        // The time is rounded, so that repeated requests for a partition are due at the same time
        // and result in one row.
        let grain = if ms > 3_600_000 { 3_600_000 } else { 30_000 };
        let due = now.saturating_add(ms).div_euclid(grain).saturating_add(1).saturating_mul(grain);
        let missing = || partitions.iter().filter(|partition| self.packing_schedule.is_missing(partition, now, due));
        let rows = missing().map(|partition| Item::new(crate::trace_packing::row_of(partition, due)));
        self.table.write_many(rows.collect(), &[]).await?;
        for partition in missing().copied().collect::<Vec<_>>() {
            self.packing_schedule.remember(partition, due, now);
        }
        Ok(())
    }

    /// Indexes runs together, or one by one if that fails.
    async fn index_or_report(&self, runs: &[RunLocation], left: &mut UnfinishedWork) -> Result<()> {
        // A panic is a bug that a single run triggers. It is caught, because it must not affect the
        // other runs.
        let indexed = AssertUnwindSafe(self.index_or_postpone(runs)).catch_unwind().await;
        let indexed = indexed.unwrap_or_else(|_| Err(Failure::Unexpected("a panic".to_owned())));
        match indexed {
            Err(failure) if runs.len() > 1 && !has_to_wait(&failure) => {
                tracing::warn!(?failure, "runs could not be indexed together");
                for run in runs {
                    Box::pin(self.index_or_report(std::slice::from_ref(run), left)).await?;
                }
                Ok(())
            }
            indexed => left.record_outcome(
                runs.iter().cloned().map(RecordSubject::Run),
                &indexed,
                "a run could not be indexed",
            ),
        }
    }

    async fn index_or_postpone(&self, runs: &[RunLocation]) -> Result<()> {
        // The setting is read once per portion and not once per batch. A batch may take minutes,
        // and a rebuild of the index relies on settings that were changed before it began.
        let setting = IndexedFieldsSetting::read(&self.table).await?;
        let later = self.index_runs(runs, &setting).await?;
        self.postpone_runs(&later).await
    }

    /// Writes rows for postponed runs. Each row makes a tick check the run when the row is due.
    /// Takes one request per 25 runs.
    async fn postpone_runs(&self, runs: &[(RunLocation, i64)]) -> Result<()> {
        let rows = runs.iter().map(|(at, due)| Item::new(row_of(at, *due)));
        self.table.write_many(rows.collect(), &[]).await?;
        self.schedule.remember(runs);
        Ok(())
    }
}

/// Checks whether a failure has to be waited out, because it concerns the table and not the record:
/// the table was throttled, unavailable or inaccessible.
fn has_to_wait(failure: &Failure) -> bool {
    matches!(failure, Failure::Throttled(_) | Failure::Unavailable(_) | Failure::Inaccessible(_))
}

/// The unfinished part of a batch.
struct UnfinishedWork {
    /// Subjects that have not been processed yet.
    undone: HashSet<RecordSubject>,
    /// Subjects that failed.
    failed: Vec<RecordSubject>,
}

impl UnfinishedWork {
    /// Returns all work of a batch as unfinished, except for runs that had already been postponed.
    fn of(sorted: &SortedRuns, work: &BatchWork) -> Self {
        let runs = sorted.now.iter().chain(sorted.later.iter().map(|(at, _)| at)).cloned().map(RecordSubject::Run);
        let traces = work.marked_traces().map(RecordSubject::MarkedTraces);
        let traces =
            traces.chain(work.traces_to_pack().map(|(partition, scope)| RecordSubject::TracesToPack(partition, scope)));
        let events = work.webhook_events().cloned().map(RecordSubject::WebhookEvent);
        let undone = runs.chain(work.removed().cloned()).chain(traces).chain(events);
        Self { undone: undone.collect(), failed: Vec::new() }
    }

    /// Records the outcome of the work for these subjects. If the table cannot be accessed
    /// ([`has_to_wait`]), the error is returned, and the subjects remain to be done.
    fn record_outcome(
        &mut self,
        subjects: impl IntoIterator<Item = RecordSubject>,
        outcome: &Result<()>,
        what: &str,
    ) -> Result<()> {
        if let Err(failure) = outcome
            && has_to_wait(failure)
        {
            return Err(failure.clone());
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
