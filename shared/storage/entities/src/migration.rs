//! The steps that migrate a table from one layout to the next.
//!
//! A step can be interrupted at any point while other processes serve the table. Each step is
//! therefore idempotent, and its last write increments the layout number
//! (`docs/adr/0053-layouts-and-migrations.md`).

use std::error::Error;
use std::fmt;

use crate::layout::{self, CURRENT_LAYOUT, FIRST_LAYOUT, LayoutError};
use futures::future::BoxFuture;
use table::{Failure, Table};

/// A migration step: a function of the data table and of the access table that changes their
/// contents, and is idempotent. The access table may not exist if there are no users.
pub type Migration = for<'a> fn(&'a Table, &'a Table) -> BoxFuture<'a, Result<(), Failure>>;

/// All steps. The first one migrates from [`FIRST_LAYOUT`] to the next layout.
pub const MIGRATIONS: &[Migration] = &[allow_pointers];

const _: () = assert!(FIRST_LAYOUT + MIGRATIONS.len().cast_signed() as i64 == CURRENT_LAYOUT);

/// Migrates to layout 8, which permits pointers in place of the documents of packed traces, spans in
/// marks, data in the archive, and compressed points. Nothing has to be changed: the packer and the archiver release existing data over
/// time.
fn allow_pointers<'a>(_: &'a Table, _: &'a Table) -> BoxFuture<'a, Result<(), Failure>> {
    Box::pin(std::future::ready(Ok(())))
}

/// The reason why a migration did not finish. Completed steps are kept, and the next attempt
/// continues after them.
#[derive(Clone, Debug, PartialEq)]
pub enum MigrationError {
    /// The layout of the table is unknown.
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
                "Migrating from layout {from} to layout {} failed: {failure:?}. Completed steps are kept: run the migration again to continue.",
                from + 1
            ),
        }
    }
}

impl Error for MigrationError {}

/// The layouts that a table was migrated from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigrationResult {
    /// Layout before the migration.
    pub from: i64,
    /// Layout after the migration. Equals `from` if there was nothing to do.
    pub to: i64,
}

/// Migrates a table to the current layout. Returns `None` if the table is empty.
///
/// # Errors
/// Returns an error if the table's layout is unknown or a step failed.
pub async fn migrate(table: &Table, access: &Table) -> Result<Option<MigrationResult>, MigrationError> {
    migrate_by(MIGRATIONS, table, access).await
}

/// Migrates a table by the given steps. Returns `None` if the table is empty.
///
/// # Errors
/// Returns an error if the table's layout is unknown or a step failed.
pub async fn migrate_by(
    steps: &[Migration],
    table: &Table,
    access: &Table,
) -> Result<Option<MigrationResult>, MigrationError> {
    let reached = (FIRST_LAYOUT..).zip(steps).last().map_or(FIRST_LAYOUT, |(from, _)| from + 1);
    let Some(found) = layout::read(table, reached).await.map_err(MigrationError::Layout)? else { return Ok(None) };
    for (from, step) in (FIRST_LAYOUT..).zip(steps).filter(|(from, _)| *from >= found) {
        step(table, access).await.map_err(|failure| MigrationError::Step(from, failure))?;
        layout::raise(table, from).await.map_err(|failure| MigrationError::Step(from, failure))?;
    }
    Ok(Some(MigrationResult { from: found, to: reached }))
}
