//! Reports of the outcome for each entity.

use std::fmt;

use mlflow_api::{ExperimentId, ModelId, RunId};

/// An entity that is permanently deleted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RemovedEntity {
    /// A run.
    Run(RunId),
    /// A logged model.
    LoggedModel(ModelId),
    /// An experiment.
    Experiment(ExperimentId),
}

impl fmt::Display for RemovedEntity {
    /// Formats the entity in MLflow's words.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(run) => write!(formatter, "Run with ID {run}"),
            Self::LoggedModel(model) => write!(formatter, "Logged model with ID {model}"),
            Self::Experiment(experiment) => write!(formatter, "Experiment with ID {experiment}"),
        }
    }
}

/// A receiver of the outcome for each entity. Its methods are called as soon as an outcome is
/// certain.
pub trait RemovalReport: Send + Sync {
    /// Reports that an entity was deleted with everything that belonged to it.
    fn removed(&self, entity: RemovedEntity);

    /// Reports that expired traces of an experiment were deleted, and how many.
    fn removed_traces(&self, experiment: ExperimentId, traces: u64);

    /// Reports that the expired metric histories of some runs of an experiment were deleted, and
    /// how many runs.
    fn removed_histories(&self, experiment: ExperimentId, runs: u64);

    /// Reports that traces of an experiment were archived to files, and how many.
    fn archived_traces(&self, experiment: ExperimentId, traces: u64);

    /// Reports that long metric histories of some runs of an experiment were moved to the archive,
    /// and how many runs.
    fn archived_histories(&self, experiment: ExperimentId, runs: u64);

    /// Reports that files of deleted traces of an experiment could not be deleted, and why.
    fn kept_files(&self, experiment: ExperimentId, why: &str);

    /// Reports that an entity was kept, and why. The entity may be deleted or restored.
    fn kept(&self, entity: RemovedEntity, why: &str);
}

/// A report that is written to the log, for unattended removals.
#[derive(Clone, Copy, Debug)]
pub struct LogReport;

impl RemovalReport for LogReport {
    fn removed(&self, entity: RemovedEntity) {
        tracing::info!(%entity, "permanently deleted");
    }

    fn removed_traces(&self, experiment: ExperimentId, traces: u64) {
        tracing::info!(%experiment, traces, "expired traces were deleted");
    }

    fn removed_histories(&self, experiment: ExperimentId, runs: u64) {
        tracing::info!(%experiment, runs, "expired metric histories were deleted");
    }

    fn archived_traces(&self, experiment: ExperimentId, traces: u64) {
        tracing::info!(%experiment, traces, "traces were archived to files");
    }

    fn archived_histories(&self, experiment: ExperimentId, runs: u64) {
        tracing::info!(%experiment, runs, "metric histories were archived");
    }

    fn kept_files(&self, experiment: ExperimentId, why: &str) {
        tracing::warn!(%experiment, why, "files of deleted traces could not be deleted");
    }

    fn kept(&self, entity: RemovedEntity, why: &str) {
        tracing::warn!(%entity, why, "could not be permanently deleted");
    }
}
