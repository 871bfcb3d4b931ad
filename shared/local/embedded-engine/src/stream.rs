//! Reader of a table's stream, in the format that Lambda delivers.

use std::fmt;
use std::io;

use serde_json::{Value, json};

use crate::engine::{Engine, StreamLock};
use crate::error::EngineError;

/// Number of records per request. A record may have two images of 400 KB each.
const PAGE_SIZE: usize = 100;
/// Size in bytes from which no further record is added to a batch. Lambda accepts 6 MB.
const MAX_BATCH_BYTES: u64 = 4_000_000;

/// The only reader of a table's stream.
///
/// The reader does not store a position, because the stream begins with the first record that has
/// not been processed. Processed records are deleted with [`forget_through`](Self::forget_through).
/// A reader that restarts therefore loses nothing, and the stream stays small.
pub struct StreamReader {
    engine: Engine,
    table: String,
    arn: String,
    /// Iterator at the start of the stream. The engine's iterators do not expire.
    start_iterator: Value,
    _lock: StreamLock,
}

impl fmt::Debug for StreamReader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StreamReader").field("arn", &self.arn).finish_non_exhaustive()
    }
}

impl Engine {
    /// Returns the reader of a table's stream. Returns `None` while another process reads the
    /// stream, because two readers would process each record twice. An engine in memory belongs to
    /// one process, which has to ensure that it has only one reader.
    pub async fn stream(&self, table: &str) -> Result<Option<StreamReader>, EngineError> {
        match self.lock_streams()? {
            None => Ok(None),
            Some(lock) => StreamReader::open(self.clone(), table, lock).await.map(Some),
        }
    }
}

impl StreamReader {
    async fn open(engine: Engine, table: &str, lock: StreamLock) -> Result<Self, EngineError> {
        let streams = engine.call("ListStreams", json!({ "TableName": table })).await?;
        let Some(arn) = streams.pointer("/Streams/0/StreamArn").and_then(Value::as_str).map(str::to_owned) else {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("the table {table} has no stream")).into());
        };
        let stream = engine.call("DescribeStream", json!({ "StreamArn": arn })).await?;
        // In the engine, each stream has a single shard.
        let shard = stream.pointer("/StreamDescription/Shards/0/ShardId");
        let from_start = json!({ "StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON" });
        let mut iterator = engine.call("GetShardIterator", from_start).await?;
        let horizon = iterator["ShardIterator"].take();
        Ok(Self { engine, table: table.to_owned(), arn, start_iterator: horizon, _lock: lock })
    }

    /// Returns the oldest records, up to `limit` and about 4 MB, in the format that Lambda
    /// delivers. Later calls return these records again until they are deleted.
    pub async fn oldest(&self, limit: usize) -> Result<Vec<Value>, EngineError> {
        let mut records = Vec::new();
        let mut length = 0;
        let mut iterator = self.start_iterator.clone();
        while records.len() < limit {
            let asked = PAGE_SIZE.min(limit - records.len());
            let mut page = self.engine.call("GetRecords", json!({ "ShardIterator": iterator, "Limit": asked })).await?;
            iterator = page["NextShardIterator"].take();
            let Value::Array(read) = page["Records"].take() else { break };
            let is_last = read.len() < asked;
            for mut record in read {
                length += record.pointer("/dynamodb/SizeBytes").and_then(Value::as_u64).unwrap_or_default();
                // The first record is always included, because the reader would otherwise make no
                // progress.
                if length > MAX_BATCH_BYTES && !records.is_empty() {
                    return Ok(records);
                }
                record["eventSourceARN"] = json!(self.arn);
                records.push(record);
            }
            if is_last {
                break;
            }
        }
        Ok(records)
    }

    /// Deletes the records up to and including the one with this `SequenceNumber`, after they have
    /// been processed.
    pub async fn forget_through(&self, sequence_number: &str) -> Result<usize, EngineError> {
        self.engine.trim_stream_through(&self.table, sequence_number).await
    }
}
