//! Options of `export`.

use std::path::{Path, PathBuf};

use artifact_store::Archive;
use clap::Args;
use mlflow_api::ExperimentId;
use rusqlite::Connection;

use super::context::ExportContext;
use crate::Failure;
use crate::artifact_options::ArtifactOptions;
use crate::table_options::TableOptions;

/// The statements that create the tables of MLflow 3.17.2.
const SCHEMA: &str = include_str!("schema.sql");
/// The statements that add what MLflow 3.18 has in addition.
const SCHEMA_3_18: &str = include_str!("schema_3_18.sql");

/// Options of `export`.
#[derive(Args)]
pub(crate) struct Options {
    /// SQLite file to create. It must not exist.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Export only this experiment, with its runs, logged models, traces and scorers.
    #[arg(long, value_name = "ID")]
    experiment: Option<String>,
    #[command(flatten)]
    artifacts: ArtifactOptions,
    #[command(flatten)]
    place: TableOptions,
}

impl Options {
    pub(super) async fn open(&self) -> Result<ExportContext, Failure> {
        let (table, _engine) = self.place.connect().await?;
        entities::layout::check(&table).await?;
        let experiment =
            self.experiment.as_deref().map(ExperimentId::parse).transpose().map_err(|error| error.message)?;
        if self.to.exists() {
            return Err(format!("{} exists already", self.to.display()).into());
        }
        // The file has a temporary name until it is complete.
        let unfinished = unfinished(&self.to);
        if unfinished.exists() {
            std::fs::remove_file(&unfinished)?;
        }
        let database = Connection::open(&unfinished)?;
        // An incomplete file is discarded, so its pages need no protection against a crash. MLflow
        // does not enforce foreign keys in SQLite either, and entities may refer to entities that
        // no longer exist.
        database
            .execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; BEGIN")?;
        database.execute_batch(SCHEMA)?;
        database.execute_batch(SCHEMA_3_18)?;
        let files = (unfinished, self.to.clone());
        let archive = Archive::new(self.artifacts.open(&self.place.storage)?.artifacts);
        Ok(ExportContext::new(table.in_background(), archive, experiment, database, files))
    }
}

/// Returns the temporary name that a file has until it is complete.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".unfinished");
    PathBuf::from(name)
}
