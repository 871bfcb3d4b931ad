//! Records of experiments.

use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{ExperimentId, Workspace};
use serde::Serialize;
use table::Item;

/// An experiment of an MLflow database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ExperimentRecord {
    /// The id in the database. It identifies the record, and is not part of its fingerprint.
    #[serde(skip)]
    pub(crate) id: ExperimentId,
    /// Workspace that the experiment belongs to.
    pub(crate) workspace: Workspace,
    /// Name of the experiment.
    pub(crate) name: String,
    /// The artifact location.
    pub(crate) artifact_location: String,
    /// The lifecycle stage.
    pub(crate) stage: LifecycleStage,
    /// Creation time, in ms since 1970. 0 if unknown.
    pub(crate) created: i64,
    /// Time of the last change, in ms since 1970. 0 if unknown.
    pub(crate) updated: i64,
    /// Tags, sorted by key.
    pub(crate) tags: Vec<(String, String)>,
}

/// An experiment that is being imported.
#[derive(Clone, Debug)]
pub(crate) struct ImportedExperiment {
    /// The id in the database, by which its contents are read.
    pub(crate) source_id: ExperimentId,
    /// The id in the table. It differs from the id in the database if that is taken and `--remap`
    /// is given.
    pub(crate) id: ExperimentId,
    /// How often the stage has changed in the table, including a change by this import. Runs with a
    /// stage of their own record this number in the attribute `STAGE_VERSION`.
    pub(crate) stage_version: u32,
    /// Whether this import changes the stage of an experiment that the table already has. The
    /// stages that its runs have recorded then apply to the previous version.
    pub(crate) has_new_stage: bool,
    /// The record as it is written to the table, with the new name and artifact location.
    pub(crate) record: ExperimentRecord,
    /// What happens to the experiment's own items.
    pub(super) plan: ExperimentPlan,
}

impl ImportedExperiment {
    /// Returns whether the experiment is new in the table. Clients cannot see it until it is
    /// published.
    pub(crate) fn is_new(&self) -> bool {
        matches!(self.plan, ExperimentPlan::Write(None))
    }
}

/// What happens to an experiment's own items.
#[derive(Clone, Debug)]
pub(super) enum ExperimentPlan {
    /// The items are written. The field is the document that they replace, if there is one.
    Write(Option<Box<Item>>),
    /// The items stay as they are.
    Keep,
}

/// An experiment that is being exported.
#[derive(Clone, Debug)]
pub(crate) struct ExportedExperiment {
    /// The record to write.
    pub(crate) record: ExperimentRecord,
    /// How often the stage has changed.
    pub(crate) stage_version: u32,
}
