//! A run as a document: its item, its rows, and when it may be written.

use entities::{ExperimentState, Marked, RunLocation, run_stage};
use key_schema::{Key, Name, rows};
use mlflow_api::{Error, ExperimentId, Result, RunId};
use table::{Condition, Item, Query, Update};

use super::Store;
use super::gate::{check_run_is_active, run_is_active};
use documents::{Conflict, Document, print_conflicts};

/// A run's document, and the state of its experiment.
pub(super) struct RunDocument<'a> {
    pub(super) at: &'a RunLocation,
    pub(super) experiment: &'a ExperimentState,
    /// MLflow words the refusal of a single param otherwise than that of a batch.
    pub(super) single_param: bool,
}

impl Document for RunDocument<'_> {
    fn key(&self) -> Key {
        self.at.key()
    }

    fn param_row(&self, param: &Name) -> Key {
        rows::RunParam::key(&self.at.experiment, &self.at.run, param)
    }

    fn tag_row(&self, tag: &Name) -> Key {
        rows::RunTag::key(&self.at.experiment, &self.at.run, tag)
    }

    fn writable(&self) -> Condition {
        run_is_active(self.experiment)
    }

    fn finished(&self, update: Update) -> Update {
        update.marked(&self.at.run)
    }

    fn check(&self, item: Option<&Item>) -> Result<()> {
        let item = item.ok_or_else(|| self.at.not_found())?;
        check_run_is_active(&self.at.run, run_stage(item, self.experiment))
    }

    fn params_differ(&self, conflicts: &[Conflict]) -> Error {
        let run = &self.at.run;
        Error::invalid(match conflicts {
            [Conflict { key, old_value, new_value }] if self.single_param => format!(
                "Changing param values is not allowed. Param with key='{key}' was already logged with value='{old_value}' \
                 for run ID='{run}'. Attempted logging new value '{new_value}'."
            ),
            _ => format!(
                "Changing param values is not allowed. Params were already logged='{}' for run ID='{run}'.",
                print_conflicts(conflicts)
            ),
        })
    }
}

impl Store {
    /// Where a run is. No request for an id made here, one for any other.
    pub(super) async fn run_locate(&self, text: &str) -> Result<RunLocation> {
        let run = RunId::parse(text).ok_or_else(|| RunId::not_found(text))?;
        let experiment = match run.experiment() {
            Some(experiment) => experiment,
            None => self.run_resolve(&run).await?.ok_or_else(|| RunId::not_found(text))?,
        };
        Ok(RunLocation { experiment, run })
    }

    /// The experiment of a run whose id was made elsewhere.
    async fn run_resolve(&self, run: &RunId) -> Result<Option<ExperimentId>> {
        let partition = key_schema::index::run_location(run);
        let page = self.table.query_page(&Query::global("GSI1", "gsi1pk", partition).limit(1)).await?;
        Ok(page.items.first().and_then(Item::key).and_then(|key| rows::Run::parse(&key)).map(|row| row.experiment))
    }

    /// Where a run is, and the state of its experiment.
    pub(super) async fn run_locate_with_experiment(&self, text: &str) -> Result<(RunLocation, ExperimentState)> {
        let at = self.run_locate(text).await?;
        let experiment = self.experiment_state(at.experiment).await?.ok_or_else(|| at.not_found())?;
        Ok((at, experiment))
    }
}
