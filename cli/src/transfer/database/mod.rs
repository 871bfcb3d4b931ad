//! SQL databases that are read from one snapshot.
//!
//! A connection runs in a task of its own, which executes one query after the other within a single
//! read-only transaction. All queries therefore see the same state, and writes to the database fail.
//! Queries are written once, for all databases: with `?` for arguments and double quotes around
//! names, which the drivers translate.

#[cfg(feature = "sql-servers")]
mod mysql;
#[cfg(feature = "sql-servers")]
mod postgres;
mod row;
mod sqlite;
mod uri;

use futures::stream::{Stream, StreamExt};
use tokio::sync::mpsc;

pub(crate) use row::{Row, SqlValue};
pub(crate) use uri::DatabaseUri;

use crate::Failure;

/// Number of rows that a driver passes on at once.
const BATCH_ROWS: usize = 500;
/// Number of batches that a driver reads ahead.
const BATCHES_AHEAD: usize = 2;

/// A query, with the values of its arguments in order.
#[derive(Clone, Debug)]
pub(crate) struct SqlQuery {
    /// The statement, with `?` for each argument and double quotes around names that are reserved
    /// words, such as `"key"`.
    pub(crate) sql: String,
    /// The arguments.
    pub(crate) arguments: Vec<SqlValue>,
}

/// A request to the task of the connection: a query, and the channel for its rows.
struct QueryRequest {
    query: SqlQuery,
    rows: RowSender,
}

type RowSender = mpsc::Sender<Result<Vec<Row>, Failure>>;

/// The kind of a database, which determines the dialect of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// SQLite.
    Sqlite,
    /// `PostgreSQL`.
    Postgres,
    /// `MySQL` or `MariaDB`.
    MySql,
}

/// A connection to a database. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Database {
    dialect: Dialect,
    requests: mpsc::Sender<QueryRequest>,
}

impl Database {
    /// Connects to a database, and begins the transaction that all queries belong to.
    ///
    /// # Errors
    /// One sentence that says what is wrong: the file is missing or is no database, the host cannot
    /// be reached, or the user is refused.
    pub(crate) async fn open(uri: &DatabaseUri) -> Result<Self, Failure> {
        let (requests, received) = mpsc::channel(1);
        let dialect = match uri {
            DatabaseUri::Sqlite(path) => {
                sqlite::connect(path.clone(), received).await?;
                Dialect::Sqlite
            }
            #[cfg(feature = "sql-servers")]
            DatabaseUri::Postgres(url) => {
                postgres::connect(url, received).await?;
                Dialect::Postgres
            }
            #[cfg(feature = "sql-servers")]
            DatabaseUri::MySql(url) => {
                mysql::connect(url, received).await?;
                Dialect::MySql
            }
        };
        Ok(Self { dialect, requests })
    }

    /// Returns the database's dialect of SQL.
    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the rows of a query in batches, reading only a few batches ahead. Other queries of
    /// this connection wait until the stream ends or is dropped. While the consumer reads the
    /// stream, it must therefore not wait for another query.
    pub(crate) fn stream(&self, query: SqlQuery) -> impl Stream<Item = Result<Vec<Row>, Failure>> + use<> {
        let (rows, received) = mpsc::channel(BATCHES_AHEAD);
        let requests = self.requests.clone();
        let begin = async move {
            // If the task of the connection has ended, the stream yields this error and ends.
            let sent = requests.send(QueryRequest { query, rows }).await;
            sent.err().map(|_| Err("the connection to the database is closed".into()))
        };
        let received = futures::stream::unfold(received, |mut received| async move {
            received.recv().await.map(|batch| (batch, received))
        });
        futures::stream::once(begin).filter_map(std::future::ready).chain(received)
    }

    /// Returns all rows of a query that has only a few.
    ///
    /// # Errors
    /// The query fails.
    pub(crate) async fn rows(&self, sql: &str, arguments: Vec<SqlValue>) -> Result<Vec<Row>, Failure> {
        let mut batches = std::pin::pin!(self.stream(SqlQuery { sql: sql.to_owned(), arguments }));
        let mut rows = Vec::new();
        while let Some(batch) = batches.next().await {
            rows.extend(batch?);
        }
        Ok(rows)
    }
}

/// Collects rows into batches for the consumer of a query.
#[derive(Default)]
struct RowBatcher {
    batch: Vec<Row>,
}

impl RowBatcher {
    /// Adds a row. Returns the batch if it is full.
    fn add(&mut self, row: Row) -> Option<Vec<Row>> {
        self.batch.push(row);
        (self.batch.len() >= BATCH_ROWS).then(|| std::mem::take(&mut self.batch))
    }
}
