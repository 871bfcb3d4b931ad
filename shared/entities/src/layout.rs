//! The layout of a table: the generation of keys and attributes that it holds.
//!
//! Every process looks at it before it touches anything else. So a version that keys its items differently neither misreads a table nor
//! spoils it.

use std::error::Error;
use std::fmt;

use key_schema::attributes::LAYOUT;
use key_schema::rows;
use mlflow_api::ExperimentId;
use table::{Condition, Failure, Item, Table, Write, number};

/// The layout of this version. It changes with every key or attribute that a version before it would misread.
pub const CURRENT: i64 = 7;

const SETTING: &str = "layout";

/// Why a table cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub enum LayoutError {
    /// It was written before layouts had numbers, or has a smaller one.
    Earlier,
    /// It has this number, which is greater.
    Later(i64),
    /// It could not be read.
    Unread(Failure),
}

impl fmt::Display for LayoutError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Earlier => formatter.write_str(
                "The table was written by an earlier version of mlflow-serverless, and this one cannot read it. There is no conversion, because \
                 there has been no release: use an empty table, or another data directory.",
            ),
            Self::Later(layout) => write!(
                formatter,
                "The table was written by a later version of mlflow-serverless: it has layout {layout}, and this version knows layout {CURRENT}. \
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

/// Whether a table is in use, and not empty. One request where it is, two where it is empty.
///
/// # Errors
/// Its layout is another than this version's.
pub async fn check(table: &Table) -> Result<bool, LayoutError> {
    let Some(setting) = table.get(&rows::Config::key(&SETTING.into())).await? else {
        // The default experiment comes with the number, and every table in use has that.
        let is_used = table.get(&rows::Experiment::key(&ExperimentId::DEFAULT)).await?.is_some();
        // Unless another process has begun to use it between the two.
        let is_earlier = is_used && table.get(&rows::Config::key(&SETTING.into())).await?.is_none();
        return if is_earlier { Err(LayoutError::Earlier) } else { Ok(is_used) };
    };
    match setting.number(LAYOUT) {
        Some(CURRENT) => Ok(true),
        Some(later) if later > CURRENT => Err(LayoutError::Later(later)),
        _ => Err(LayoutError::Earlier),
    }
}

/// The row that says that a table has this version's layout, for the transaction that begins to use the table.
#[must_use]
pub fn row() -> Write {
    Write::Put(Item::new(rows::Config::key(&SETTING.into())).with(LAYOUT, number(CURRENT)), Condition::Always)
}
