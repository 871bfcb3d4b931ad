//! Where a run is.

use key_schema::{Key, index, rows};
use mlflow_api::{Error, ExperimentId, RunId};
use table::{Item, Query, Table};

/// Where a run is: its experiment, and its id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunLocation {
    /// Its experiment.
    pub experiment: ExperimentId,
    /// Its id.
    pub run: RunId,
}

impl RunLocation {
    /// The key of its document.
    #[must_use]
    pub fn key(&self) -> Key {
        rows::Run::key(&self.experiment, &self.run)
    }

    /// The key of its metrics document.
    #[must_use]
    pub fn metrics_key(&self) -> Key {
        rows::RunMetrics::key(&self.run)
    }

    /// MLflow's error for a run that is not there.
    #[must_use]
    pub fn not_found(&self) -> Error {
        RunId::not_found(self.run.as_str())
    }
}

/// Where the run of an id is. No request for an id made here, one for any other; whether there is such a run, only its item
/// says.
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
