//! The files of traces: spans that a client has uploaded, and attachments. They are below the artifacts of their experiment.

use std::collections::HashSet;
use std::sync::Arc;

use artifact_store::{ArtifactPath, Location};
use entities::{experiment_state, read_traces};
use key_schema::rows;
use mlflow_api::{ExperimentId, Result, TraceId, Workspace};
use table::Item;

use crate::report::Report;
use crate::store::Retention;

/// The directory of an experiment that has a directory for each trace with files.
const DIRECTORY: &str = "traces";
/// Traces that are looked up at a time.
const AT_A_TIME: usize = 100;

/// Where the files of an experiment's traces are.
#[derive(Clone)]
pub(crate) struct TraceFiles {
    experiment: ExperimentId,
    location: Arc<Location>,
}

impl TraceFiles {
    /// Removes the files of a trace that is gone. Files that cannot be removed are found by the
    /// next removal.
    ///
    /// It does so only if the id is one of OpenTelemetry, as current clients have them. Clients
    /// choose ids, and a directory of another name may be something else. For example, another
    /// experiment's artifacts may be kept in `traces` here. Then its runs have directories named by
    /// their ids.
    pub(crate) async fn remove(&self, trace: &TraceId, report: &dyn Report) {
        if !trace.is_opentelemetry() {
            return;
        }
        let deleted = match ArtifactPath::parse(&format!("{DIRECTORY}/{trace}")) {
            Ok(path) => self.location.delete(&path).await,
            Err(error) => Err(error),
        };
        if let Err(error) = deleted {
            let why = error.cause.unwrap_or(error.message);
            report.kept_files(self.experiment, &format!("those of trace {trace}: {why}"));
        }
    }
}

impl Retention {
    /// The location of the files of an experiment's traces; `None` if it has none, or this server
    /// does not keep them. A request, and one to list the files.
    pub(crate) async fn trace_files(&self, experiment: ExperimentId) -> Result<Option<TraceFiles>> {
        let Some(item) = self.table.get(&rows::Experiment::key(&experiment)).await? else { return Ok(None) };
        self.trace_files_at(experiment, &experiment_state(&item).artifact_location).await
    }

    /// The same, given where the artifacts of the experiment are.
    async fn trace_files_at(&self, experiment: ExperimentId, location: &str) -> Result<Option<TraceFiles>> {
        // Clients name the location of an experiment: it may be another server's, or lead nowhere.
        let Ok(location) = self.artifacts.at(location) else { return Ok(None) };
        let files = TraceFiles { experiment, location: Arc::new(location) };
        // More than can be listed is not nothing.
        let is_empty = files.location.list(&ArtifactPath::parse(DIRECTORY)?).await.is_ok_and(|found| found.is_empty());
        Ok(Some(files).filter(|_| !is_empty))
    }

    /// Removes the files of traces that are gone: deleted by a client, or removed. A client uploads files only when the trace is there. A
    /// request for each experiment and two for the list of its files; one for a hundred traces with files, and one for each that is gone.
    ///
    /// # Errors
    /// Those of the table.
    pub async fn remove_trace_files(&self, workspace: &Workspace, report: &dyn Report) -> Result<()> {
        for experiment in self.index.experiments(workspace).await? {
            if let Some(item) = self.table.get(&rows::Experiment::key(&experiment)).await? {
                self.remove_trace_files_of(experiment, &item, report).await?;
            }
        }
        Ok(())
    }

    /// The same of an experiment, given its item.
    pub(crate) async fn remove_trace_files_of(
        &self,
        experiment: ExperimentId,
        item: &Item,
        report: &dyn Report,
    ) -> Result<()> {
        let location = experiment_state(item).artifact_location;
        let Some(files) = self.trace_files_at(experiment, &location).await? else { return Ok(()) };
        let listed = match files.location.list(&ArtifactPath::parse(DIRECTORY)?).await {
            Ok(listed) => listed,
            Err(error) => {
                report.kept_files(experiment, &error.cause.unwrap_or(error.message));
                return Ok(());
            }
        };
        let name = |path: &str| TraceId::parse(path.rsplit('/').next().unwrap_or(path));
        let traces = listed.iter().filter(|file| file.is_dir).filter_map(|file| name(&file.path));
        let traces: Vec<_> = traces.filter(TraceId::is_opentelemetry).collect();
        for traces in traces.chunks(AT_A_TIME) {
            // After the list: a trace with a listed file was there before.
            let there = read_traces(&self.table, &traces.iter().collect::<Vec<_>>()).await?;
            let there: HashSet<_> = there.keys().collect();
            for trace in traces.iter().filter(|trace| !there.contains(trace)) {
                files.remove(trace, report).await;
            }
        }
        Ok(())
    }
}
