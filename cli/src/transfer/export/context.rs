//! State that the exporters of all kinds of entities share.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use artifact_store::Archive;
use entities::workspaces::Workspaces;
use mlflow_api::{ExperimentId, Workspace};
use rusqlite::{Connection, Params};
use table::Table;

use crate::Failure;
use crate::output::print_line;

/// The statements that reduce the schema of MLflow 3.18 to that of MLflow 3.17.2.
const WITHOUT_3_18: &str = include_str!("without_3_18.sql");

/// An export in progress.
pub(crate) struct ExportContext {
    /// The table that is exported.
    pub(crate) table: Table,
    /// Where the server stores archived data.
    pub(crate) archive: Archive,
    /// The experiment to export, or `None` for everything.
    pub(crate) experiment: Option<ExperimentId>,
    database: Mutex<Connection>,
    /// Why the file needs the schema of MLflow 3.18, as clauses. Empty if it does not.
    newest_schema_reasons: Mutex<BTreeSet<&'static str>>,
    /// Sentences that are printed when the file is complete.
    notices: Mutex<Vec<String>>,
    /// The temporary path under which the file is written, and its final path.
    files: (PathBuf, PathBuf),
}

impl ExportContext {
    pub(super) fn new(
        table: Table,
        archive: Archive,
        experiment: Option<ExperimentId>,
        database: Connection,
        files: (PathBuf, PathBuf),
    ) -> Self {
        Self {
            table,
            archive,
            experiment,
            database: Mutex::new(database),
            newest_schema_reasons: Mutex::default(),
            notices: Mutex::default(),
            files,
        }
    }

    /// Returns the workspaces whose entities outside of experiments are exported: none if only one
    /// experiment is exported. Takes one request, and one per 100 workspaces.
    ///
    /// # Errors
    /// The table cannot be read.
    pub(crate) async fn workspaces(&self) -> Result<Vec<Workspace>, Failure> {
        if self.experiment.is_some() {
            return Ok(Vec::new());
        }
        let mut names = Workspaces::new(self.table.clone()).names().await.map_err(|error| error.message)?;
        names.retain(|workspace| !workspace.is_for_removal());
        Ok(names)
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

    /// Records that the file needs the schema of MLflow 3.18, and why: a clause that completes
    /// "because ". Without such a reason, the file gets the schema of MLflow 3.17.2, which more
    /// versions can open or upgrade.
    pub(crate) fn require_newest_schema(&self, reason: &'static str) {
        self.newest_schema_reasons.lock().unwrap_or_else(PoisonError::into_inner).insert(reason);
    }

    /// Records a sentence that is printed when the file is complete.
    pub(crate) fn notice(&self, sentence: String) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(sentence);
    }

    /// Commits everything that was inserted, gives the file its name, and prints the notices.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let database = self.database.into_inner().unwrap_or_else(PoisonError::into_inner);
        let reasons = self.newest_schema_reasons.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut notices = self.notices.into_inner().unwrap_or_else(PoisonError::into_inner);
        if reasons.is_empty() {
            database.execute_batch(WITHOUT_3_18)?;
        } else {
            let reasons: Vec<_> = reasons.into_iter().collect();
            notices.push(format!("The file requires MLflow 3.18, because {}", reasons.join(", and ")));
        }
        database.execute_batch("COMMIT; PRAGMA journal_mode = DELETE")?;
        database.close().map_err(|(_, error)| error)?;
        let (unfinished, complete) = self.files;
        std::fs::File::open(&unfinished)?.sync_all()?;
        std::fs::rename(unfinished, complete)?;
        for notice in &notices {
            print_line(notice);
        }
        Ok(())
    }
}
