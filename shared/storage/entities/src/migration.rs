//! The steps that bring a table from one layout to the next.
//!
//! A step can be interrupted at any point while other processes serve the table. So each step is
//! idempotent, and its last write raises the number of the layout
//! (`docs/adr/0053-layouts-and-migrations.md`).

use std::error::Error;
use std::fmt;

use crate::layout::{self, CURRENT, FIRST, LayoutError};
use futures::future::BoxFuture;
use table::{Failure, Table};

/// One step: it changes what the table and the table of access hold, and is idempotent. The latter
/// may be missing, if there are no users.
pub type Migration = for<'a> fn(&'a Table, &'a Table) -> BoxFuture<'a, Result<(), Failure>>;

/// All steps. The first one leads from [`FIRST`] to the layout after it.
pub const MIGRATIONS: &[Migration] = &[];

const _: () = assert!(FIRST + MIGRATIONS.len().cast_signed() as i64 == CURRENT);

/// Why a table was not migrated to the end. What was done stays, and the next attempt continues.
#[derive(Clone, Debug, PartialEq)]
pub enum MigrationError {
    /// Its layout is unknown.
    Layout(LayoutError),
    /// The step from this layout failed.
    Step(i64, Failure),
}

impl fmt::Display for MigrationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layout(error) => write!(formatter, "{error}"),
            Self::Step(from, failure) => write!(
                formatter,
                "The step from layout {from} to layout {} failed: {failure:?}. What was done stays, and the next attempt continues.",
                from + 1
            ),
        }
    }
}

impl Error for MigrationError {}

/// The layouts between which a table was migrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The layout before.
    pub from: i64,
    /// The layout after: the same, if there was nothing to do.
    pub to: i64,
}

/// Brings a table to the current layout. `None` if it is empty.
///
/// # Errors
/// Its layout is unknown, or a step failed.
pub async fn migrate(table: &Table, access: &Table) -> Result<Option<Migrated>, MigrationError> {
    migrate_by(MIGRATIONS, table, access).await
}

/// The same by these steps.
///
/// # Errors
/// Its layout is unknown, or a step failed.
pub async fn migrate_by(
    steps: &[Migration],
    table: &Table,
    access: &Table,
) -> Result<Option<Migrated>, MigrationError> {
    let reached = (FIRST..).zip(steps).last().map_or(FIRST, |(from, _)| from + 1);
    let Some(found) = layout::read(table, reached).await.map_err(MigrationError::Layout)? else { return Ok(None) };
    for (from, step) in (FIRST..).zip(steps).filter(|(from, _)| *from >= found) {
        step(table, access).await.map_err(|failure| MigrationError::Step(from, failure))?;
        layout::raise(table, from).await.map_err(|failure| MigrationError::Step(from, failure))?;
    }
    Ok(Some(Migrated { from: found, to: reached }))
}
