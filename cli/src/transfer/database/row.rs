//! Rows of a query.

use mlflow_api::Json;

use crate::Failure;

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SqlValue {
    /// No value.
    Null,
    /// An integer, or a boolean as 0 or 1.
    Integer(i64),
    /// A floating-point number.
    Real(f64),
    /// A text, or JSON as text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl From<i64> for SqlValue {
    fn from(integer: i64) -> Self {
        Self::Integer(integer)
    }
}

impl From<&str> for SqlValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// A row of a query. Columns are numbered from 0, in the order of the query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row(pub(crate) Vec<SqlValue>);

impl Row {
    /// Returns a text, which is empty if the column is null.
    ///
    /// # Errors
    /// The column has another type. The other methods return this error, too.
    pub(crate) fn text(&self, column: usize) -> Result<String, Failure> {
        Ok(self.optional_text(column)?.unwrap_or_default())
    }

    /// Returns a text, or `None` if the column is null.
    pub(crate) fn optional_text(&self, column: usize) -> Result<Option<String>, Failure> {
        match self.0.get(column) {
            Some(SqlValue::Null) => Ok(None),
            Some(SqlValue::Text(text)) => Ok(Some(text.clone())),
            Some(SqlValue::Integer(integer)) => Ok(Some(integer.to_string())),
            // MariaDB returns JSON as bytes.
            Some(SqlValue::Bytes(bytes)) => match String::from_utf8(bytes.clone()) {
                Ok(text) => Ok(Some(text)),
                Err(_) => Err(self.unexpected(column, "a text")),
            },
            _ => Err(self.unexpected(column, "a text")),
        }
    }

    /// Returns JSON in the format in which this server prints it, so that the fingerprint does not
    /// depend on whitespace. Returns `None` if the column is null, or contains JSON's `null` or a text
    /// that is not JSON.
    ///
    /// # Errors
    /// The column has another type.
    pub(crate) fn optional_json(&self, column: usize) -> Result<Option<String>, Failure> {
        let text = self.optional_text(column)?;
        let value = text.as_deref().and_then(Json::parse).filter(|value| !matches!(value, Json::Null));
        Ok(value.map(|value| value.print_unicode()))
    }

    /// Returns an integer, which is 0 if the column is null.
    pub(crate) fn integer(&self, column: usize) -> Result<i64, Failure> {
        Ok(self.optional_integer(column)?.unwrap_or_default())
    }

    /// Returns an integer, or `None` if the column is null.
    pub(crate) fn optional_integer(&self, column: usize) -> Result<Option<i64>, Failure> {
        match self.0.get(column) {
            Some(SqlValue::Null) => Ok(None),
            Some(SqlValue::Integer(integer)) => Ok(Some(*integer)),
            #[expect(clippy::cast_possible_truncation, reason = "the fraction was checked, and `as` saturates")]
            Some(SqlValue::Real(number)) if number.fract() == 0.0 => Ok(Some(*number as i64)),
            // Aggregates of PostgreSQL and MySQL are decimals.
            Some(SqlValue::Text(text)) => text.parse().map(Some).map_err(|_| self.unexpected(column, "an integer")),
            _ => Err(self.unexpected(column, "an integer")),
        }
    }

    /// Returns a number, which is 0 if the column is null.
    pub(crate) fn number(&self, column: usize) -> Result<f64, Failure> {
        Ok(self.optional_number(column)?.unwrap_or_default())
    }

    /// Returns a number, or `None` if the column is null.
    pub(crate) fn optional_number(&self, column: usize) -> Result<Option<f64>, Failure> {
        match self.0.get(column) {
            Some(SqlValue::Null) => Ok(None),
            #[expect(clippy::cast_precision_loss, reason = "SQLite stores whole numbers of a float column as integers")]
            Some(SqlValue::Integer(integer)) => Ok(Some(*integer as f64)),
            Some(SqlValue::Real(number)) => Ok(Some(*number)),
            Some(SqlValue::Text(text)) => text.parse().map(Some).map_err(|_| self.unexpected(column, "a number")),
            _ => Err(self.unexpected(column, "a number")),
        }
    }

    /// Returns a boolean, which is false if the column is null.
    pub(crate) fn boolean(&self, column: usize) -> Result<bool, Failure> {
        Ok(self.integer(column)? != 0)
    }

    fn unexpected(&self, column: usize, wanted: &str) -> Failure {
        format!("the database has {:?} where MLflow stores {wanted} (column {column})", self.0.get(column)).into()
    }
}
