//! The layout of a table: the version of the keys and attributes that it contains.
//!
//! Every process reads the layout once, before it accesses anything else. A table with a later
//! layout is rejected, so that an older version neither misreads nor corrupts it. A table with an
//! earlier layout is served as it is, and [`migration`](crate::migration) brings it up to date
//! (`docs/adr/0053-layouts-and-migrations.md`).

use std::error::Error;
use std::fmt;

use key_schema::attributes::LAYOUT;
use key_schema::{Key, rows};
use mlflow_api::ExperimentId;
use table::{Condition, Failure, Item, Table, Update, Write, number};

/// Layout of the first release, 0.1.0. Earlier versions had smaller numbers, and their tables
/// cannot be read.
pub const FIRST_LAYOUT: i64 = 7;

/// First layout with pointers to packed traces, marks with spans, archived data, and compressed segments.
/// Versions that support only earlier layouts cannot read them.
pub const POINTER_LAYOUT: i64 = 8;

/// Layout of this version. Each migration increments it by one.
pub const CURRENT_LAYOUT: i64 = 8;

const SETTING_NAME: &str = "layout";
/// Name of the row that a table has while it is being copied from another one.
const COPY_NAME: &str = "copy";

/// The reason why a table cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub enum LayoutError {
    /// The table was written before the first release.
    Unreleased,
    /// The table has a later layout than this version supports. The numbers are the table's layout,
    /// and the latest layout that this version supports.
    TooNew(i64, i64),
    /// The table is being copied from another one, or a copy was interrupted.
    UnfinishedCopy,
    /// The table could not be read.
    ReadFailed(Failure),
}

impl fmt::Display for LayoutError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreleased => formatter.write_str(
                "The table was written by a version of mlflow-serverless from before its first release, and cannot be read. Use an empty table, \
                 or another data directory.",
            ),
            Self::TooNew(layout, known) => write!(
                formatter,
                "The table was written by a later version of mlflow-serverless: it has layout {layout}, and this version knows layout {known}. \
                 Use that version."
            ),
            Self::UnfinishedCopy => formatter.write_str(
                "The table is being copied from another one, or the copy was interrupted. If it was, continue with `mlflow-serverless copy --resume`.",
            ),
            Self::ReadFailed(failure) => write!(formatter, "The table cannot be read: {failure:?}"),
        }
    }
}

impl Error for LayoutError {}

impl From<Failure> for LayoutError {
    fn from(failure: Failure) -> Self {
        Self::ReadFailed(failure)
    }
}

/// Checks whether a table has a layout that this version supports. Returns `true` if it has one,
/// and `false` if the table is empty. Takes one request, or two for an empty table.
///
/// # Errors
/// Returns an error if the table's layout is unknown to this version.
pub async fn check(table: &Table) -> Result<bool, LayoutError> {
    Ok(find(table).await?.is_some())
}

/// Returns the layout of a table, or the current layout if the table is empty. Logs a warning and takes
/// requests as [`find`] does.
///
/// # Errors
/// Returns an error if the table's layout is unknown to this version.
pub async fn of(table: &Table) -> Result<i64, LayoutError> {
    Ok(find(table).await?.unwrap_or(CURRENT_LAYOUT))
}

/// Returns the layout of a table, or `None` if the table is empty. Logs a warning if it is an earlier
/// layout than the current one. Takes as many requests as [`check`].
///
/// # Errors
/// Returns an error if the table's layout is unknown to this version.
pub async fn find(table: &Table) -> Result<Option<i64>, LayoutError> {
    let layout = read(table, CURRENT_LAYOUT).await?;
    if let Some(layout) = layout.filter(|layout| *layout < CURRENT_LAYOUT) {
        tracing::warn!(
            layout,
            current = CURRENT_LAYOUT,
            "the table has an earlier layout: `mlflow-serverless migrate` brings it up to date"
        );
    }
    Ok(layout)
}

/// Reads the layout of a table, for a version that knows layouts up to `known`. Returns `None` for
/// an empty table. Takes one request, or two if the table is empty.
///
/// # Errors
/// Returns an error if the layout is unknown or cannot be read.
pub async fn read(table: &Table, known: i64) -> Result<Option<i64>, LayoutError> {
    let Some(setting) = table.get(&key()).await? else {
        // The default experiment is written together with the layout, so every table in use has it.
        let is_used = match table.get(&rows::Experiment::key(&ExperimentId::DEFAULT)).await {
            Ok(default) => default.is_some(),
            // At the beginning of a copy, the item of the default experiment has nothing but its
            // key, so it is unreadable.
            Err(Failure::Unreadable(_)) => true,
            Err(failure) => return Err(failure.into()),
        };
        if !is_used {
            return Ok(None);
        }
        // Another process may have begun to use the table between the two reads, so the layout is
        // read again.
        let Some(setting) = table.get(&key()).await? else {
            let is_copy = table.get(&copy_key()).await?.is_some();
            return Err(if is_copy { LayoutError::UnfinishedCopy } else { LayoutError::Unreleased });
        };
        return known_layout(&setting, known).map(Some);
    };
    known_layout(&setting, known).map(Some)
}

fn known_layout(setting: &Item, known: i64) -> Result<i64, LayoutError> {
    match setting.get(LAYOUT) {
        Some(later) if later > known => Err(LayoutError::TooNew(later, known)),
        Some(layout) if layout >= FIRST_LAYOUT => Ok(layout),
        _ => Err(LayoutError::Unreleased),
    }
}

/// Records that a table has the layout that follows `from`. Does nothing if another process has
/// already recorded it. Takes one request.
///
/// # Errors
/// Returns a failure if the table cannot be written.
pub async fn raise(table: &Table, from: i64) -> Result<(), Failure> {
    let raised = Update::new(key()).set(LAYOUT, number(from + 1));
    match table.apply(&raised.only_if(Condition::Equals(LAYOUT.into(), number(from)))).await {
        Err(Failure::Refused { .. }) => Ok(()),
        outcome => outcome,
    }
}

/// Returns the row that records this version's layout. It is written by the first transaction on an
/// empty table.
#[must_use]
pub fn row() -> Write {
    Write::Put(Item::new(key()).with(LAYOUT, number(CURRENT_LAYOUT)), Condition::Always)
}

/// Returns the key of the row that records the layout.
#[must_use]
pub fn key() -> Key {
    rows::Config::key(&SETTING_NAME.into())
}

/// Returns the key of a row that exists while the table is being copied from another one. Servers
/// refuse such a table. The row of the default experiment is written in the same transaction, so that
/// earlier versions, which do not know this key, do not take the table for an empty one.
#[must_use]
pub fn copy_key() -> Key {
    rows::Config::key(&COPY_NAME.into())
}
