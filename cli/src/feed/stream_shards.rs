//! Delivers the stream of a DynamoDB table to the indexer if no Lambda function consumes it.
//!
//! Every start begins with the oldest records of the stream, which are up to 24 hours old.
//! Processing a record again is safe, because a record only identifies a changed entity, and an
//! entity that is already indexed costs one read. The exception are events for webhooks, which
//! would be queued and sent again. Therefore, the position in a shard is stored after each batch
//! that contains events ([`StreamPositions`]), and the next start continues there.
//!
//! Shards are read in turn, and the indexer processes one batch at a time. The order of records
//! across shards only matters for events: a shard is not read until its parent has been read to its
//! end, so that the events of a model are sent in order.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use embedded_engine::EngineError;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::stream_client::{ListedShard, StreamClient, StreamError};
use super::stream_positions::StreamPositions;
use super::{BACKOFF_STEP, Consumer, ResumePosition, StreamFeed, deliver_all};

/// Pause when no shard had records. Each round costs one request per shard.
const EMPTY_PAUSE: Duration = Duration::from_secs(2);
/// Interval at which new shards are discovered. DynamoDB closes a shard after some hours, or under
/// high write load.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(30);

/// Starts delivering the stream to a consumer, which also checks its postponed runs at intervals of
/// `tick`.
pub(crate) fn follow(
    requests: StreamClient,
    positions: StreamPositions,
    consumer: impl Consumer,
    tick: Duration,
) -> StreamFeed {
    let (stop, mut stopped) = oneshot::channel();
    let task = tokio::spawn(async move {
        let mut shards = StreamShards { positions: Some(positions), ..StreamShards::default() };
        let mut ticked = None::<Instant>;
        loop {
            let pause = match shards.round(&requests, &consumer).await {
                Ok(true) => Duration::ZERO,
                Ok(false) => EMPTY_PAUSE,
                Err(refused) => {
                    tracing::error!(%refused, "the table's stream could not be read");
                    BACKOFF_STEP * 5
                }
            };
            if ticked.is_none_or(|ticked| ticked.elapsed() >= tick) {
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
    StreamFeed { stop, task, is_reading: Arc::default() }
}

/// The shards of a stream that have not been read to their end.
#[derive(Default)]
struct StreamShards {
    stream: Option<String>,
    positions: Option<StreamPositions>,
    /// The positions that earlier processes stored, by shard. Read once, when the stream is opened.
    stored: HashMap<String, String>,
    open: BTreeMap<String, Shard>,
    /// Names of the shards that were read to their end.
    done: HashSet<String>,
    last_discovery: Option<Instant>,
}

#[derive(Default)]
struct Shard {
    iterator: Option<String>,
    /// Sequence number of the shard's last processed record.
    last: Mutex<Option<String>>,
    /// Whether `last` was stored by an earlier process. If the stream has trimmed that record since
    /// then, reading begins with the shard's oldest record, as without a stored position, and no
    /// loss of records is reported.
    is_stored: bool,
}

impl StreamShards {
    /// Delivers a page of each shard, and returns whether any shard had records.
    async fn round(&mut self, requests: &StreamClient, consumer: &impl Consumer) -> Result<bool, StreamError> {
        if self.last_discovery.is_none_or(|looked| looked.elapsed() >= DISCOVERY_INTERVAL) {
            self.discover_shards(requests).await?;
            self.last_discovery = Some(Instant::now());
        }
        let Some(stream) = self.stream.clone() else { return Ok(false) };
        let (mut has_read, mut ended, mut failed) = (false, Vec::new(), None);
        for (name, shard) in &mut self.open {
            match shard.read(requests, &stream, name, self.positions.as_ref(), consumer).await {
                Ok(ReadOutcome::Nothing) => {}
                Ok(ReadOutcome::Some) => has_read = true,
                Ok(ReadOutcome::End) => ended.push(name.clone()),
                // If a shard cannot be read, the other shards are read nevertheless.
                Err(refused) => failed = Some(refused),
            }
        }
        for name in ended {
            self.open.remove(&name);
            self.done.insert(name);
            // A shard ends when DynamoDB splits it or replaces it with another one, so the current
            // shards have to be discovered again.
            self.last_discovery = None;
            has_read = true;
        }
        failed.map_or(Ok(has_read), Err)
    }

    /// Discovers the current shards.
    async fn discover_shards(&mut self, requests: &StreamClient) -> Result<(), StreamError> {
        let stream = requests.stream().await?;
        if stream.is_none() {
            tracing::warn!("the table has no stream, so nothing is indexed: enable a stream with new and old images");
        }
        if stream != self.stream {
            let stored = match &self.positions {
                Some(positions) => positions.read().await.map_err(|error| StreamError::Other(format!("{error:?}")))?,
                None => HashMap::new(),
            };
            *self = Self { stream, stored, positions: self.positions.take(), ..Self::default() };
        }
        let Some(stream) = &self.stream else { return Ok(()) };
        let shards = requests.shards(stream).await?;
        // The stream drops a shard one day after it was closed, so the names of such shards can be
        // forgotten.
        let names: HashSet<_> = shards.iter().map(|shard| shard.name.as_str()).collect();
        self.done.retain(|name| names.contains(name.as_str()));
        self.open.retain(|name, _| names.contains(name.as_str()));
        for ListedShard { name, parent } in &shards {
            let waits =
                parent.as_ref().is_some_and(|parent| names.contains(parent.as_str()) && !self.done.contains(parent));
            if !waits && !self.done.contains(name) && !self.open.contains_key(name) {
                let last = self.stored.get(name).cloned();
                let shard = Shard { is_stored: last.is_some(), last: Mutex::new(last), iterator: None };
                self.open.insert(name.clone(), shard);
            }
        }
        Ok(())
    }
}

/// Outcome of reading a shard.
enum ReadOutcome {
    Nothing,
    Some,
    End,
}

impl Shard {
    async fn read(
        &mut self,
        requests: &StreamClient,
        stream: &str,
        name: &str,
        positions: Option<&StreamPositions>,
        consumer: &impl Consumer,
    ) -> Result<ReadOutcome, StreamError> {
        let iterator = self.iterator(requests, stream, name).await?;
        let page = match requests.page(&iterator).await {
            // The next round requests a new iterator.
            Err(StreamError::Expired) => return Ok(ReadOutcome::Nothing),
            Err(StreamError::Trimmed) => {
                tell_forgotten(name);
                self.set_last(None);
                return Ok(ReadOutcome::Nothing);
            }
            page => page?,
        };
        let Some(last) = page.records.last().map(|record| super::number(record).to_owned()) else {
            self.iterator = page.next;
            return Ok(if self.iterator.is_some() { ReadOutcome::Nothing } else { ReadOutcome::End });
        };
        let mut records = page.records;
        records.retain(fts_indexer::is_for_indexer);
        let taken = deliver_all(&records, consumer, &*self, BACKOFF_STEP).await;
        if !taken.map_err(|error| StreamError::Other(error.to_string()))? {
            // The records from the failed one on are delivered again in the next round.
            return Ok(ReadOutcome::Nothing);
        }
        if let Some(positions) = positions {
            positions.store(name, &records, &last).await;
        }
        self.set_last(Some(last));
        self.is_stored = false;
        self.iterator = page.next;
        Ok(if self.iterator.is_some() { ReadOutcome::Some } else { ReadOutcome::End })
    }

    /// Takes the iterator for the next read. It is put back only after the read has succeeded.
    async fn iterator(&mut self, requests: &StreamClient, stream: &str, name: &str) -> Result<String, StreamError> {
        if let Some(iterator) = self.iterator.take() {
            return Ok(iterator);
        }
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match requests.iterator(stream, name, last.as_deref()).await {
            Err(StreamError::Trimmed) => {
                if !self.is_stored {
                    tell_forgotten(name);
                }
                requests.iterator(stream, name, None).await
            }
            iterator => iterator,
        }
    }

    fn set_last(&self, last: Option<String>) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = last;
    }
}

fn tell_forgotten(shard: &str) {
    tracing::error!(shard, "the stream has trimmed records before they were indexed: run `mlflow-serverless reindex`");
}

impl ResumePosition for Shard {
    async fn forget_through(&self, number: &str) -> Result<(), EngineError> {
        self.set_last(Some(number.to_owned()));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
