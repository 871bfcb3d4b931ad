//! Options of `export`.

use std::path::PathBuf;

use clap::Args;
use mlflow_api::ExperimentId;
use rusqlite::Connection;

use super::context::ExportContext;
use crate::Failure;
use crate::artifact_options::ArtifactOptions;
use crate::table_options::TableOptions;

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
        let storage = self.artifacts.open(&self.place.storage)?;
        let database = Connection::open(&self.to)?;
        database.execute_batch("BEGIN")?;
        Ok(ExportContext::new(table.in_background(), experiment, storage.root, database))
    }
}
