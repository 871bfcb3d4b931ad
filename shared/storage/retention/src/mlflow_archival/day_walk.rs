//! Archives the traces of an experiment, day by day.

use std::collections::HashMap;

use entities::attributes::{FILED, SHARDS};
use entities::{StoredTrace, now_ms};
use futures::stream::{self, StreamExt};
use key_schema::{Ascending, rows};
use mlflow_api::{ExperimentId, Result, TraceId};
use table::{Query, Table, Update, number};
use trace_blocks::{Block, TraceKey, TracePartition, day_of, read_traces};

use super::trace_archival::{TraceArchiver, TraceOutcome};

const DAY_MS: i64 = 86_400_000;
/// Time in ms after which the traces of a day are examined again.
const EXAMINATION_INTERVAL: i64 = 30 * DAY_MS;
/// Time in ms within which a request to archive traces at once relies on an earlier examination of a
/// day. A pass may end before all days are examined, and the next one continues.
const REQUEST_INTERVAL: i64 = DAY_MS;
/// Number of marks that are read at a time.
const MARK_BATCH_SIZE: usize = 100;
/// Number of blocks that are read at a time. Each has about 30 KB.
const BLOCK_BATCH_SIZE: usize = 10;
/// Number of traces whose documents are read at a time.
const TRACE_BATCH_SIZE: usize = 100;
/// Number of traces that are archived concurrently.
const CONCURRENCY: usize = 8;

/// Number of traces with each outcome, and what ended the walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WalkOutcome {
    /// Traces that were archived.
    pub(super) archived: u64,
    /// Traces that cannot be archived, and are not marked.
    pub(super) blocked: u64,
    /// Traces that are in progress.
    pub(super) in_progress: u64,
    /// Traces that the next pass archives, and blocks that cannot be read.
    pub(super) postponed: u64,
    /// Whether the maximum number of traces per pass was reached.
    pub(super) is_cut_off: bool,
}

impl WalkOutcome {
    fn add(&mut self, other: Self) {
        self.archived += other.archived;
        self.blocked += other.blocked;
        self.in_progress += other.in_progress;
        self.postponed += other.postponed;
        self.is_cut_off |= other.is_cut_off;
    }

    fn note(&mut self, outcome: Result<TraceOutcome>, trace: &TraceId) {
        match outcome {
            Ok(TraceOutcome::Archived) => self.archived += 1,
            Ok(TraceOutcome::Done) => {}
            Ok(TraceOutcome::Blocked) => self.blocked += 1,
            Ok(TraceOutcome::InProgress) => self.in_progress += 1,
            Ok(TraceOutcome::Transient) => self.postponed += 1,
            Err(error) => {
                tracing::warn!(%trace, %error, cause = error.cause, "a trace could not be archived, and will be tried again");
                self.postponed += 1;
            }
        }
    }
}

/// The traces of an experiment that are to be archived.
pub(super) struct TraceWalk<'a> {
    pub(super) table: &'a Table,
    pub(super) archiver: TraceArchiver<'a>,
    pub(super) experiment: ExperimentId,
    /// Latest start time of the traces, in ms.
    pub(super) until: i64,
    /// Whether a user has requested the archival.
    pub(super) is_requested: bool,
}

impl TraceWalk<'_> {
    /// Archives at most `left` traces, oldest day first, and subtracts their number from `left`.
    /// Takes one request for the list of days, and for each day that is not finished two per
    /// partition, one per hundred marks and one per ten blocks, one per hundred traces for their
    /// documents, and those of [`TraceArchiver::archive`] for each trace.
    ///
    /// # Errors
    /// Failures of the table. Failures to archive single traces are logged.
    pub(super) async fn run(&self, left: &mut u64) -> Result<WalkOutcome> {
        let mut outcome = WalkOutcome::default();
        let interval = if self.is_requested { REQUEST_INTERVAL } else { EXAMINATION_INTERVAL };
        let examined_since = now_ms().saturating_sub(interval);
        for item in self.table.query(Query::of(rows::TraceDay::all(&self.experiment))).await? {
            let Some(row) = item.key().as_ref().and_then(rows::TraceDay::parse) else { continue };
            let day = row.day.0;
            if day > day_of(self.until) {
                break;
            }
            if item.get(FILED).is_some_and(|filed| filed > examined_since) {
                continue;
            }
            let mut of_day = WalkOutcome::default();
            for shard in 0..item.get(SHARDS).unwrap_or(1) {
                let partition = TracePartition { experiment: self.experiment, day, shard };
                of_day.add(self.partition(partition, left).await?);
                if of_day.is_cut_off {
                    break;
                }
            }
            outcome.add(of_day);
            if of_day.is_cut_off {
                break;
            }
            let end = day.saturating_add(1).saturating_mul(DAY_MS);
            // Traces of the current day and the day before may still arrive.
            let is_over = end <= self.until && end <= now_ms().saturating_sub(DAY_MS);
            // A trace that never ends does not have the day examined once per hour.
            let is_awaited = self.is_requested && of_day.in_progress > 0;
            if of_day.postponed == 0 && !is_awaited && is_over {
                let key = rows::TraceDay::key(&self.experiment, &Ascending(day));
                self.table.apply(&Update::new(key).set(FILED, number(now_ms()))).await?;
            }
        }
        Ok(outcome)
    }

    async fn partition(&self, partition: TracePartition, left: &mut u64) -> Result<WalkOutcome> {
        let mut outcome = WalkOutcome::default();
        let mut query = Query::of(partition.marks()).limit(MARK_BATCH_SIZE);
        loop {
            let page = self.table.query_page(&query).await?;
            let mut places: Vec<_> = page.items.iter().filter_map(|item| TraceKey::of_key(&item.key()?)).collect();
            places.dedup();
            outcome.add(self.traces(partition, places, left).await?);
            match page.next {
                Some(next) if !outcome.is_cut_off => query = query.starting_at(next),
                _ => break,
            }
        }
        let mut query = Query::of(partition.blocks()).limit(BLOCK_BATCH_SIZE);
        while !outcome.is_cut_off {
            let page = self.table.query_page(&query).await?;
            let mut places = Vec::new();
            for item in page.items {
                match Block::of(item).and_then(|block| block.core()) {
                    Ok(core) => places.extend(core.into_iter().map(|trace| trace.place)),
                    Err(error) => {
                        tracing::error!(%error, "a block of traces cannot be read, and its traces are not archived");
                        outcome.postponed += 1;
                    }
                }
            }
            outcome.add(self.traces(partition, places, left).await?);
            match page.next {
                Some(next) => query = query.starting_at(next),
                None => break,
            }
        }
        Ok(outcome)
    }

    /// Archives the traces that are at these places.
    async fn traces(&self, partition: TracePartition, places: Vec<TraceKey>, left: &mut u64) -> Result<WalkOutcome> {
        let mut outcome = WalkOutcome::default();
        let mut places = places;
        places.retain(|place| place.time <= self.until);
        for places in places.chunks(TRACE_BATCH_SIZE) {
            let documents = self.documents(places).await?;
            let is_there =
                |place: &&TraceKey| documents.get(&place.trace).is_some_and(|trace| partition.holds(trace, place));
            let mut there: Vec<_> =
                places.iter().filter(is_there).filter_map(|place| documents.get(&place.trace)).collect();
            let most = usize::try_from(*left).unwrap_or(usize::MAX);
            outcome.is_cut_off = there.len() > most;
            there.truncate(most);
            let by = &self.archiver;
            let archivals = there.into_iter().map(|trace| async move { (trace.id(), by.archive(trace).await) });
            let archivals: Vec<_> = archivals.collect();
            let archived: Vec<_> = stream::iter(archivals).buffer_unordered(CONCURRENCY).collect().await;
            let before = outcome.archived;
            for (trace, archived) in archived {
                outcome.note(archived, trace);
            }
            *left = left.saturating_sub(outcome.archived - before);
            if outcome.is_cut_off {
                break;
            }
        }
        Ok(outcome)
    }

    /// Reads the documents of the traces at these places.
    async fn documents(&self, places: &[TraceKey]) -> Result<HashMap<TraceId, StoredTrace>> {
        let ids: Vec<_> = places.iter().map(|place| &place.trace).collect();
        read_traces(self.table, &ids).await
    }
}
