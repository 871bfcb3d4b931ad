//! Options of `export`.

use std::path::{Path, PathBuf};

use artifact_store::{Archive, ArtifactStore};
use clap::Args;
use mlflow_api::ExperimentId;
use rusqlite::Connection;

use super::context::ExportContext;
use crate::Failure;
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
    /// Where the server stores artifacts: a directory, or a bucket (`s3://bucket/path`). Archived data
    /// is read there [default: the directory next to the data where this server stores artifacts].
    #[arg(long, value_name = "URI")]
    artifacts_destination: Option<String>,
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
        Ok(ExportContext::new(table.in_background(), self.archive()?, experiment, database, files))
    }

    fn archive(&self) -> Result<Archive, Failure> {
        let artifacts = match &self.artifacts_destination {
            Some(destination) => ArtifactStore::below(destination),
            None => ArtifactStore::in_directory(&self.place.storage.artifacts()?),
        };
        Ok(Archive::new(artifacts))
    }
}

/// Returns the temporary name that a file has until it is complete.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".unfinished");
    PathBuf::from(name)
}
