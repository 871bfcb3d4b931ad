//! The files of traces: attachments, and spans that a client uploaded. They are stored below the
//! artifact location of their experiment.

use std::collections::HashSet;
use std::sync::Arc;

use artifact_store::{ArtifactPath, Location};
use entities::{experiment_state, locate_traces};
use key_schema::rows;
use mlflow_api::{ExperimentId, Result, TraceId, Workspace, location};
use table::Item;

use crate::report::RemovalReport;
use crate::store::Retention;

/// Directory of an experiment that contains a directory for each trace with files.
const TRACES_DIRECTORY: &str = "traces";
/// Number of traces that are looked up at a time.
const BATCH_SIZE: usize = 100;

/// Location of the files of an experiment's traces.
#[derive(Clone)]
pub(crate) struct TraceFiles {
    experiment: ExperimentId,
    location: Arc<Location>,
}

impl TraceFiles {
    /// Deletes the files of a deleted trace. Files that cannot be deleted are found by the next
    /// removal.
    ///
    /// Does nothing unless the trace ID is an OpenTelemetry ID, which is what current clients
    /// generate. Clients choose IDs, so a directory with any other name may be something else. For
    /// example, another experiment may store its artifacts in `traces` of this experiment, in
    /// directories that are named after its runs.
    pub(crate) async fn remove(&self, trace: &TraceId, report: &dyn RemovalReport) {
        if !trace.is_opentelemetry() {
            return;
        }
        let deleted = match ArtifactPath::parse(&format!("{TRACES_DIRECTORY}/{trace}")) {
            Ok(path) => self.location.delete(&path).await,
            Err(error) => Err(error),
        };
        if let Err(error) = deleted {
            let why = error.cause.unwrap_or(error.message);
            report.kept_files(self.experiment, &format!("trace {trace}: {why}"));
        }
    }
}

impl Retention {
    /// Returns the location of the files of an experiment's traces. Returns `None` if there are no
    /// files, or if this server does not store the experiment's artifacts. Sends one request to the
    /// table, and one to list the files.
    pub(crate) async fn trace_files(&self, experiment: ExperimentId) -> Result<Option<TraceFiles>> {
        let Some(item) = self.table.get(&rows::Experiment::key(&experiment)).await? else { return Ok(None) };
        self.trace_files_at(experiment, &experiment_state(&item).artifact_location).await
    }

    /// Returns the location of the files of an experiment's traces, given the experiment's artifact
    /// location.
    async fn trace_files_at(&self, experiment: ExperimentId, location: &str) -> Result<Option<TraceFiles>> {
        // Clients choose the artifact location of an experiment. It may belong to another server,
        // or not exist.
        let Ok(location) = self.artifacts.at(location) else { return Ok(None) };
        let files = TraceFiles { experiment, location: Arc::new(location) };
        // A listing can fail, for example because it has too many entries. This does not mean that
        // there are no files.
        let is_empty =
            files.location.list(&ArtifactPath::parse(TRACES_DIRECTORY)?).await.is_ok_and(|found| found.is_empty());
        Ok(Some(files).filter(|_| !is_empty))
    }

    /// Deletes the files of traces that no longer exist, because a client deleted them or because
    /// they expired, below the artifacts of experiments and below the location to which traces are
    /// archived. A client only uploads files of existing traces. Sends one request for each
    /// experiment, two for the list of its files, one per hundred traces with files, and one for
    /// each trace that no longer exists.
    ///
    /// # Errors
    /// Returns failures of the table.
    pub async fn remove_trace_files(&self, workspace: &Workspace, report: &dyn RemovalReport) -> Result<()> {
        let archive = self.file_location(workspace).await?;
        for experiment in self.index.experiments(workspace).await? {
            let Some(item) = self.table.get(&rows::Experiment::key(&experiment)).await? else { continue };
            self.remove_trace_files_of(experiment, &item, report).await?;
            // If an archival was interrupted before its trace was deleted, the trace's file is here.
            if let Some(archive) = &archive {
                let location = location::append(archive, &experiment.to_string());
                self.remove_files_at(experiment, &location, report).await?;
            }
        }
        Ok(())
    }

    /// Deletes the files of those traces of an experiment that no longer exist, given the
    /// experiment's item.
    pub(crate) async fn remove_trace_files_of(
        &self,
        experiment: ExperimentId,
        item: &Item,
        report: &dyn RemovalReport,
    ) -> Result<()> {
        self.remove_files_at(experiment, &experiment_state(item).artifact_location, report).await
    }

    /// Deletes the files below a location of those traces of an experiment that no longer exist.
    async fn remove_files_at(
        &self,
        experiment: ExperimentId,
        location: &str,
        report: &dyn RemovalReport,
    ) -> Result<()> {
        let Some(files) = self.trace_files_at(experiment, location).await? else { return Ok(()) };
        let listed = match files.location.list(&ArtifactPath::parse(TRACES_DIRECTORY)?).await {
            Ok(listed) => listed,
            Err(error) => {
                report.kept_files(experiment, &error.cause.unwrap_or(error.message));
                return Ok(());
            }
        };
        let name = |path: &str| TraceId::parse(path.rsplit('/').next().unwrap_or(path));
        let traces = listed.iter().filter(|file| file.is_dir).filter_map(|file| name(&file.path));
        let traces: Vec<_> = traces.filter(TraceId::is_opentelemetry).collect();
        for traces in traces.chunks(BATCH_SIZE) {
            // The traces are read after the files are listed. A trace whose files are listed was
            // created before, so if it is missing now, it was deleted.
            let there = locate_traces(&self.table, &traces.iter().collect::<Vec<_>>()).await?;
            let there: HashSet<_> = there.keys().collect();
            for trace in traces.iter().filter(|trace| !there.contains(trace)) {
                files.remove(trace, report).await;
            }
        }
        Ok(())
    }
}
