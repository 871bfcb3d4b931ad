//! The driver for `MySQL` and `MariaDB`.

use futures::TryStreamExt;
use sqlx::mysql::{MySqlArguments, MySqlConnectOptions, MySqlConnection, MySqlRow};
use sqlx::{Column, ConnectOptions, Connection, Row as _, TypeInfo, ValueRef};
use tokio::sync::mpsc;

use super::{QueryRequest, Row, RowBatcher, SqlValue};
use crate::Failure;

/// Connects to a server, and answers queries in a task of its own until all senders are dropped.
///
/// # Errors
/// The URL is invalid, the host cannot be reached, or the user is refused.
pub(super) async fn connect(url: &str, mut requests: mpsc::Receiver<QueryRequest>) -> Result<(), Failure> {
    let failed = |error: sqlx::Error| Failure::from(format!("cannot connect to the database: {error}"));
    let options: MySqlConnectOptions = url.parse().map_err(failed)?;
    let mut connection = options.disable_statement_logging().connect().await.map_err(failed)?;
    let settings = [
        // As in standard SQL, double quotes enclose names, and not texts.
        "SET SESSION sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')",
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    ];
    for setting in settings {
        sqlx::raw_sql(setting).execute(&mut connection).await.map_err(failed)?;
    }
    tokio::spawn(async move {
        while let Some(request) = requests.recv().await {
            if let Err(failure) = execute(&mut connection, &request).await {
                let _ = request.rows.send(Err(failure)).await;
            }
        }
        let _ = connection.close().await;
    });
    Ok(())
}

async fn execute(connection: &mut MySqlConnection, request: &QueryRequest) -> Result<(), Failure> {
    let mut query = sqlx::query::<sqlx::MySql>(sqlx::AssertSqlSafe(request.query.sql.clone()));
    for argument in &request.query.arguments {
        query = bind(query, argument);
    }
    let mut rows = query.fetch(connection);
    let mut batches = RowBatcher::default();
    while let Some(row) = rows.try_next().await.map_err(|error| format!("the query failed: {error}"))? {
        if let Some(batch) = batches.add(read(&row)?)
            && request.rows.send(Ok(batch)).await.is_err()
        {
            return Ok(());
        }
    }
    let _ = request.rows.send(Ok(batches.batch)).await;
    Ok(())
}

type MySqlQuery<'a> = sqlx::query::Query<'a, sqlx::MySql, MySqlArguments>;

fn bind<'a>(query: MySqlQuery<'a>, argument: &SqlValue) -> MySqlQuery<'a> {
    match argument {
        SqlValue::Null => query.bind(None::<String>),
        SqlValue::Integer(integer) => query.bind(*integer),
        SqlValue::Real(number) => query.bind(*number),
        SqlValue::Text(text) => query.bind(text.clone()),
        SqlValue::Bytes(bytes) => query.bind(bytes.clone()),
    }
}

fn read(row: &MySqlRow) -> Result<Row, Failure> {
    let mut values = Vec::with_capacity(row.columns().len());
    for (place, column) in row.columns().iter().enumerate() {
        let raw = row.try_get_raw(place)?;
        if raw.is_null() {
            values.push(SqlValue::Null);
            continue;
        }
        values.push(match raw.type_info().name() {
            "BOOLEAN" => SqlValue::Integer(row.try_get::<bool, _>(place)?.into()),
            "TINYINT" | "SMALLINT" | "MEDIUMINT" | "INT" | "BIGINT" => {
                SqlValue::Integer(row.try_get_unchecked::<i64, _>(place)?)
            }
            "FLOAT" | "DOUBLE" => SqlValue::Real(row.try_get_unchecked::<f64, _>(place)?),
            "VARCHAR" | "CHAR" | "TEXT" | "TINYTEXT" | "MEDIUMTEXT" | "LONGTEXT" | "ENUM" | "JSON" | "DECIMAL" => {
                SqlValue::Text(row.try_get_unchecked::<String, _>(place)?)
            }
            "BLOB" | "TINYBLOB" | "MEDIUMBLOB" | "LONGBLOB" | "BINARY" | "VARBINARY" => {
                SqlValue::Bytes(row.try_get::<Vec<u8>, _>(place)?)
            }
            other => return Err(format!("the column {} has the type {other}", column.name()).into()),
        });
    }
    Ok(Row(values))
}
