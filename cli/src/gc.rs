//! `mlflow-serverless gc`: permanently removes deleted entities, like `mlflow gc`, and data past
//! its retention.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::PoisonError;

use clap::Args;
use entities::layout;
use entities::trace_retention::TraceRetentionSetting;
use entities::workspaces::Workspaces;
use indicatif::{ProgressBar, ProgressStyle};
use mlflow_api::proto_json::time_text;
use mlflow_api::{Error, ExperimentId, Workspace};
use retention::{
    DeletionAge, EntitiesToDelete, NamedEntities, RemovalReport, RemovedEntity, Retention, RetentionPolicy,
};
use runtime::clock::now_ms;
use table::Table;

use crate::Failure;
use crate::artifact_options::ArtifactOptions;
use crate::output::print_line;
use crate::table_options::TableOptions;

/// Options of `gc`.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command")]
#[derive(Args)]
pub(crate) struct Options {
    /// Remove only entities that were deleted at least this long ago, such as 30d, 1.5d or 1d2h3m4s
    /// [default: the retention policy's age if no ids are given; otherwise all]. Traces past their
    /// retention are always removed, unless ids are given.
    #[arg(long, value_name = "AGE")]
    older_than: Option<String>,
    /// Remove only these runs, which must be deleted.
    #[arg(long, value_name = "IDS", visible_alias = "runs", value_delimiter = ',')]
    run_ids: Vec<String>,
    /// Also remove the given runs that are not deleted. Use it for an experiment whose partition is
    /// full, in which runs cannot be deleted first because deleting a run needs space.
    #[arg(long, requires = "run_ids")]
    even_active: bool,
    /// Remove only these experiments with their runs. The experiments must be deleted.
    #[arg(long, value_name = "IDS", visible_alias = "experiments", value_delimiter = ',')]
    experiment_ids: Vec<String>,
    /// Remove only these logged models, which must be deleted.
    #[arg(long, value_name = "IDS", visible_alias = "logged-models", value_delimiter = ',')]
    logged_model_ids: Vec<String>,
    /// Remove only traces and metric histories past their retention, and files of traces that no
    /// longer exist. Deleted entities are kept.
    #[arg(long, conflicts_with_all = ["older_than", "run_ids", "experiment_ids", "logged_model_ids", "leave_artifacts", "set_policy", "set_trace_policy"])]
    expired: bool,
    /// Only compare the archive of old traces and metric histories with the references to it, and list
    /// missing objects and objects that nothing refers to. Reads all blocks of traces, and sends a request
    /// for each run. Removes nothing.
    #[arg(long, conflicts_with_all = ["older_than", "run_ids", "experiment_ids", "logged_model_ids", "expired", "dry_run", "set_policy", "set_trace_policy"])]
    check_archive: bool,
    /// List what would be removed, without removing anything. Files of traces are not listed.
    #[arg(long)]
    dry_run: bool,
    /// Also remove entities whose artifacts cannot be reached from this machine, and leave those
    /// artifacts in place.
    #[arg(long)]
    leave_artifacts: bool,
    /// Set how long deleted entities are kept, such as 30d. With this option, the command only
    /// stores the policy and removes nothing. `serve` then removes entities that were deleted longer
    /// ago at its start and once an hour, and so does this command if it is called without an age. `off` removes the policy: `serve` then removes no deleted entities,
    /// and this command removes ALL of them if it is called without an age.
    #[arg(long, value_name = "AGE", conflicts_with_all = ["older_than", "run_ids", "experiment_ids", "logged_model_ids", "dry_run"])]
    set_policy: Option<String>,
    /// Set how long traces are kept after their start, such as 30d, 12h or 90m; `off` keeps them
    /// forever. The tag `mlflow.trace.retention` overrides it for an experiment. Older traces are
    /// hidden within a minute. `serve` removes them at its start and then once an hour, and so does
    /// this command if no ids are given.
    #[arg(long, value_name = "AGE", conflicts_with_all = ["older_than", "run_ids", "experiment_ids", "logged_model_ids", "dry_run"])]
    set_trace_policy: Option<String>,
    #[command(flatten)]
    artifacts: ArtifactOptions,
    #[command(flatten)]
    place: TableOptions,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let (table, engine) = options.place.connect().await?;
    let layout = layout::of(&table).await?;
    let table = table.in_background();
    if let Some(policy) = &options.set_policy {
        set_policy(&table, policy).await?;
    }
    if let Some(policy) = &options.set_trace_policy {
        set_trace_policy(&table, policy).await?;
    }
    if options.set_policy.is_some() || options.set_trace_policy.is_some() {
        return Ok(());
    }
    let kept = options.artifacts.open(&options.place.storage)?;
    let retention = Retention::new(table.clone(), kept.artifacts).leaving_artifacts(options.leave_artifacts);
    // The housekeeper of a stack archives to the stack's bucket. Data in another place would be lost to
    // the stack.
    let retention = if engine.is_some() { retention.with_layout(layout) } else { retention.without_archive() };
    let workspaces = Workspaces::new(table.clone());
    let names = workspaces.names().await.map_err(failed)?;
    if options.check_archive {
        return check_archive(&retention, &names).await;
    }
    let found =
        if options.expired { Vec::new() } else { entities_to_remove(&options, &table, &retention, &names).await? };
    let all: HashSet<_> = found.iter().flat_map(|(_, found)| found.entities()).collect();
    let is_all = options.has_no_ids();
    if options.dry_run {
        // Entities are listed in the order in which they were found, so that every call prints them
        // in the same order. The order of the set `all` is random.
        for entity in found.iter().flat_map(|(_, found)| found.entities()) {
            print_line(&format!("{entity} would be permanently deleted."));
        }
        for workspace in names.iter().filter(|_| is_all) {
            for expired in retention.expired_traces(workspace).await.map_err(failed)? {
                let (experiment, before) = (expired.experiment, time_text(expired.before));
                print_line(&format!(
                    "Traces of experiment {experiment} from before {before} would be permanently deleted."
                ));
            }
            for (experiment, runs) in retention.old_histories(workspace).await.map_err(failed)? {
                print_line(&format!(
                    "Metric histories of {runs} runs of experiment {experiment} would be permanently deleted."
                ));
            }
        }
        return Ok(());
    }
    let bar = ProgressBar::new(all.len() as u64);
    bar.set_style(ProgressStyle::with_template("{bar:40} {pos}/{len} removed, {eta} left")?);
    let progress = Progress { found: all, bar, kept: Mutex::default() };
    // Removals that an earlier call has started are completed as well, because their entities are
    // deleted, too.
    let mut outcome = Ok(());
    if !options.expired {
        outcome = retention.resume(&progress).await.and(retention.resume_in_registries().await);
    }
    for (workspace, found) in &found {
        outcome = outcome.and(retention.remove(workspace, found, &progress).await);
    }
    for workspace in names.iter().filter(|_| is_all) {
        outcome = outcome.and(remove_old(&retention, workspace, &progress).await);
        if workspace.is_for_removal() && !options.expired {
            outcome = outcome.and(retention.remove_rest(&workspaces, workspace).await);
        }
    }
    if is_all {
        outcome = outcome.and(retention.archive_to_files(&names, &progress).await);
        outcome = outcome.and(retention.sweep_archive(now_ms()).await);
    }
    progress.bar.finish_and_clear();
    outcome.map_err(failed)?;
    match progress.kept.into_inner().unwrap_or_else(PoisonError::into_inner) {
        0 => Ok(()),
        kept => Err(format!("{kept} could not be removed").into()),
    }
}

/// Lists the differences between the archive and the references to it.
async fn check_archive(retention: &Retention, names: &[Workspace]) -> Result<(), Failure> {
    let found = retention.check_archive(names).await.map_err(failed)?;
    for (object, referrer) in &found.missing {
        print_line(&format!("Object {object} is missing. The item {} refers to it.", referrer.text()));
    }
    for object in &found.orphaned {
        print_line(&format!("Nothing refers to object {object}."));
    }
    if found.missing.is_empty() {
        print_line(&format!("No objects are missing. {} objects are not referenced.", found.orphaned.len()));
        Ok(())
    } else {
        Err(format!("{} objects of the archive are missing", found.missing.len()).into())
    }
}

/// Removes the data that is removed regardless of the options: traces and metric histories past
/// their retention, and files of traces that no longer exist. Archives the spans of old traces, and long
/// metric histories.
async fn remove_old(retention: &Retention, workspace: &Workspace, progress: &Progress) -> mlflow_api::Result<()> {
    let expired = retention.remove_expired_traces(workspace, progress).await;
    let histories = retention.remove_old_histories(workspace, now_ms(), progress).await;
    let archived = if workspace.is_for_removal() {
        Ok(())
    } else {
        let histories = retention.archive_histories(workspace, now_ms(), progress).await;
        histories.and(retention.archive_traces(workspace, now_ms()).await)
    };
    expired.and(histories).and(archived).and(retention.remove_trace_files(workspace, progress).await)
}

impl Options {
    /// Returns whether no ids are given, in which case everything past its retention is removed.
    fn has_no_ids(&self) -> bool {
        self.run_ids.is_empty() && self.experiment_ids.is_empty() && self.logged_model_ids.is_empty()
    }
}

/// Returns the entities to remove according to the options, by workspace.
async fn entities_to_remove(
    options: &Options,
    table: &Table,
    retention: &Retention,
    all: &[Workspace],
) -> Result<Vec<(Workspace, EntitiesToDelete)>, Failure> {
    let named = NamedEntities {
        runs: options.run_ids.clone(),
        experiments: options.experiment_ids.clone(),
        models: options.logged_model_ids.clone(),
        even_active: options.even_active,
    };
    let age = options.older_than.as_deref().map(DeletionAge::parse).transpose().map_err(failed)?;
    if !named.is_empty() {
        let found = retention.named(&named, age.as_ref()).await.map_err(failed)?;
        return Ok(vec![(Workspace::default(), found)]);
    }
    let age = match age {
        Some(age) => Some(age),
        None => RetentionPolicy::Deleted.read(table).await.map_err(Error::from).map_err(failed)?,
    };
    let before = age.as_ref().map(DeletionAge::before);
    let mut found = Vec::new();
    for workspace in all {
        let of_workspace = if workspace.is_for_removal() {
            retention.removed_with(workspace).await
        } else {
            retention.deleted(workspace, before).await
        };
        found.push((workspace.clone(), of_workspace.map_err(failed)?));
    }
    Ok(found)
}

async fn set_policy(table: &Table, policy: &str) -> Result<(), Failure> {
    let age = if policy == "off" { None } else { Some(DeletionAge::parse(policy).map_err(failed)?) };
    RetentionPolicy::Deleted.write(table, age.as_ref()).await.map_err(Error::from).map_err(failed)?;
    match age {
        Some(age) => print_line(&format!("Deleted entities are kept for {}.", age.as_str())),
        None => print_line("There is no retention policy: `gc` without an age removes all deleted entities."),
    }
    Ok(())
}

async fn set_trace_policy(table: &Table, policy: &str) -> Result<(), Failure> {
    let kept_for = Some(policy).filter(|policy| *policy != "off");
    TraceRetentionSetting::write(table, kept_for).await.map_err(failed)?;
    match kept_for {
        Some(kept_for) => print_line(&format!("Traces are kept for {kept_for} after their start.")),
        None => print_line("Traces are kept forever."),
    }
    Ok(())
}

/// Formats an error together with its internal cause, because the reader is the operator.
pub(crate) fn failed(error: Error) -> Failure {
    let cause = error.cause.map(|cause| format!(" ({cause})"));
    format!("{}{}", error.message, cause.unwrap_or_default()).into()
}

/// Prints the removed entities in MLflow's words, above a progress bar.
struct Progress {
    found: HashSet<RemovedEntity>,
    bar: ProgressBar,
    kept: Mutex<usize>,
}

impl Progress {
    fn done(&self, entity: &RemovedEntity, outcome: &str) {
        if !self.found.contains(entity) {
            // The bar's length does not include runs that are removed with their experiment, and
            // entities whose removal an earlier call has started.
            self.bar.inc_length(1);
        }
        self.bar.inc(1);
        self.bar.suspend(|| print_line(outcome));
    }
}

impl RemovalReport for Progress {
    fn removed(&self, entity: RemovedEntity) {
        self.done(&entity, &format!("{entity} has been permanently deleted."));
    }

    fn removed_traces(&self, experiment: ExperimentId, traces: u64) {
        let outcome = format!("{traces} traces of experiment {experiment} have been permanently deleted.");
        self.bar.suspend(|| print_line(&outcome));
    }

    fn removed_histories(&self, experiment: ExperimentId, runs: u64) {
        let outcome =
            format!("Metric histories of {runs} runs of experiment {experiment} have been permanently deleted.");
        self.bar.suspend(|| print_line(&outcome));
    }

    fn archived_traces(&self, experiment: ExperimentId, traces: u64) {
        self.bar.suspend(|| print_line(&format!("{traces} traces of experiment {experiment} were archived to files.")));
    }

    fn archived_histories(&self, experiment: ExperimentId, runs: u64) {
        let outcome = format!("Metric histories of {runs} runs of experiment {experiment} have been archived.");
        self.bar.suspend(|| print_line(&outcome));
    }

    fn kept_files(&self, experiment: ExperimentId, why: &str) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.bar
            .suspend(|| print_line(&format!("Files of removed traces of experiment {experiment} were kept: {why}.")));
    }

    fn kept(&self, entity: RemovedEntity, why: &str) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.done(&entity, &format!("{entity} was kept: {why}."));
    }
}
