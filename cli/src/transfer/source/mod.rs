//! An MLflow database, at any schema from MLflow 2.0 to 3.18.
//!
//! The reader of each kind of entity is in the module of that kind, next to its importer. Tables
//! and columns that a schema does not have yet are read as if they were empty: see
//! [`Source::column`].

mod schema;
mod schema_versions;

use std::fmt::Write;

use futures::stream::Stream;

use super::database::{Database, DatabaseUri, Row, SqlQuery, SqlValue};
use crate::Failure;
use schema::Schema;

/// An MLflow database that is read from one snapshot. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Source {
    database: Database,
    schema: Schema,
}

impl Source {
    /// Connects to a database.
    ///
    /// # Errors
    /// One sentence that says what is wrong: the database cannot be read, is not MLflow's, or has a
    /// schema that is older or newer than the supported ones.
    pub(crate) async fn open(uri: &DatabaseUri) -> Result<Self, Failure> {
        let database = Database::open(uri).await?;
        let schema = Schema::read(&database).await?;
        schema_versions::check(&database).await?;
        Ok(Self { database, schema })
    }

    /// Returns whether the database has this table.
    pub(crate) fn has_table(&self, table: &str) -> bool {
        self.schema.has_table(table)
    }

    /// Returns the names of all tables, sorted.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &str> {
        self.schema.tables()
    }

    /// Returns whether a table has this column.
    pub(crate) fn has_column(&self, table: &str, column: &str) -> bool {
        self.schema.has_column(table, column)
    }

    /// Returns the expression for a column: its quoted name, or `NULL` if the schema does not have
    /// the column yet.
    pub(crate) fn column(&self, table: &str, column: &str) -> String {
        if self.schema.has_column(table, column) { format!("\"{column}\"") } else { "NULL".to_owned() }
    }

    /// Returns a comma-separated list of columns, for a `SELECT` from this table
    /// ([`column`](Self::column)).
    pub(crate) fn columns(&self, table: &str, columns: &[&str]) -> String {
        columns.iter().map(|column| self.column(table, column)).collect::<Vec<_>>().join(", ")
    }

    /// Returns all rows of a query that has only a few.
    ///
    /// # Errors
    /// The query fails.
    pub(crate) async fn rows(&self, sql: &str, arguments: Vec<SqlValue>) -> Result<Vec<Row>, Failure> {
        self.database.rows(sql, arguments).await
    }

    /// Returns the rows of a query in batches ([`Database::stream`]).
    pub(crate) fn stream(
        &self,
        sql: String,
        arguments: Vec<SqlValue>,
    ) -> impl Stream<Item = Result<Vec<Row>, Failure>> + use<> {
        self.database.stream(SqlQuery { sql, arguments })
    }

    /// Returns the number of rows of a table, or 0 if the schema does not have it yet.
    ///
    /// # Errors
    /// The query fails.
    pub(crate) async fn count(&self, table: &str) -> Result<u64, Failure> {
        if !self.has_table(table) {
            return Ok(0);
        }
        let rows = self.rows(&format!("SELECT count(*) FROM {table}"), Vec::new()).await?;
        let count = rows.first().map(|row| row.integer(0)).transpose()?.unwrap_or_default();
        Ok(count.unsigned_abs())
    }
}

/// Returns `(?, ?, …)` for this number of arguments.
pub(crate) fn placeholders(count: usize) -> String {
    let mut list = String::from("(");
    for place in 0..count {
        let _ = write!(list, "{}?", if place == 0 { "" } else { ", " });
    }
    list.push(')');
    list
}
