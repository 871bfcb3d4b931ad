//! Runs the removals that the policies require in slices: each slice runs for a limited time, so
//! that a process can do other work in between. The next slice continues where the last one
//! stopped.
//!
//! When a slice runs out of time, its future is dropped at whatever point it has reached. This is
//! safe, because every removal may stop at any point.

use std::time::Duration;

use entities::workspaces::Workspaces;
use mlflow_api::{Result, Workspace};
use runtime::clock::{Moment, now_ms};

use crate::report::RemovalReport;
use crate::store::Retention;

/// Interval in ms after which slices begin with another workspace.
const TURN_MS: i64 = 3_600_000;

impl Retention {
    /// Deletes the entities, traces and histories that the policies no longer keep in each
    /// workspace, what requests to the registries of MCP servers and skills have left unfinished, and
    /// the contents of workspaces that were deleted together with their contents.
    /// Also archives traces and long metric histories. Takes at most `longest`: half of it for deleted
    /// entities, and the remaining time for expired traces, for expired histories, for the archive, for
    /// traces that are archived to files, for histories that are archived, and then for all other traces.
    /// Returns whether everything but archiving was completed. If one workspace fails,
    /// the others are still processed.
    ///
    /// Without policies, sends one request for the list of workspaces, three for the registries, one for
    /// the archive, five for each workspace, and one for each experiment that has its turn.
    ///
    /// # Errors
    /// Returns the first failure, after everything else has been tried. The next slice retries it.
    pub async fn remove_for(
        &self,
        longest: Duration,
        workspaces: &Workspaces,
        report: &dyn RemovalReport,
    ) -> Result<bool> {
        let (begin, now) = (Moment::now(), now_ms());
        let names = in_turn(workspaces.names().await?, now.div_euclid(TURN_MS));
        let deleted = within(longest / 2, Box::pin(self.remove_all_deleted(&names, workspaces, report))).await;
        let rest = longest.saturating_sub(begin.age());
        let traces = within(rest, Box::pin(self.remove_all_expired(&names, report))).await;
        let rest = longest.saturating_sub(begin.age());
        let histories = within(rest, Box::pin(self.remove_all_old_histories(&names, now, report))).await;
        let rest = longest.saturating_sub(begin.age());
        let swept = within(rest, Box::pin(self.sweep_archive(now))).await;
        let rest = longest.saturating_sub(begin.age());
        let filed = within(rest / 2, Box::pin(self.archive_to_files(&names, report))).await;
        let rest = longest.saturating_sub(begin.age());
        let histories_archived = within(rest / 2, Box::pin(self.archive_all_histories(&names, now, report))).await;
        let rest = longest.saturating_sub(begin.age());
        let archived = within(rest, Box::pin(self.archive_all_traces(&names, now))).await;
        // Archiving may take many slices at first, and nothing has to be removed by then.
        filed.and(histories_archived).and(archived)?;
        Ok(deleted? && traces? && histories? && swept?)
    }

    async fn archive_all_traces(&self, names: &[Workspace], now: i64) -> Result<()> {
        let mut outcome = Ok(());
        for workspace in names.iter().filter(|workspace| !workspace.is_for_removal()) {
            outcome = outcome.and(self.archive_traces(workspace, now).await);
        }
        outcome
    }

    async fn remove_all_deleted(
        &self,
        names: &[Workspace],
        workspaces: &Workspaces,
        report: &dyn RemovalReport,
    ) -> Result<()> {
        let mut outcome = self.resume_in_registries().await;
        for workspace in names {
            let removed = if workspace.is_for_removal() {
                self.remove_contents(workspaces, workspace, report).await
            } else {
                self.apply_policy(workspace, report).await.map(drop)
            };
            outcome = outcome.and(removed);
        }
        outcome
    }

    async fn remove_all_expired(&self, names: &[Workspace], report: &dyn RemovalReport) -> Result<()> {
        let mut outcome = Ok(());
        for workspace in names.iter().filter(|workspace| !workspace.is_for_removal()) {
            outcome = outcome.and(self.remove_expired_traces(workspace, report).await);
        }
        outcome
    }

    async fn remove_all_old_histories(&self, names: &[Workspace], now: i64, report: &dyn RemovalReport) -> Result<()> {
        let mut outcome = Ok(());
        for workspace in names.iter().filter(|workspace| !workspace.is_for_removal()) {
            outcome = outcome.and(self.remove_old_histories(workspace, now, report).await);
        }
        outcome
    }

    async fn archive_all_histories(&self, names: &[Workspace], now: i64, report: &dyn RemovalReport) -> Result<()> {
        let mut outcome = Ok(());
        for workspace in names.iter().filter(|workspace| !workspace.is_for_removal()) {
            outcome = outcome.and(self.archive_histories(workspace, now, report).await);
        }
        outcome
    }

    /// Deletes all experiments of a workspace that was deleted with its contents, and then the
    /// workspace's other contents.
    async fn remove_contents(&self, workspaces: &Workspaces, of: &Workspace, report: &dyn RemovalReport) -> Result<()> {
        let found = self.removed_with(of).await?;
        self.remove(of, &found, report).await?;
        self.remove_rest(workspaces, of).await
    }

    /// Deletes the contents, other than experiments, of a workspace that was deleted together with
    /// its contents. If no experiment is left, also deletes the row that lists the workspace.
    ///
    /// # Errors
    /// Returns failures of the table, and of the deletion of files.
    pub async fn remove_rest(&self, workspaces: &Workspaces, workspace: &Workspace) -> Result<()> {
        self.remove_skill_content(workspace).await?;
        workspaces.remove_contents(workspace).await?;
        if self.removed_with(workspace).await?.entities().next().is_none() {
            workspaces.forget(workspace).await?;
        }
        Ok(())
    }
}

/// Runs `work` for at most `longest`. Returns whether it was completed.
async fn within(longest: Duration, work: impl Future<Output = Result<()>>) -> Result<bool> {
    match tokio::time::timeout(longest, work).await {
        Ok(outcome) => outcome.map(|()| true),
        Err(_) => Ok(false),
    }
}

/// Rotates the list of workspaces, so that a slice begins with a different one each time. Otherwise
/// a workspace with much to delete would delay the ones after it forever.
fn in_turn(mut names: Vec<Workspace>, turn: i64) -> Vec<Workspace> {
    let count = i64::try_from(names.len()).unwrap_or(i64::MAX).max(1);
    names.rotate_left(usize::try_from(turn.rem_euclid(count)).unwrap_or_default());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_workspace_has_the_first_turn() {
        let names: Vec<_> =
            ["team-a", "team-b", "team-c"].iter().filter_map(|name| Workspace::stored(name).ok()).collect();
        let first = |turn| in_turn(names.clone(), turn)[0].as_str().to_owned();
        assert_eq!([first(0), first(1), first(2), first(3)], ["team-a", "team-b", "team-c", "team-a"]);
        assert!(in_turn(Vec::new(), 5).is_empty());
    }
}
