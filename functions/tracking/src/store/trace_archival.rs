//! The age at which traces are archived, as responses about experiments show it. Like MLflow's
//! server, this server shows it only if traces are archived to files (`trace_archival_enabled`).

use entities::trace_archival::{ArchivalAge, TraceArchivalPolicy, TraceArchivalSetting};
use mlflow_api::tracking::Experiment;
use mlflow_api::{ARCHIVAL_RETENTION_TAG, ExperimentId, Result, Workspace};

use super::Store;

impl Store {
    /// Returns whether traces are archived to files, which `server-info` reports. A setting that
    /// cannot be read is logged. Takes at most one request per minute.
    pub async fn has_trace_archival(&self) -> bool {
        match self.trace_archival.server().await {
            Ok(setting) => self.is_enabled(&setting),
            Err(error) => {
                tracing::warn!(%error, "the setting for the archival of traces cannot be read");
                false
            }
        }
    }

    /// Sets the age at which the traces of an experiment are archived, if traces are archived to
    /// files. Takes at most one request per minute, or two if traces are archived to files. Settings
    /// that cannot be read are logged, and no age is set.
    pub(super) async fn set_archival_retention(&self, of: &Workspace, id: ExperimentId, experiment: &mut Experiment) {
        let tag = experiment.tags.iter().find(|tag| tag.key == ARCHIVAL_RETENTION_TAG).map(|tag| tag.value.as_str());
        match self.archival_retention(of, id, tag).await {
            Ok(retention) => experiment.effective_trace_archival_retention = retention,
            Err(error) => {
                tracing::warn!(%error, "the settings for the archival of traces cannot be read");
            }
        }
    }

    async fn archival_retention(&self, of: &Workspace, id: ExperimentId, tag: Option<&str>) -> Result<Option<String>> {
        let server = self.trace_archival.server().await?;
        if !self.is_enabled(&server) {
            return Ok(None);
        }
        let workspace = self.trace_archival.workspace(of).await?;
        let policy = TraceArchivalPolicy { server: &server, workspace: &workspace };
        Ok(policy.retention(id, tag).map(|retention| retention.as_str().to_owned()))
    }

    fn is_enabled(&self, setting: &TraceArchivalSetting) -> bool {
        let is_supported = |location: &String| self.artifacts().at(location).is_ok();
        setting.age != ArchivalAge::Off && setting.location.as_ref().is_some_and(is_supported)
    }
}
