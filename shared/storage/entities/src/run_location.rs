//! Locations of runs.

use key_schema::{Key, index, rows};
use mlflow_api::{Error, ExperimentId, RunId};
use table::{Item, Query, Table};

/// Location of a run: its experiment and its ID.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunLocation {
    /// Experiment of the run.
    pub experiment: ExperimentId,
    /// ID of the run.
    pub run: RunId,
}

impl RunLocation {
    /// Returns the key of the run's document.
    #[must_use]
    pub fn key(&self) -> Key {
        rows::Run::key(&self.experiment, &self.run)
    }

    /// Returns the key of the run's first metrics document.
    #[must_use]
    pub fn metrics_key(&self) -> Key {
        rows::RunMetrics::key(&self.run)
    }

    /// Returns MLflow's error for a run that does not exist.
    #[must_use]
    pub fn not_found(&self) -> Error {
        RunId::not_found(self.run.as_str())
    }
}

/// Locates the run with an ID. Takes no request for an ID that this server generated, and one
/// request for any other ID. The run may not exist, which only reading its document shows.
pub async fn locate_run(table: &Table, text: &str) -> mlflow_api::Result<RunLocation> {
    let run = RunId::parse(text).ok_or_else(|| RunId::not_found(text))?;
    if let Some(experiment) = run.experiment() {
        return Ok(RunLocation { experiment, run });
    }
    let query = Query::of(index::RunLocation::all(&run)).limit(1);
    let page = table.query_page(&query).await?;
    let row = page.items.first().and_then(Item::key).and_then(|key| rows::Run::parse(&key));
    let row = row.ok_or_else(|| RunId::not_found(text))?;
    Ok(RunLocation { experiment: row.experiment, run })
}
