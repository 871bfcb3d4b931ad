//! Reports the outcome for each entity.

use std::fmt;

use mlflow_api::{ExperimentId, ModelId, RunId};

/// An entity that is removed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Entity {
    /// A run.
    Run(RunId),
    /// A logged model.
    LoggedModel(ModelId),
    /// An experiment.
    Experiment(ExperimentId),
}

impl fmt::Display for Entity {
    /// In MLflow's words.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(run) => write!(formatter, "Run with ID {run}"),
            Self::LoggedModel(model) => write!(formatter, "Logged model with ID {model}"),
            Self::Experiment(experiment) => write!(formatter, "Experiment with ID {experiment}"),
        }
    }
}

/// Is told the outcome for each entity, as soon as it is certain.
pub trait Report: Send + Sync {
    /// It is gone, with all that hung on it.
    fn removed(&self, entity: Entity);

    /// So many traces of an experiment are gone that were kept no longer.
    fn removed_traces(&self, experiment: ExperimentId, traces: u64);

    /// Histories of metrics of so many runs of an experiment are gone that were kept no longer.
    fn removed_histories(&self, experiment: ExperimentId, runs: u64);

    /// Files of traces of an experiment that are gone stay, for this reason.
    fn kept_files(&self, experiment: ExperimentId, why: &str);

    /// It stays as it was, deleted or restored, for this reason.
    fn kept(&self, entity: Entity, why: &str);
}

/// Tells the log: where nobody reads along.
#[derive(Clone, Copy, Debug)]
pub struct ToLog;

impl Report for ToLog {
    fn removed(&self, entity: Entity) {
        tracing::info!(%entity, "removed for good");
    }

    fn removed_traces(&self, experiment: ExperimentId, traces: u64) {
        tracing::info!(%experiment, traces, "traces that are kept no longer were removed");
    }

    fn removed_histories(&self, experiment: ExperimentId, runs: u64) {
        tracing::info!(%experiment, runs, "histories of metrics that are kept no longer were removed");
    }

    fn kept_files(&self, experiment: ExperimentId, why: &str) {
        tracing::warn!(%experiment, why, "files of traces that are gone could not be removed");
    }

    fn kept(&self, entity: Entity, why: &str) {
        tracing::warn!(%entity, why, "could not be removed for good");
    }
}
