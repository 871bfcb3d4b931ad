//! A run as a document: its item, its rows, and the conditions under which it can be written to.

use entities::experiments::{check_run_is_active, run_is_active};
use entities::{ExperimentState, MarkUpdate, RunLocation, run_stage};
use key_schema::{Key, Name, rows};
use mlflow_api::{Error, Result};
use table::{Condition, Item, Update};

use crate::store::Store;
use entities::documents::{Document, ParamConflict, print_conflicts};

/// A run's document and the state of its experiment.
pub(crate) struct RunDocument<'a> {
    pub(crate) at: &'a RunLocation,
    pub(crate) experiment: &'a ExperimentState,
    /// Whether the request logs a single param. MLflow's error about a conflicting value depends on
    /// whether a single param or a batch is logged.
    pub(crate) single_param: bool,
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

    fn params_differ(&self, conflicts: &[ParamConflict]) -> Error {
        let run = &self.at.run;
        Error::invalid(match conflicts {
            [ParamConflict { key, old_value, new_value }] if self.single_param => format!(
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
    /// Returns the state of a run's experiment. Takes no request if the lease on it is valid, and
    /// one otherwise.
    pub(crate) async fn run_experiment(&self, at: &RunLocation) -> Result<ExperimentState> {
        self.experiments.state(at.experiment).await?.ok_or_else(|| at.not_found())
    }
}
