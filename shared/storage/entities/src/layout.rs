//! The layout of a table: the generation of keys and attributes that it holds.
//!
//! Every process reads it once, before it touches anything else. A table of a later layout is
//! refused, so an older version neither misreads it nor spoils it. A table of an earlier layout is
//! served as it is, and [`migration`](crate::migration) brings it to the current one
//! (`docs/adr/0053-layouts-and-migrations.md`).

use std::error::Error;
use std::fmt;

use key_schema::attributes::LAYOUT;
use key_schema::rows;
use mlflow_api::ExperimentId;
use table::{Condition, Failure, Item, Table, Update, Write, number};

/// The layout of the first release, 0.1.0. Versions before it had smaller numbers, and their tables
/// cannot be read.
pub const FIRST: i64 = 7;

/// The layout of this version. It rises by one with each migration.
pub const CURRENT: i64 = 7;

const SETTING: &str = "layout";

/// Why a table cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub enum LayoutError {
    /// It was written before the first release.
    Unreleased,
    /// It has this number, which is greater than the second, the greatest that is known.
    Later(i64, i64),
    /// It could not be read.
    Unread(Failure),
}

impl fmt::Display for LayoutError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreleased => formatter.write_str(
                "The table was written by a version of mlflow-serverless from before its first release, and cannot be read. Use an empty table, \
                 or another data directory.",
            ),
            Self::Later(layout, known) => write!(
                formatter,
                "The table was written by a later version of mlflow-serverless: it has layout {layout}, and this version knows layout {known}. \
                 Use that version."
            ),
            Self::Unread(failure) => write!(formatter, "The table cannot be read: {failure:?}"),
        }
    }
}

impl Error for LayoutError {}

impl From<Failure> for LayoutError {
    fn from(failure: Failure) -> Self {
        Self::Unread(failure)
    }
}

/// Whether a table is in use, and not empty. One request if it is, two if it is empty.
///
/// # Errors
/// Its layout is none that this version knows.
pub async fn check(table: &Table) -> Result<bool, LayoutError> {
    let layout = read(table, CURRENT).await?;
    if let Some(layout) = layout.filter(|layout| *layout < CURRENT) {
        tracing::warn!(
            layout,
            current = CURRENT,
            "the table has an earlier layout: `mlflow-serverless migrate` brings it up to date"
        );
    }
    Ok(layout.is_some())
}

/// The layout of a table, by a version that knows the layouts up to this one. An empty table has
/// none. One request, two if the table is empty.
///
/// # Errors
/// Its layout is none of these.
pub async fn read(table: &Table, known: i64) -> Result<Option<i64>, LayoutError> {
    let Some(setting) = table.get(&key()).await? else {
        // The default experiment comes with the number, and every table in use has that.
        let is_used = table.get(&rows::Experiment::key(&ExperimentId::DEFAULT)).await?.is_some();
        if !is_used {
            return Ok(None);
        }
        // Unless another process has begun to use it between the two.
        let setting = table.get(&key()).await?.ok_or(LayoutError::Unreleased)?;
        return known_layout(&setting, known).map(Some);
    };
    known_layout(&setting, known).map(Some)
}

fn known_layout(setting: &Item, known: i64) -> Result<i64, LayoutError> {
    match setting.get(LAYOUT) {
        Some(later) if later > known => Err(LayoutError::Later(later, known)),
        Some(layout) if layout >= FIRST => Ok(layout),
        _ => Err(LayoutError::Unreleased),
    }
}

/// Says that a table now has the layout after this one. Another process may have said so before.
/// One request.
///
/// # Errors
/// The table cannot be written to.
pub async fn raise(table: &Table, from: i64) -> Result<(), Failure> {
    let raised = Update::new(key()).set(LAYOUT, number(from + 1));
    match table.apply(&raised.only_if(Condition::Equals(LAYOUT.into(), number(from)))).await {
        Err(Failure::Refused { .. }) => Ok(()),
        outcome => outcome,
    }
}

/// The row that says that a table has this version's layout, for the transaction that begins to use the table.
#[must_use]
pub fn row() -> Write {
    Write::Put(Item::new(key()).with(LAYOUT, number(CURRENT)), Condition::Always)
}

fn key() -> key_schema::Key {
    rows::Config::key(&SETTING.into())
}
