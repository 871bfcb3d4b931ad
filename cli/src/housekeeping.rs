//! Work that DynamoDB does by itself, and the embedded engine only when asked. It forgets the
//! stream after a day, and removes items whose time has come. It also removes what the policies no
//! longer keep, for which an operator of DynamoDB has a schedule.

use std::time::Duration;

use embedded_engine::Engine;
use mlflow_api::{ExperimentId, Workspace};
use retention::{Entity, Report, Retention};
use workspaces::Workspaces;

/// Pause between two rounds.
const PAUSE: Duration = Duration::from_mins(5);
/// How long a stream keeps its records.
const STREAM: Duration = Duration::from_hours(24);

/// Rounds from one look at the TTL policy to the next: an hour.
const POLICY: u32 = 12;

/// Runs until it is dropped. Without a retention, it does not look at the table's content.
pub(crate) async fn run(engine: Engine, retention: Option<(Retention, Workspaces)>) {
    for round in 0_u32.. {
        if let Err(error) = engine.trim_stream(STREAM).await {
            tracing::warn!(%error, "the stream could not be trimmed");
        }
        if let Err(error) = engine.sweep_ttl().await {
            tracing::warn!(%error, "expired items could not be removed");
        }
        if let Some((retention, workspaces)) = retention.as_ref().filter(|_| round.is_multiple_of(POLICY))
            && let Err(error) = remove_old(retention, workspaces).await
        {
            tracing::warn!(%error, "the retention policies could not be applied");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Removes what the policies keep no longer in each workspace, and the contents that were deleted
/// with a workspace. If one workspace fails, the others still have their turn.
async fn remove_old(retention: &Retention, workspaces: &Workspaces) -> mlflow_api::Result<()> {
    let mut outcome = Ok(());
    for workspace in workspaces.names().await? {
        if workspace.is_for_removal() {
            outcome = outcome.and(remove_deleted(retention, workspaces, &workspace).await);
        } else {
            outcome = outcome.and(retention.apply_policy(&workspace, &Log).await.map(drop));
            outcome = outcome.and(retention.remove_expired_traces(&workspace, &Log).await);
        }
    }
    outcome
}

/// Removes the contents of a deleted workspace.
async fn remove_deleted(
    retention: &Retention,
    workspaces: &Workspaces,
    workspace: &Workspace,
) -> mlflow_api::Result<()> {
    let found = retention.removed_with(workspace).await?;
    retention.remove(workspace, &found, &Log).await?;
    remove_rest(workspaces, retention, workspace).await
}

/// Removes the rest of a workspace that was deleted with its contents, unless some of its
/// experiments stay.
pub(crate) async fn remove_rest(
    workspaces: &Workspaces,
    retention: &Retention,
    workspace: &Workspace,
) -> mlflow_api::Result<()> {
    workspaces.remove_models_and_datasets(workspace).await?;
    if retention.removed_with(workspace).await?.entities().next().is_none() {
        workspaces.forget(workspace).await?;
    }
    Ok(())
}

/// Logs the outcome for each entity.
struct Log;

impl Report for Log {
    fn removed(&self, entity: Entity) {
        tracing::info!(%entity, "removed for good");
    }

    fn removed_traces(&self, experiment: ExperimentId, traces: u64) {
        tracing::info!(%experiment, traces, "traces that are kept no longer were removed");
    }

    fn kept_files(&self, experiment: ExperimentId, why: &str) {
        tracing::warn!(%experiment, why, "files of traces that are gone could not be removed");
    }

    fn kept(&self, entity: Entity, why: &str) {
        tracing::warn!(%entity, why, "could not be removed for good");
    }
}
