//! Delivers the table's stream to the indexer, like Lambda's event source mapping in AWS.
//!
//! Records are delivered in batches, oldest first. The indexer's response names the records that
//! have to be delivered again, and delivery resumes at the first of these. This is repeated without
//! a limit, because the indexer itself decides when to give up on a record.
//!
//! If the call as a whole fails, the batch is halved until the record that causes the failure is
//! isolated. After [`MAX_ATTEMPTS`] attempts, that record is logged and skipped. Delivered records
//! are deleted from the stream, so that delivery resumes at the next record after a restart. Once a
//! minute, the feed makes the indexer check the runs that it has postponed.

mod consumer;
mod stream_client;
mod stream_positions;
mod stream_shards;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use embedded_engine::{Engine, EngineError, StreamFilter, StreamReader};
use entities::attributes::{HOOK, REBUILD, REVISION, TO_PACK};
use key_schema::IndexEntry;
use key_schema::index::RunsChanged;
use serde_json::Value;
use table::Table;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

pub(crate) use consumer::{Consumer, DeliveryError, LocalIndexer, RemoteIndexer};
pub(crate) use stream_client::StreamClient;
pub(crate) use stream_positions::StreamPositions;
pub(crate) use stream_shards::follow;

/// Batch size, as in `template.yaml`.
const BATCH_SIZE: usize = 1_000;
/// Maximum number of attempts to deliver a record that makes the call as a whole fail. After that,
/// the record is skipped.
const MAX_ATTEMPTS: u32 = 3;
/// Pause before the second attempt. It grows linearly with each further attempt.
const BACKOFF_STEP: Duration = Duration::from_secs(1);
/// Maximum pause between two attempts.
const MAX_BACKOFF: Duration = Duration::from_secs(10);
/// Pause when the stream is empty. Changes that arrive during the pause are indexed together, so a
/// run that logs ten times per second is indexed only twice per second.
const IDLE_PAUSE: Duration = Duration::from_millis(500);
/// Pause when the stream is empty while `reindex` is running. The pause is short, because `reindex`
/// marks few runs at a time and waits until some of them are indexed.
const REBUILD_PAUSE: Duration = Duration::from_millis(5);
/// How long `reindex` is considered to be running after the last record of a run that it has
/// marked.
const REBUILD_DURATION: Duration = Duration::from_secs(1);
/// Maximum pause while the feed waits for the oldest record to reach the configured delay.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Interval at which postponed runs are checked, as in `template.yaml`.
pub(crate) const TICK_INTERVAL: Duration = Duration::from_mins(1);
/// Filter by which the engine, when it creates stream records, selects those that the indexer
/// needs. [`fts_indexer::is_for_indexer`] additionally checks the types of the attributes.
const RECORD_FILTER: StreamFilter = StreamFilter {
    written_with: &[RunsChanged::INDEX.sort, TO_PACK.name(), HOOK.name()],
    removed_with: REVISION.name(),
};
/// Time that a shutdown waits for the batch in flight. If the batch takes longer, it is
/// interrupted, and delivered again after the next start.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Handle of a running feed.
pub(crate) struct StreamFeed {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    is_reading: Arc<AtomicBool>,
}

impl StreamFeed {
    /// Starts delivering a table's stream to a consumer. Records are delivered when they are
    /// `delay` old, or up to a second later. The consumer checks its postponed runs at intervals of
    /// `tick`.
    pub(crate) fn start(
        engine: Engine,
        table: String,
        consumer: impl Consumer,
        delay: Duration,
        tick: Duration,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let is_reading = Arc::new(AtomicBool::new(false));
        let has_claimed = Arc::clone(&is_reading);
        let task = tokio::spawn(async move {
            // A receive error means that the handle was dropped, which stops the feed as well.
            let mut stopped = stopped;
            let (mut feed, mut ticked) = (None, None::<Instant>);
            loop {
                if feed.is_none() {
                    feed = claim(&engine, &table).await.map(|stream| DeliveryRounds {
                        stream,
                        consumer: &consumer,
                        delay,
                        back_off: BACKOFF_STEP,
                        last_rebuild: None,
                    });
                    has_claimed.store(feed.is_some(), Ordering::Relaxed);
                }
                let pause = match &mut feed {
                    None => BACKOFF_STEP,
                    Some(feed) => feed.round().await.unwrap_or_else(|error| {
                        tracing::error!(%error, "the stream could not be delivered");
                        BACKOFF_STEP
                    }),
                };
                if feed.is_some() && ticked.is_none_or(|ticked| ticked.elapsed() >= tick) {
                    ticked = Some(Instant::now());
                    if let Err(trouble) = consumer.tick().await {
                        tracing::warn!(?trouble, "postponed work could not be checked");
                    }
                }
                tokio::select! {
                    biased;
                    _ = &mut stopped => return,
                    () = sleep(pause) => {}
                }
            }
        });
        Self { stop, task, is_reading }
    }

    /// Returns a flag that is set when this feed starts to read the stream. It is not set while a feed of
    /// another process does.
    pub(crate) fn is_reading(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_reading)
    }

    /// Stops the feed after the batch in flight. Interrupts that batch if it takes longer than
    /// [`SHUTDOWN_TIMEOUT`].
    pub(crate) async fn stop(self) {
        // An error means that the task has already ended.
        let _ = self.stop.send(());
        let mut task = self.task;
        if timeout(SHUTDOWN_TIMEOUT, &mut task).await.is_err() {
            task.abort();
        }
    }
}

/// Opens the stream, or returns `None` if another process is reading it.
async fn claim(engine: &Engine, table: &str) -> Option<StreamReader> {
    match open_stream(engine, table).await {
        Ok(None) => {
            tracing::debug!("another process reads the stream");
            None
        }
        Ok(stream) => stream,
        Err(error) => {
            tracing::error!(%error, "the stream could not be opened");
            None
        }
    }
}

/// Returns a table for the indexer in this process. Its writes do not wait for the disk. A power
/// cut may undo some of them, but then they are repeated, because stream records are deleted last.
pub(crate) fn table_to_index(engine: &Engine, table: &str) -> Table {
    Table::new(engine.client_ahead_of_disk(), table)
}

/// Opens the stream with the indexer's filter, or returns `None` if another process is reading it.
pub(crate) async fn open_stream(engine: &Engine, table: &str) -> Result<Option<StreamReader>, EngineError> {
    let stream = engine.stream(table).await?;
    if stream.is_some() {
        engine.filter_stream(table, RECORD_FILTER).await?;
    }
    Ok(stream)
}

struct DeliveryRounds<'a, C> {
    stream: StreamReader,
    consumer: &'a C,
    delay: Duration,
    back_off: Duration,
    /// Time at which a record of a run marked by `reindex` was last delivered.
    last_rebuild: Option<Instant>,
}

impl<C: Consumer> DeliveryRounds<'_, C> {
    /// Delivers one batch, and returns how long to pause before the next one.
    async fn round(&mut self) -> Result<Duration, EngineError> {
        let mut records = self.stream.oldest(BATCH_SIZE).await?;
        let is_full = records.len() == BATCH_SIZE;
        if !self.delay.is_zero() {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let ripe = records.iter().take_while(|record| due_time(record, self.delay) <= now).count();
            if let (0, Some(first)) = (ripe, records.first()) {
                return Ok(due_time(first, self.delay).saturating_sub(now).clamp(IDLE_PAUSE, MAX_PAUSE));
            }
            records.truncate(ripe);
        }
        let Some(last) = records.last().map(|last| number(last).to_owned()) else {
            return Ok(self.idle_pause());
        };
        records.retain(fts_indexer::is_for_indexer);
        if !deliver_all(&records, self.consumer, &self.stream, self.back_off).await? {
            return Ok(self.back_off);
        }
        self.stream.forget_through(&last).await?;
        if records.iter().any(is_rebuild) {
            self.last_rebuild = Some(Instant::now());
        }
        Ok(if is_full { Duration::ZERO } else { self.idle_pause() })
    }

    fn idle_pause(&self) -> Duration {
        let is_rebuilding = self.last_rebuild.is_some_and(|last| last.elapsed() < REBUILD_DURATION);
        if is_rebuilding { REBUILD_PAUSE } else { IDLE_PAUSE }
    }
}

/// Returns whether a record is about a run that `reindex` has marked.
fn is_rebuild(record: &Value) -> bool {
    record["dynamodb"]["NewImage"][REBUILD.name()].is_object()
}

/// A store for the position at which a feed resumes after a restart.
trait ResumePosition: Sync {
    /// Records that this record and all earlier ones need not be delivered again.
    fn forget_through(&self, number: &str) -> impl Future<Output = Result<(), EngineError>> + Send;
}

impl ResumePosition for StreamReader {
    async fn forget_through(&self, number: &str) -> Result<(), EngineError> {
        Self::forget_through(self, number).await.map(drop)
    }
}

/// Delivers the records until each of them is processed or skipped. Returns `false` if the consumer
/// is unreachable.
async fn deliver_all(
    records: &[Value],
    consumer: &impl Consumer,
    position: &impl ResumePosition,
    back_off: Duration,
) -> Result<bool, EngineError> {
    let mut rest = records;
    let mut at_once = rest.len();
    let mut attempts = 0;
    while !rest.is_empty() {
        let batch = &rest[..at_once.min(rest.len())];
        let (taken, is_named) = match consumer.deliver(batch).await {
            Ok(None) => (batch.len(), false),
            Ok(Some(first_failed)) => (first_failed, true),
            Err(DeliveryError::Unreachable(why)) => {
                tracing::warn!(why, "the indexer is unreachable");
                return Ok(false);
            }
            Err(DeliveryError::Failed(why)) if batch.len() > 1 => {
                tracing::warn!(why, records = batch.len(), "the indexer failed, retrying with half as many records");
                at_once = batch.len() / 2;
                continue;
            }
            Err(DeliveryError::Failed(why)) => {
                tracing::warn!(why, "the indexer failed");
                (0, false)
            }
        };
        let is_whole = taken == batch.len();
        if taken > 0 {
            position.forget_through(number(&batch[taken - 1])).await?;
            rest = &rest[taken..];
            attempts = 0;
        }
        if is_whole {
            at_once = records.len();
            continue;
        }
        attempts += 1;
        if is_named || attempts < MAX_ATTEMPTS {
            sleep((back_off * attempts).min(MAX_BACKOFF)).await;
        } else if let Some((left, others)) = rest.split_first() {
            let key = &left["dynamodb"]["Keys"];
            tracing::error!(%key, number = number(left), "a record is skipped after {MAX_ATTEMPTS} failed attempts");
            position.forget_through(number(left)).await?;
            rest = others;
            attempts = 0;
        }
    }
    Ok(true)
}

/// Returns the sequence number of a record.
fn number(record: &Value) -> &str {
    record["dynamodb"]["SequenceNumber"].as_str().unwrap_or_default()
}

/// Returns the time since 1970 at which a record is certainly older than the delay. A second is
/// added, because creation times of records are truncated to whole seconds.
fn due_time(record: &Value, delay: Duration) -> Duration {
    let made = record["dynamodb"]["ApproximateCreationDateTime"].as_f64().unwrap_or_default();
    Duration::try_from_secs_f64(made).unwrap_or_default() + Duration::from_secs(1) + delay
}

#[cfg(test)]
mod tests;
