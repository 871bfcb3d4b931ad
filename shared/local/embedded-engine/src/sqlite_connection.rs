//! A second SQLite connection to the engine's database, for operations that the engine does not
//! support.
//!
//! This module, [`ttl_index`](crate::ttl_index), [`table_clustering`](crate::table_clustering) and
//! [`keyless_storage`](crate::keyless_storage) rely on dynoxide's private schema. This module
//! relies on one table:
//!
//! `_stream_records(id, table_name, ..., sequence_number TEXT, shard_id, created_at INTEGER, ...)`
//!
//! It also relies on the meaning of two columns. `created_at` is in seconds, and readers of the
//! stream see the stored `sequence_number` plus [`SEQUENCE_NUMBER_OFFSET`].
//!
//! The manifest therefore pins dynoxide to one version, and the tests below check with SQLite that
//! the engine's own statements still use the indexes. If the table changes in a later version,
//! opening the database or a test fails, so a mismatch cannot go unnoticed.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, params};

use crate::EngineError;

/// Indexes of the stream's records. Each write to a table with a stream looks up the highest
/// sequence number of the stream, and a reader looks up a given sequence number. Without the
/// indexes, both would read the whole stream, and the ten-thousandth write would take twenty times
/// as long as the first.
const STREAM_INDEXES: &str = "
    CREATE INDEX IF NOT EXISTS app_stream_sequence
        ON _stream_records(table_name, CAST(sequence_number AS INTEGER));
    CREATE INDEX IF NOT EXISTS app_stream_shard
        ON _stream_records(table_name, shard_id, CAST(sequence_number AS INTEGER));";

/// Number of records to delete in one transaction. It is small enough that requests that wait for
/// the transaction are not noticeably delayed.
const TRIM_BATCH_SIZE: i64 = 500;

/// Offset of the sequence numbers that readers of the stream see. It has 21 digits, like DynamoDB's
/// numbers.
const SEQUENCE_NUMBER_OFFSET: u128 = 100_000_000_000_000_000_000;

/// Timeout for locks. It equals the timeout of the engine's own connection while it opens, because
/// another process may be creating an index of a large file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct SqliteConnection(Mutex<Connection>);

impl SqliteConnection {
    /// Opens the database at a path or URI, or creates an empty one if it is missing.
    pub(crate) fn open(location: impl AsRef<Path>) -> Result<Self, EngineError> {
        let connection = Connection::open(location)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        Ok(Self(Mutex::new(connection)))
    }

    /// Creates the indexes. The engine must have created its tables.
    pub(crate) fn index_streams(&self) -> Result<(), EngineError> {
        Ok(self.connection().execute_batch(STREAM_INDEXES)?)
    }

    /// Deletes the stream records that are older than `age`, and returns their number.
    pub(crate) fn trim_stream(&self, age: Duration) -> Result<usize, EngineError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.trim_before(i64::try_from(now.saturating_sub(age).as_secs()).unwrap_or(i64::MAX))
    }

    /// Deletes the stream records that were made before a time, in seconds since 1970.
    fn trim_before(&self, second: i64) -> Result<usize, EngineError> {
        let connection = self.connection();
        let Some(end) = first_to_keep(&connection, second)? else { return Ok(0) };
        let mut trimmed = 0;
        loop {
            let deleted = connection.execute(
                "DELETE FROM _stream_records WHERE id IN (SELECT id FROM _stream_records WHERE id < ?1 ORDER BY id LIMIT ?2)",
                params![end, TRIM_BATCH_SIZE],
            )?;
            trimmed += deleted;
            if deleted == 0 {
                return Ok(trimmed);
            }
        }
    }

    /// Deletes the records of a table's stream up to and including the given sequence number,
    /// oldest first, and returns their number.
    pub(crate) fn trim_stream_through(&self, table: &str, sequence_number: &str) -> Result<usize, EngineError> {
        let last = stored_number(sequence_number).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("not a sequence number: {sequence_number}"))
        })?;
        let connection = self.connection();
        let mut trimmed = 0;
        loop {
            let deleted = connection.execute(TRIM_THROUGH, params![table, last, TRIM_BATCH_SIZE])?;
            trimmed += deleted;
            // A batch with fewer records than the limit was the last one.
            if i64::try_from(deleted).is_ok_and(|deleted| deleted < TRIM_BATCH_SIZE) {
                return Ok(trimmed);
            }
        }
    }

    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Deletes a table's oldest records up to a sequence number.
const TRIM_THROUGH: &str = "
    DELETE FROM _stream_records WHERE id IN (
        SELECT id FROM _stream_records WHERE table_name = ?1 AND CAST(sequence_number AS INTEGER) <= ?2
        ORDER BY CAST(sequence_number AS INTEGER) LIMIT ?3)";

/// Converts a sequence number that a reader of the stream has seen to the stored number.
fn stored_number(sequence_number: &str) -> Option<i64> {
    sequence_number.parse::<u128>().ok()?.checked_sub(SEQUENCE_NUMBER_OFFSET)?.try_into().ok()
}

/// Returns the id below which all records were made before a time, in seconds since 1970. Because
/// ids increase with time, records that are kept do not have to be read.
fn first_to_keep(connection: &Connection, second: i64) -> Result<Option<i64>, EngineError> {
    let first_young = connection
        .query_row("SELECT id FROM _stream_records WHERE created_at >= ?1 ORDER BY id LIMIT 1", [second], |row| {
            row.get(0)
        })
        .optional()?;
    match first_young {
        Some(id) => Ok(Some(id)),
        None => Ok(connection.query_row("SELECT MAX(id) + 1 FROM _stream_records", [], |row| row.get(0))?),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::SqliteConnection;
    use crate::Engine;

    fn plan(engine: &Engine, statement: &str) -> String {
        let connection = engine.side().connection();
        let mut explained = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
        let parameters = vec![rusqlite::types::Null; explained.parameter_count()];
        let rows = explained.query_map(rusqlite::params_from_iter(parameters), |row| row.get::<_, String>("detail"));
        rows.unwrap().collect::<Result<Vec<_>, _>>().unwrap().join("; ")
    }

    /// Checks statements that are copied verbatim from dynoxide.
    #[test]
    fn the_engines_own_statements_use_the_indexes() {
        let engine = Engine::memory().unwrap();
        let next_number = plan(
            &engine,
            "SELECT COALESCE(MAX(CAST(sequence_number AS INTEGER)), 0) + 1 FROM _stream_records WHERE table_name = ?1",
        );
        assert!(next_number.starts_with("SEARCH _stream_records USING"), "{next_number}");
        assert!(next_number.contains("INDEX app_stream_sequence (table_name=?)"), "{next_number}");

        let records = plan(
            &engine,
            "SELECT event_name, keys_json, new_image, old_image, sequence_number, created_at, user_identity, event_id
             FROM _stream_records
             WHERE table_name = ?1 AND shard_id = ?2 AND CAST(sequence_number AS INTEGER) > ?3
             ORDER BY CAST(sequence_number AS INTEGER) ASC
             LIMIT ?4",
        );
        assert_eq!(
            records,
            "SEARCH _stream_records USING INDEX app_stream_shard (table_name=? AND shard_id=? AND <expr>>?)"
        );
    }

    #[test]
    fn trimming_uses_an_index() {
        let engine = Engine::memory().unwrap();
        let plan = plan(&engine, super::TRIM_THROUGH);
        assert!(plan.contains("INDEX app_stream_sequence (table_name=? AND <expr><?)"), "{plan}");
        assert!(!plan.contains("SCAN") && !plan.contains("TEMP"), "{plan}");
    }

    /// Creates a table with a stream in an engine.
    async fn with_stream(engine: Engine) -> Engine {
        let table = json!({
            "TableName": "table",
            "AttributeDefinitions": [{ "AttributeName": "PK", "AttributeType": "S" }],
            "KeySchema": [{ "AttributeName": "PK", "KeyType": "HASH" }],
            "BillingMode": "PAY_PER_REQUEST",
            "StreamSpecification": { "StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES" },
        });
        engine.call("CreateTable", table).await.unwrap();
        engine
    }

    async fn put(engine: &Engine, key: impl ToString) {
        let item = json!({ "TableName": "table", "Item": { "PK": { "S": key.to_string() } } });
        engine.call("PutItem", item).await.unwrap();
    }

    fn sequence_numbers(side: &SqliteConnection) -> Vec<i64> {
        let connection = side.connection();
        let mut records = connection.prepare("SELECT CAST(sequence_number AS INTEGER) FROM _stream_records").unwrap();
        let numbers = records.query_map([], |row| row.get(0)).unwrap();
        numbers.collect::<Result<_, _>>().unwrap()
    }

    #[tokio::test]
    async fn a_trimmed_stream_keeps_the_young_records() {
        let engine = with_stream(Engine::memory().unwrap()).await;
        assert_eq!(engine.trim_stream(Duration::ZERO).await.unwrap(), 0, "an empty stream");
        for number in 0..1_200 {
            put(&engine, number).await;
        }
        let age = "UPDATE _stream_records SET created_at = created_at - 7200";
        engine.side().connection().execute_batch(age).unwrap();
        put(&engine, "young").await;

        assert_eq!(engine.trim_stream(Duration::from_hours(3)).await.unwrap(), 0);
        assert_eq!(engine.trim_stream(Duration::from_hours(1)).await.unwrap(), 1_200);
        let left = sequence_numbers(engine.side());
        assert_eq!(left.len(), 1);

        assert_eq!(engine.side().trim_before(i64::MAX).unwrap(), 1);
        put(&engine, "later").await;
        assert!(sequence_numbers(engine.side())[0] > left[0], "numbers of a trimmed stream keep increasing");
    }

    #[tokio::test]
    async fn trimming_a_stream_leaves_the_other_tables_alone() {
        let engine = with_stream(Engine::memory().unwrap()).await;
        for number in 0..600 {
            put(&engine, number).await;
        }
        let other = "UPDATE _stream_records SET table_name = 'other' WHERE id % 100 = 0";
        engine.side().connection().execute_batch(other).unwrap();
        let last = super::SEQUENCE_NUMBER_OFFSET + u128::from(i64::MAX.unsigned_abs());
        assert_eq!(engine.trim_stream_through("table", &last.to_string()).await.unwrap(), 594);
        assert_eq!(sequence_numbers(engine.side()).len(), 6);
    }

    /// Neither the engine nor the second connection waits for the other long enough to fail.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_stream_is_trimmed_while_it_is_written() {
        let directory = tempfile::tempdir().unwrap();
        for engine in [Engine::memory().unwrap(), Engine::open(directory.path()).unwrap()] {
            let engine = with_stream(engine).await;
            let writer = tokio::spawn({
                let engine = engine.clone();
                async move {
                    for number in 0..300 {
                        put(&engine, number).await;
                    }
                }
            });
            let mut trimmed = 0;
            while !writer.is_finished() {
                trimmed += engine.side().trim_before(i64::MAX).unwrap();
            }
            writer.await.unwrap();
            assert_eq!(trimmed + engine.side().trim_before(i64::MAX).unwrap(), 300);
        }
    }
}
