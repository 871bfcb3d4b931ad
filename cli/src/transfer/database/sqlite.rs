//! The driver for SQLite files.

use std::path::PathBuf;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OpenFlags, params_from_iter};
use tokio::sync::{mpsc, oneshot};

use super::{QueryRequest, Row, RowBatcher, SqlValue};
use crate::Failure;

/// Opens a file, and answers queries on a thread of its own until all senders are dropped.
///
/// # Errors
/// The file is missing, cannot be read, or is not a SQLite database.
pub(super) async fn connect(path: PathBuf, requests: mpsc::Receiver<QueryRequest>) -> Result<(), Failure> {
    let (opened, is_open) = oneshot::channel();
    std::thread::Builder::new().name("sqlite".to_owned()).spawn(move || match open(&path) {
        Ok(connection) => {
            let _ = opened.send(Ok(()));
            answer(&connection, requests);
        }
        Err(failure) => {
            let _ = opened.send(Err(failure));
        }
    })?;
    is_open.await?
}

fn open(path: &PathBuf) -> Result<Connection, Failure> {
    let failed = |error: rusqlite::Error| Failure::from(format!("cannot read {}: {error}", path.display()));
    if !path.is_file() {
        return Err(format!("there is no file {}", path.display()).into());
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.execute_batch("PRAGMA query_only = 1; BEGIN").map_err(failed)?;
    // The snapshot begins with the first read, which also fails if the file is no database.
    connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(())).map_err(failed)?;
    Ok(connection)
}

fn answer(connection: &Connection, mut requests: mpsc::Receiver<QueryRequest>) {
    while let Some(request) = requests.blocking_recv() {
        if let Err(error) = execute(connection, &request) {
            let _ = request.rows.blocking_send(Err(format!("the query failed: {error}").into()));
        }
    }
}

fn execute(connection: &Connection, request: &QueryRequest) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(&request.query.sql)?;
    let columns = statement.column_count();
    let arguments = request.query.arguments.iter().map(argument);
    let mut rows = statement.query(params_from_iter(arguments))?;
    let mut batches = RowBatcher::default();
    while let Some(row) = rows.next()? {
        let values = (0..columns).map(|column| row.get_ref(column).map(value)).collect::<rusqlite::Result<_>>()?;
        if let Some(batch) = batches.add(Row(values))
            && request.rows.blocking_send(Ok(batch)).is_err()
        {
            // The consumer has dropped the stream, so no more rows are needed.
            return Ok(());
        }
    }
    let _ = request.rows.blocking_send(Ok(batches.batch));
    Ok(())
}

fn argument(value: &SqlValue) -> Value {
    match value {
        SqlValue::Null => Value::Null,
        SqlValue::Integer(integer) => Value::Integer(*integer),
        SqlValue::Real(number) => Value::Real(*number),
        SqlValue::Text(text) => Value::Text(text.clone()),
        SqlValue::Bytes(bytes) => Value::Blob(bytes.clone()),
    }
}

fn value(value: ValueRef<'_>) -> SqlValue {
    match value {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(integer) => SqlValue::Integer(integer),
        ValueRef::Real(number) => SqlValue::Real(number),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => SqlValue::Text(text.to_owned()),
            Err(_) => SqlValue::Bytes(text.to_vec()),
        },
        ValueRef::Blob(bytes) => SqlValue::Bytes(bytes.to_vec()),
    }
}
