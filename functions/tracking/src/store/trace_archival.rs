//! The age at which traces are archived, as responses about experiments show it. Like MLflow's
//! server, this server shows it only if traces are archived to files (`trace_archival_enabled`).

use entities::trace_archival::{ArchivalAge, TraceArchivalSetting};
use mlflow_api::tracking::Experiment;
use mlflow_api::{ARCHIVAL_RETENTION_TAG, ExperimentId, Result, Workspace};

use super::Store;
use super::shown_archival::ShownArchival;

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

    /// Returns a store that shows the age at which the traces of a workspace's experiments are
    /// archived, if traces are archived to files. Settings that cannot be read are logged, and no age
    /// is shown. Takes at most one request per minute, or two if traces are archived to files.
    pub async fn showing_archival(&self, workspace: &Workspace) -> Self {
        let shown_archival = self.shown_archival_of(workspace).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the settings for the archival of traces cannot be read");
            None
        });
        Self { shown_archival, ..self.clone() }
    }

    async fn shown_archival_of(&self, workspace: &Workspace) -> Result<Option<ShownArchival>> {
        let server = self.trace_archival.server().await?;
        if !self.is_enabled(&server) {
            return Ok(None);
        }
        Ok(Some(ShownArchival { server, workspace: self.trace_archival.workspace(workspace).await? }))
    }

    /// Sets the age at which the traces of an experiment are archived, if this store shows it.
    pub(super) fn set_archival_retention(&self, id: ExperimentId, experiment: &mut Experiment) {
        let Some(shown) = &self.shown_archival else { return };
        let tag = experiment.tags.iter().find(|tag| tag.key == ARCHIVAL_RETENTION_TAG).map(|tag| tag.value.as_str());
        experiment.effective_trace_archival_retention = shown.retention(id, tag);
    }

    fn is_enabled(&self, setting: &TraceArchivalSetting) -> bool {
        let is_supported = |location: &String| self.artifacts().at(location).is_ok();
        setting.age != ArchivalAge::Off && setting.location.as_ref().is_some_and(is_supported)
    }
}
