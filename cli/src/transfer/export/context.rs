//! State that the exporters of all kinds of entities share.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use mlflow_api::ExperimentId;
use rusqlite::{Connection, Params};
use table::Table;

use crate::Failure;

/// An export in progress.
pub(crate) struct ExportContext {
    /// The table that is exported.
    pub(crate) table: Table,
    /// The experiment to export, or `None` for everything.
    pub(crate) experiment: Option<ExperimentId>,
    database: Mutex<Connection>,
    /// The temporary path under which the file is written, and its final path.
    files: (PathBuf, PathBuf),
}

impl ExportContext {
    pub(super) fn new(
        table: Table,
        experiment: Option<ExperimentId>,
        database: Connection,
        files: (PathBuf, PathBuf),
    ) -> Self {
        Self { table, experiment, database: Mutex::new(database), files }
    }

    /// Inserts a row into the database.
    ///
    /// # Errors
    /// The file cannot be written, or a constraint of the schema is violated.
    pub(crate) fn insert(&self, sql: &str, values: impl Params) -> Result<(), Failure> {
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        database.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    /// Commits everything that was inserted, and gives the file its name.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let database = self.database.into_inner().unwrap_or_else(PoisonError::into_inner);
        database.execute_batch("COMMIT; PRAGMA journal_mode = DELETE")?;
        database.close().map_err(|(_, error)| error)?;
        let (unfinished, complete) = self.files;
        std::fs::File::open(&unfinished)?.sync_all()?;
        std::fs::rename(unfinished, complete)?;
        Ok(())
    }
}
