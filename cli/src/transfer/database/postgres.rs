//! The driver for `PostgreSQL`.

use futures::TryStreamExt;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgRow};
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
    let options: PgConnectOptions = url.parse().map_err(failed)?;
    let mut connection = options.disable_statement_logging().connect().await.map_err(failed)?;
    let begin = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY";
    sqlx::query(begin).execute(&mut connection).await.map_err(failed)?;
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

async fn execute(connection: &mut PgConnection, request: &QueryRequest) -> Result<(), Failure> {
    let sql = numbered(&request.query.sql);
    let mut query = sqlx::query::<sqlx::Postgres>(sqlx::AssertSqlSafe(sql));
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

/// Replaces each `?` outside of quotes with `$1`, `$2`, ….
fn numbered(sql: &str) -> String {
    let mut numbered = String::with_capacity(sql.len() + 8);
    let (mut count, mut quote) = (0, None);
    for character in sql.chars() {
        match (character, quote) {
            ('?', None) => {
                count += 1;
                numbered.push('$');
                numbered.push_str(&count.to_string());
                continue;
            }
            ('"' | '\'', None) => quote = Some(character),
            (_, Some(open)) if open == character => quote = None,
            _ => {}
        }
        numbered.push(character);
    }
    numbered
}

type PgQuery<'a> = sqlx::query::Query<'a, sqlx::Postgres, PgArguments>;

fn bind<'a>(query: PgQuery<'a>, argument: &SqlValue) -> PgQuery<'a> {
    match argument {
        SqlValue::Null => query.bind(None::<String>),
        SqlValue::Integer(integer) => query.bind(*integer),
        SqlValue::Real(number) => query.bind(*number),
        SqlValue::Text(text) => query.bind(text.clone()),
        SqlValue::Bytes(bytes) => query.bind(bytes.clone()),
    }
}

fn read(row: &PgRow) -> Result<Row, Failure> {
    let mut values = Vec::with_capacity(row.columns().len());
    for (place, column) in row.columns().iter().enumerate() {
        let raw = row.try_get_raw(place)?;
        if raw.is_null() {
            values.push(SqlValue::Null);
            continue;
        }
        values.push(match raw.type_info().name() {
            "BOOL" => SqlValue::Integer(row.try_get::<bool, _>(place)?.into()),
            "INT2" => SqlValue::Integer(row.try_get::<i16, _>(place)?.into()),
            "INT4" => SqlValue::Integer(row.try_get::<i32, _>(place)?.into()),
            "INT8" => SqlValue::Integer(row.try_get::<i64, _>(place)?),
            "FLOAT4" => SqlValue::Real(row.try_get::<f32, _>(place)?.into()),
            "FLOAT8" => SqlValue::Real(row.try_get::<f64, _>(place)?),
            "BYTEA" => SqlValue::Bytes(row.try_get::<Vec<u8>, _>(place)?),
            "TEXT" | "VARCHAR" | "CHAR" | "BPCHAR" | "NAME" | "UNKNOWN" => {
                SqlValue::Text(row.try_get::<String, _>(place)?)
            }
            "JSON" | "JSONB" => SqlValue::Text(row.try_get_unchecked::<String, _>(place)?),
            other => return Err(format!("the column {} has the type {other}", column.name()).into()),
        });
    }
    Ok(Row(values))
}

#[cfg(test)]
mod tests {
    #[test]
    fn arguments_are_numbered() {
        assert_eq!(
            super::numbered(r#"SELECT "a?" FROM t WHERE b = ? AND c = '?' AND d = ?"#),
            r#"SELECT "a?" FROM t WHERE b = $1 AND c = '?' AND d = $2"#
        );
    }
}
