//! Delivery of the stream to the indexer, modelled on Lambda's event source mapping: batches of
//! records, one after another per shard.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use embedded_engine::StreamReader;
use entities::attributes::{REVISION, SEEN};
use fts_indexer::{Indexer, StreamBatch};
use key_schema::definition::{PK, SK};
use key_schema::{Key, rows};
use runtime::clock::Moment;
use serde_json::Value;
use table::{Table, UsageMeter};

use crate::call_counts::{CallCounts, CallKind};
use crate::compute::{CpuRule, measured};
use crate::executor::{BusyCounter, sleep_until};
use crate::indexing_lag::IndexingLag;
use crate::load::Load;
use crate::{Failure, Result};

/// Number of shards of the stream: four, because an on-demand table starts with four partitions.
/// All items of a partition key are in one shard.
pub(crate) const SHARD_COUNT: usize = 4;
/// Maximum number of records in a batch, and their maximum size in bytes.
const BATCH_SIZE: usize = 1_000;
const MAX_BATCH_BYTES: usize = 6_000_000;
/// Time for which changes are gathered before a batch is delivered: `IndexingDelay` of
/// `template.yaml`.
pub(crate) const BATCH_WINDOW: Duration = Duration::from_secs(5);
/// Interval at which a shard is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Pause before a batch is retried. It grows linearly with each further attempt, up to a maximum.
const BACKOFF_STEP: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(10);

/// A record, with the time when it arrived in the stream.
struct WaitingRecord {
    since: Duration,
    // The record as text, because a parsed value takes several times as much memory.
    text: String,
}

struct Shard {
    records: RefCell<VecDeque<WaitingRecord>>,
    /// Start of the batch that the indexer is processing.
    began: Cell<Option<Duration>>,
    /// Start of a batch that was completed since the stream was last read.
    done: Cell<Option<Duration>>,
    work: Cell<IndexerWork>,
}

/// The time for which an indexer was busy.
#[derive(Clone, Copy, Debug, Default)]
pub struct IndexerWork {
    /// Time spent waiting for the table.
    pub waits: Duration,
    /// Processor time, as if the indexer had a whole core.
    pub computed: Duration,
}

impl IndexerWork {
    fn plus(self, more: Self) -> Self {
        Self { waits: self.waits + more.waits, computed: self.computed + more.computed }
    }
}

/// The delivery of the stream: the records that wait for it, by shard, and the work of the
/// indexers.
pub(crate) struct StreamDelivery {
    shards: Vec<Shard>,
    begin: Moment,
    rule: CpuRule,
    /// Memory of the indexer, in MB.
    memory: u32,
    packs_traces: bool,
    /// Work of the ticks.
    tick_work: Cell<IndexerWork>,
}

impl StreamDelivery {
    pub(crate) fn new(begin: Moment, rule: CpuRule, load: Load, memory: u32) -> Self {
        let shard = || Shard {
            records: RefCell::default(),
            began: Cell::default(),
            done: Cell::default(),
            work: Cell::default(),
        };
        Self {
            shards: std::iter::repeat_with(shard).take(SHARD_COUNT).collect(),
            begin,
            rule,
            memory,
            packs_traces: matches!(load, Load::Traces { .. }),
            tick_work: Cell::default(),
        }
    }

    /// Starts a new measurement.
    pub(crate) fn reset(&self) {
        self.tick_work.set(IndexerWork::default());
        self.shards.iter().for_each(|shard| shard.work.set(IndexerWork::default()));
    }

    /// Returns the work of each shard's indexer, followed by the work of the ticks.
    pub(crate) fn work(&self) -> Vec<IndexerWork> {
        self.shards.iter().map(|shard| shard.work.get()).chain([self.tick_work.get()]).collect()
    }

    /// Runs a call of the indexer, including the simulated time that it computes, and counts the
    /// call. Returns the call's output and its work.
    async fn call<T>(
        &self,
        work: impl Future<Output = T>,
        is_answered: impl FnOnce(&T) -> bool,
        meter: &UsageMeter,
        tally: &RefCell<CallCounts>,
    ) -> (T, IndexerWork) {
        let begin = Moment::now();
        let (output, on_this_machine) = measured(work).await;
        let (usage, waits) = (meter.take(), begin.age());
        let computed = self.rule.of_indexer(&usage, self.packs_traces);
        runtime::clock::sleep(self.rule.slowed(computed, self.memory)).await;
        let mut tally = tally.borrow_mut();
        tally.count(CallKind::Indexer, if is_answered(&output) { 200 } else { 500 }, &usage, begin.age());
        tally.add_compute(CallKind::Indexer, on_this_machine, computed);
        (output, IndexerWork { waits, computed })
    }

    /// Reads the stream in a loop, and reports indexed runs to `lag`.
    pub(crate) async fn read(&self, stream: StreamReader, busy: BusyCounter, lag: &IndexingLag) -> Result<()> {
        loop {
            let now = self.begin.age();
            // All records that were added to the stream since the last read were written by these
            // batches. Which of them has written a record is not known, so the earliest start is
            // assumed.
            let began = self.shards.iter().filter_map(|shard| shard.done.take().or(shard.began.get())).min();
            loop {
                let records = busy.during(stream.oldest(BATCH_SIZE)).await?;
                let Some(last) = records.last() else { break };
                let number = last.pointer("/dynamodb/SequenceNumber").and_then(Value::as_str);
                busy.during(stream.forget_through(number.ok_or("a stream record has no sequence number")?)).await?;
                let is_last = records.len() < BATCH_SIZE;
                for record in &records {
                    let key = key_of(record).ok_or("a stream record has no key")?;
                    let is_wanted = fts_indexer::is_for_indexer(record);
                    if let Some(copy) = rows::IndexedCopy::parse(&key).filter(|_| record["eventName"] != "REMOVE") {
                        lag.indexed(&copy.entity.0, began.unwrap_or(now), now);
                    }
                    // A changed run without a mark shows that the indexer is done with the run. The
                    // record of its copy is not sufficient, because the indexer does not write a
                    // copy that has not changed.
                    if let Some(run) = rows::Run::parse(&key).filter(|_| record["eventName"] == "MODIFY" && !is_wanted)
                    {
                        lag.indexed(run.run.as_str(), now, now);
                    }
                    // A run that keeps its mark is packed, but not indexed.
                    if let Some(run) = rows::Run::parse(&key).filter(|_| is_packed(record)) {
                        lag.indexed(run.run.as_str(), began.unwrap_or(now), now);
                    }
                    if is_wanted {
                        let text = record.to_string();
                        self.shards[shard_of(&key)].records.borrow_mut().push_back(WaitingRecord { since: now, text });
                    }
                }
                if is_last {
                    break;
                }
            }
            runtime::clock::sleep(POLL_INTERVAL).await;
        }
    }

    /// Delivers the records of a shard to an indexer of its own, in a loop.
    pub(crate) async fn deliver(
        &self,
        shard: usize,
        table: &Table,
        lag: &IndexingLag,
        tally: &RefCell<CallCounts>,
    ) -> Result<()> {
        let shard = &self.shards[shard];
        let meter = UsageMeter::default();
        let indexer = Indexer::new(table.metered(meter.clone())).with_clock(runtime::clock::now_ms);
        loop {
            let is_due = {
                let records = shard.records.borrow();
                let waits = records.front().map(|first| self.begin.age().saturating_sub(first.since));
                records.len() >= BATCH_SIZE || waits.is_some_and(|waits| waits >= BATCH_WINDOW)
            };
            if !is_due {
                runtime::clock::sleep(POLL_INTERVAL).await;
                continue;
            }
            let mut batch = shard.next_batch()?;
            let mut attempts = 0;
            while !batch.is_empty() {
                shard.began.set(Some(self.begin.age()));
                let records = batch.iter().map(|(_, record)| record.clone()).collect();
                let handled = indexer.handle(StreamBatch { records });
                let (answer, work) =
                    self.call(handled, |answer| answer.batch_item_failures.is_empty(), &meter, tally).await;
                shard.done.set(shard.began.take().or(shard.done.get()));
                shard.work.set(shard.work.get().plus(work));
                let failed: Vec<_> =
                    answer.batch_item_failures.into_iter().filter_map(|failure| failure.item_identifier).collect();
                let is_failed =
                    |record: &Value| failed.iter().any(|number| *number == record["dynamodb"]["SequenceNumber"]);
                let done = batch.iter().position(|(_, record)| is_failed(record)).unwrap_or(batch.len());
                for (since, _) in batch.drain(..done) {
                    lag.delivered(self.begin.age().saturating_sub(since));
                }
                attempts = if done > 0 { 1 } else { attempts + 1 };
                if !batch.is_empty() {
                    runtime::clock::sleep((BACKOFF_STEP * attempts).min(MAX_BACKOFF)).await;
                }
            }
        }
    }

    /// Runs a tick of the indexer once per minute, as the schedule does in AWS.
    pub(crate) async fn tick(&self, table: &Table, tally: &RefCell<CallCounts>) -> Result<()> {
        let meter = UsageMeter::default();
        let indexer = Indexer::new(table.metered(meter.clone())).with_clock(runtime::clock::now_ms);
        for minute in 1.. {
            sleep_until(&self.begin, Duration::from_mins(1) * minute).await;
            let (_, work) = self.call(async { indexer.tick().await.is_ok() }, |is_ok| *is_ok, &meter, tally).await;
            self.tick_work.set(self.tick_work.get().plus(work));
        }
        Ok(())
    }

    /// Returns the number of waiting records.
    pub(crate) fn waiting(&self) -> usize {
        self.shards.iter().map(|shard| shard.records.borrow().len()).sum()
    }
}

impl Shard {
    fn next_batch(&self) -> Result<VecDeque<(Duration, Value)>> {
        let mut records = self.records.borrow_mut();
        let (mut batch, mut bytes) = (VecDeque::new(), 0);
        while let Some(record) = records.front() {
            bytes += record.text.len();
            if batch.len() == BATCH_SIZE || (bytes > MAX_BATCH_BYTES && !batch.is_empty()) {
                break;
            }
            batch.push_back((record.since, serde_json::from_str(&record.text)?));
            records.pop_front();
        }
        Ok::<_, Failure>(batch)
    }
}

fn key_of(record: &Value) -> Option<Key> {
    let part = |name: &str| record["dynamodb"]["Keys"][name]["S"].as_str().map(str::to_owned);
    Some(Key { pk: part(PK)?, sk: part(SK)? })
}

fn shard_of(key: &Key) -> usize {
    let mut hasher = DefaultHasher::new();
    key.pk.hash(&mut hasher);
    usize::try_from(hasher.finish() % SHARD_COUNT as u64).unwrap_or_default()
}

/// Checks whether the indexer has processed the current revision of a run that keeps its mark, according
/// to the stream record of the run.
fn is_packed(record: &Value) -> bool {
    let number = |name: &str| record["dynamodb"]["NewImage"][name]["N"].as_str();
    number(SEEN.name()).is_some_and(|seen| number(REVISION.name()) == Some(seen))
}
