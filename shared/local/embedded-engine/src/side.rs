//! A second SQLite connection to the engine's database, for what the engine does not do itself.
//!
//! This, [`expiry`](crate::expiry), [`clustered`](crate::clustered) and
//! [`without_keys`](crate::without_keys) rely on dynoxide's private schema. This does on one table:
//!
//! `_stream_records(id, table_name, ..., sequence_number TEXT, shard_id, created_at INTEGER seconds, ...)`
//!
//! and on its numbers: a stored one plus [`FIRST_NUMBER`] is the one that the stream's readers see.
//!
//! The manifest therefore pins dynoxide to one version, and the tests below ask SQLite whether the indexes still serve the
//! engine's own statements. If the table ever changes, opening fails or a test does; nothing is silently wrong.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, params};

use crate::Error;

/// Each write to a table with a stream asks for the stream's greatest sequence number, and a reader of the stream seeks
/// one; without these both read the whole stream, and the ten-thousandth write costs twenty times the first.
const INDEXES: &str = "
    CREATE INDEX IF NOT EXISTS app_stream_sequence
        ON _stream_records(table_name, CAST(sequence_number AS INTEGER));
    CREATE INDEX IF NOT EXISTS app_stream_shard
        ON _stream_records(table_name, shard_id, CAST(sequence_number AS INTEGER));";

/// Records deleted in one transaction: few enough that a request that waits for it does not notice.
const TRIMMED_AT_ONCE: i64 = 500;

/// The first number of a record for readers of the stream: it has 21 digits, as DynamoDB's have.
const FIRST_NUMBER: u128 = 100_000_000_000_000_000_000;

/// As long as the engine's own connection waits for a lock while it opens: another process may be
/// making an index of a large file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct SideConnection(Mutex<Connection>);

impl SideConnection {
    /// Opens the database at a path or URI. An empty database is created where there is none.
    pub(crate) fn open(location: impl AsRef<Path>) -> Result<Self, Error> {
        let connection = Connection::open(location)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        Ok(Self(Mutex::new(connection)))
    }

    /// Adds the indexes; the engine must have made its tables.
    pub(crate) fn index_streams(&self) -> Result<(), Error> {
        Ok(self.connection().execute_batch(INDEXES)?)
    }

    /// Deletes the stream records older than `age`, and says how many there were.
    pub(crate) fn trim_stream(&self, age: Duration) -> Result<usize, Error> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.trim_before(i64::try_from(now.saturating_sub(age).as_secs()).unwrap_or(i64::MAX))
    }

    /// Deletes the stream records made before a second since 1970.
    fn trim_before(&self, second: i64) -> Result<usize, Error> {
        let connection = self.connection();
        let Some(end) = first_to_keep(&connection, second)? else { return Ok(0) };
        let mut trimmed = 0;
        loop {
            let deleted = connection.execute(
                "DELETE FROM _stream_records WHERE id IN (SELECT id FROM _stream_records WHERE id < ?1 ORDER BY id LIMIT ?2)",
                params![end, TRIMMED_AT_ONCE],
            )?;
            trimmed += deleted;
            if deleted == 0 {
                return Ok(trimmed);
            }
        }
    }

    /// Deletes the records of a table's stream up to this one, the oldest first, and says how many there were.
    pub(crate) fn trim_stream_through(&self, table: &str, sequence_number: &str) -> Result<usize, Error> {
        let last = stored_number(sequence_number).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("no sequence number: {sequence_number}"))
        })?;
        let connection = self.connection();
        let mut trimmed = 0;
        loop {
            let deleted = connection.execute(TRIM_THROUGH, params![table, last, TRIMMED_AT_ONCE])?;
            trimmed += deleted;
            // Fewer than asked for: there are no more.
            if i64::try_from(deleted).is_ok_and(|deleted| deleted < TRIMMED_AT_ONCE) {
                return Ok(trimmed);
            }
        }
    }

    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Deletes the oldest records up to a number.
const TRIM_THROUGH: &str = "
    DELETE FROM _stream_records WHERE id IN (
        SELECT id FROM _stream_records WHERE table_name = ?1 AND CAST(sequence_number AS INTEGER) <= ?2
        ORDER BY CAST(sequence_number AS INTEGER) LIMIT ?3)";

/// The number in the table of a number that a reader of the stream was told.
fn stored_number(sequence_number: &str) -> Option<i64> {
    sequence_number.parse::<u128>().ok()?.checked_sub(FIRST_NUMBER)?.try_into().ok()
}

/// The id below which every record was made before the second. Ids grow with time, so this reads the old records only.
fn first_to_keep(connection: &Connection, second: i64) -> Result<Option<i64>, Error> {
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

    use super::SideConnection;
    use crate::Engine;

    fn plan(engine: &Engine, statement: &str) -> String {
        let connection = engine.side().connection();
        let mut explained = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
        let parameters = vec![rusqlite::types::Null; explained.parameter_count()];
        let rows = explained.query_map(rusqlite::params_from_iter(parameters), |row| row.get::<_, String>("detail"));
        rows.unwrap().collect::<Result<Vec<_>, _>>().unwrap().join("; ")
    }

    /// The statements are dynoxide's, word for word.
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

    /// An engine with a table that has a stream.
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

    fn sequence_numbers(side: &SideConnection) -> Vec<i64> {
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
        assert!(sequence_numbers(engine.side())[0] > left[0], "a trimmed stream does not begin anew");
    }

    #[tokio::test]
    async fn trimming_a_stream_leaves_the_other_tables_alone() {
        let engine = with_stream(Engine::memory().unwrap()).await;
        for number in 0..600 {
            put(&engine, number).await;
        }
        let other = "UPDATE _stream_records SET table_name = 'other' WHERE id % 100 = 0";
        engine.side().connection().execute_batch(other).unwrap();
        let last = super::FIRST_NUMBER + u128::from(i64::MAX.unsigned_abs());
        assert_eq!(engine.trim_stream_through("table", &last.to_string()).await.unwrap(), 594);
        assert_eq!(sequence_numbers(engine.side()).len(), 6);
    }

    /// Neither waits so long for the other that it fails.
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
