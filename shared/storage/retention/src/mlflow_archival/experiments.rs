//! Finds the experiments whose traces are to be archived to files: those that request it by the tag
//! `mlflow.trace.archiveNow`, and those for which a location is configured.

use std::num::NonZeroU32;

use entities::trace_archival::{
    ArchiveRequest, TraceArchivalPolicy, TraceArchivalSetting, WorkspaceArchival, experiment_tag,
};
use entities::workspaces::Workspaces;
use entities::{entry_name, experiment_state, now_ms, workspace_named};
use key_schema::attributes::{ROW_VALUE, TAGS, WORKSPACE};
use key_schema::{Name, rows};
use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{ARCHIVE_NOW_TAG, ArchiveNow, ErrorCode, ExperimentId, Result, Workspace};
use table::{Condition, Failure, Item, Update, text};
use trace_blocks::LargeTraceTurn;

use super::day_walk::{TraceWalk, WalkOutcome};
use super::trace_archival::TraceArchiver;
use crate::failures::RemovalFailures;
use crate::report::RemovalReport;
use crate::store::Retention;

/// Age in ms after which a request without a tag is deleted. It is longer than any request of a
/// client, which sets the tag after it has written the row.
const TAG_DELAY: i64 = 600_000;
/// Number of experiments whose settings are read at a time.
const BATCH_SIZE: usize = 50;

impl Retention {
    /// Archives traces to files: in all experiments that request it, and in those of the given
    /// workspaces for which a location is configured. May be interrupted at any point and repeated.
    ///
    /// If nothing is configured or requested, sends one request for the server's setting, one for the
    /// requests, and one per workspace other than the default one. Otherwise, sends one more per MB
    /// of experiment names, one per fifty experiments, and one for the days of each experiment.
    ///
    /// # Errors
    /// Returns the first failure, after everything else has been tried.
    pub async fn archive_to_files(&self, names: &[Workspace], report: &dyn RemovalReport) -> Result<()> {
        if !self.artifacts.are_kept() || !self.may_archive {
            return Ok(());
        }
        let server = TraceArchivalSetting::read(&self.table).await?;
        let mut left = server.per_pass.map_or(u64::MAX, |most| u64::from(NonZeroU32::get(most)));
        let mut failures = RemovalFailures::default();
        for request in ArchiveRequest::all(&self.table).await? {
            let outcome = Box::pin(self.archive_requested(&server, request, &mut left, report)).await;
            failures.note(format_args!("traces of experiment {} to be archived", request.experiment), outcome)?;
        }
        for name in names.iter().filter(|name| !name.is_for_removal()) {
            let outcome = Box::pin(self.archive_workspace(&server, name, &mut left, report)).await;
            failures.note(format_args!("traces of workspace {name} to be archived"), outcome)?;
        }
        failures.finish()
    }

    async fn workspace_archival(&self, name: &Workspace) -> Result<WorkspaceArchival> {
        match Workspaces::new(self.table.clone()).get(name).await {
            Ok(document) => Ok(WorkspaceArchival::of(&document)),
            Err(error) if error.code == ErrorCode::ResourceDoesNotExist => Ok(WorkspaceArchival::default()),
            Err(error) => Err(error),
        }
    }

    /// Returns the location to which the traces of a workspace are archived, if one is configured and
    /// supported. Takes at most two requests per minute.
    pub(crate) async fn file_location(&self, name: &Workspace) -> Result<Option<String>> {
        let server = self.trace_archival.server().await?;
        let workspace = self.trace_archival.workspace(name).await?;
        let location = TraceArchivalPolicy { server: &server, workspace: &workspace }.location();
        Ok(location.filter(|location| self.artifacts.at(location).is_ok()))
    }

    /// Archives the traces of a workspace's experiments that have reached the configured age.
    async fn archive_workspace(
        &self,
        server: &TraceArchivalSetting,
        name: &Workspace,
        left: &mut u64,
        report: &dyn RemovalReport,
    ) -> Result<()> {
        let workspace = self.workspace_archival(name).await?;
        let Some(archive) = (TraceArchivalPolicy { server, workspace: &workspace }).location() else { return Ok(()) };
        if self.artifacts.at(&archive).is_err() {
            tracing::warn!(workspace = %name, archive, "traces are not archived to a location outside of the server's artifacts");
            return Ok(());
        }
        let mut failures = RemovalFailures::default();
        for experiments in self.index.experiments(name).await?.chunks(BATCH_SIZE) {
            let archival = self.trace_archival.experiments(experiments).await?;
            for experiment in experiments {
                let Some(until) = archival.get(experiment).and_then(|archival| archival.until(now_ms())) else {
                    continue;
                };
                let outcome = self.file_traces(*experiment, &archive, until, false, left, report).await;
                failures.note(format_args!("traces of experiment {experiment} to be archived"), outcome.map(drop))?;
            }
        }
        failures.finish()
    }

    /// Archives the traces of an experiment whose tag requests it, and removes the tag once no more
    /// traces are left that will be archived (`_clear_completed_archive_now_requests`).
    async fn archive_requested(
        &self,
        server: &TraceArchivalSetting,
        request: ArchiveRequest,
        left: &mut u64,
        report: &dyn RemovalReport,
    ) -> Result<()> {
        let experiment = request.experiment;
        let row_key = rows::ExperimentTag::key(&experiment, &Name::from(ARCHIVE_NOW_TAG));
        let document_key = rows::Experiment::key(&experiment);
        let items = self.table.get_many(&[document_key.clone(), row_key.clone()]).await?;
        let Some(document) = items.get(&document_key) else { return request.finish(&self.table).await };
        let Some(tag) = experiment_tag(document, items.get(&row_key), ARCHIVE_NOW_TAG) else {
            let is_old = request.created <= now_ms().saturating_sub(TAG_DELAY);
            return if is_old { request.finish(&self.table).await } else { Ok(()) };
        };
        // The experiment may be restored, and the tag has an effect again.
        if experiment_state(document).stage == LifecycleStage::Deleted {
            return Ok(());
        }
        let Ok(now) = ArchiveNow::of_tag(tag) else {
            tracing::warn!(%experiment, tag, "ignoring a malformed request to archive traces");
            return request.finish(&self.table).await;
        };
        let workspace = self.workspace_archival(&workspace_named(document.get(WORKSPACE))?).await?;
        let Some(root) = self.artifacts.uri() else { return Ok(()) };
        let archive = TraceArchivalPolicy { server, workspace: &workspace }.location_below(&root);
        if self.artifacts.at(&archive).is_err() {
            tracing::warn!(%experiment, archive, "traces are not archived to a location outside of the server's artifacts");
            return Ok(());
        }
        let until = now.older_than.map_or(i64::MAX, |age| now_ms().saturating_sub(age.ms()));
        let outcome = self.file_traces(experiment, &archive, until, true, left, report).await?;
        if outcome.is_cut_off || outcome.postponed > 0 || outcome.in_progress > 0 {
            return Ok(());
        }
        if outcome.blocked > 0 {
            let traces = outcome.blocked;
            tracing::warn!(%experiment, traces, "the request to archive traces is finished, but some traces cannot be archived");
        }
        self.remove_request_tag(experiment, document, tag).await?;
        request.finish(&self.table).await
    }

    /// Removes the tag of a request, unless a client has changed it in the meantime.
    async fn remove_request_tag(&self, experiment: ExperimentId, document: &Item, tag: &str) -> Result<()> {
        let name = entry_name(ARCHIVE_NOW_TAG);
        let is_in_document = document.map(TAGS).is_some_and(|tags| tags.contains_key(name.as_ref()));
        let removed = if is_in_document {
            let is_same = Condition::Equals((TAGS, name.as_ref()).into(), text(tag));
            let update = Update::new(rows::Experiment::key(&experiment)).remove((TAGS, name.as_ref()));
            self.table.apply(&update.only_if(is_same)).await
        } else {
            let row = rows::ExperimentTag::key(&experiment, &Name::from(ARCHIVE_NOW_TAG));
            self.table.delete(&row, &Condition::Equals(ROW_VALUE.into(), text(tag))).await
        };
        match removed {
            Ok(()) | Err(Failure::Refused { .. }) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    async fn file_traces(
        &self,
        experiment: ExperimentId,
        archive: &str,
        until: i64,
        is_requested: bool,
        left: &mut u64,
        report: &dyn RemovalReport,
    ) -> Result<WalkOutcome> {
        let archiver = TraceArchiver {
            table: &self.table,
            artifacts: &self.artifacts,
            spans: &self.archive,
            archive,
            turn: LargeTraceTurn::default(),
        };
        let walk = TraceWalk { table: &self.table, archiver, experiment, until, is_requested };
        let outcome = walk.run(left).await?;
        if outcome.archived > 0 {
            report.archived_traces(experiment, outcome.archived);
        }
        Ok(outcome)
    }
}
