//! The settings that responses about experiments show.

use std::sync::Arc;

use entities::trace_archival::{TraceArchivalPolicy, TraceArchivalSetting, WorkspaceArchival};
use mlflow_api::ExperimentId;

/// The settings that define at which age the traces of a workspace's experiments are archived.
#[derive(Clone)]
pub(super) struct ShownArchival {
    pub(super) server: Arc<TraceArchivalSetting>,
    pub(super) workspace: Arc<WorkspaceArchival>,
}

impl ShownArchival {
    /// Returns the age at which the traces of an experiment with this retention tag are archived.
    pub(super) fn retention(&self, experiment: ExperimentId, tag: Option<&str>) -> Option<String> {
        let policy = TraceArchivalPolicy { server: &self.server, workspace: &self.workspace };
        Some(policy.retention(experiment, tag)?.as_str().to_owned())
    }
}
