//! Delivery of the stream to the indexer, modelled on Lambda's event source mapping: batches of
//! records, one after another per shard.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use embedded_engine::StreamReader;
use fts_indexer::{Indexer, StreamBatch};
use key_schema::definition::{PK, SK};
use key_schema::{Key, rows};
use runtime::clock::Moment;
use serde_json::Value;
use table::{Table, UsageMeter};

use crate::call_counts::{CallCounts, CallKind};
use crate::executor::BusyCounter;
use crate::indexing_lag::IndexingLag;
use crate::{Failure, Result};

/// Number of shards of the stream. An on-demand table starts with four partitions. All items of a
/// partition key are in one shard.
pub(crate) const SHARD_COUNT: usize = 4;
/// Maximum number of records in a batch, and their maximum size in bytes.
const BATCH_SIZE: usize = 1_000;
const MAX_BATCH_BYTES: usize = 6_000_000;
/// Time for which changes are gathered: `IndexingDelay` of `template.yaml`.
pub(crate) const BATCH_WINDOW: Duration = Duration::from_secs(5);
/// Interval at which a shard is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Pause before a batch is retried. It grows linearly with each further attempt, up to a maximum.
const BACKOFF_STEP: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(10);

/// A record, with the time when it arrived in the stream.
struct WaitingRecord {
    since: Duration,
    // As text, because a parsed value takes several times as much memory.
    text: String,
}

struct Shard {
    records: RefCell<VecDeque<WaitingRecord>>,
    /// Start of the batch that the indexer is processing.
    began: Cell<Option<Duration>>,
    /// Start of a batch that was completed since the stream was last read.
    done: Cell<Option<Duration>>,
}

/// The records that wait in the stream.
pub(crate) struct StreamDelivery {
    shards: Vec<Shard>,
    begin: Moment,
}

impl StreamDelivery {
    pub(crate) fn new(begin: Moment) -> Self {
        let shard = || Shard { records: RefCell::default(), began: Cell::default(), done: Cell::default() };
        Self { shards: std::iter::repeat_with(shard).take(SHARD_COUNT).collect(), begin }
    }

    /// Reads the stream in a loop, and reports indexed runs to `lag`.
    pub(crate) async fn read(&self, stream: StreamReader, busy: BusyCounter, lag: &IndexingLag) -> Result<()> {
        loop {
            let now = self.begin.age();
            // Everything in the stream since the last read was written by these batches.
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
                    // The mark was removed, because the run has not changed since it was indexed.
                    // Its copy may have stayed the same.
                    if let Some(run) = rows::Run::parse(&key).filter(|_| record["eventName"] == "MODIFY" && !is_wanted)
                    {
                        lag.indexed(run.run.as_str(), now, now);
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
                let begin = Moment::now();
                shard.began.set(Some(self.begin.age()));
                let records = batch.iter().map(|(_, record)| record.clone()).collect();
                let answer = indexer.handle(StreamBatch { records }).await;
                shard.done.set(shard.began.take().or(shard.done.get()));
                let status = if answer.batch_item_failures.is_empty() { 200 } else { 500 };
                tally.borrow_mut().count(CallKind::Indexer, status, &meter.take(), begin.age());
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

    /// Calls an indexer once per minute.
    pub(crate) async fn tick(&self, table: &Table, tally: &RefCell<CallCounts>) -> Result<()> {
        let meter = UsageMeter::default();
        let indexer = Indexer::new(table.metered(meter.clone())).with_clock(runtime::clock::now_ms);
        loop {
            runtime::clock::sleep(Duration::from_mins(1)).await;
            let begin = Moment::now();
            let status = if indexer.tick().await.is_ok() { 200 } else { 500 };
            tally.borrow_mut().count(CallKind::Indexer, status, &meter.take(), begin.age());
        }
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
