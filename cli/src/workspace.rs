//! `mlflow-serverless workspace`: shows the usage of workspaces, and sets their quotas.

use clap::{Args, Subcommand};
use entities::now_ms;
use entities::quota::{QuotaKind, day_of};
use entities::workspaces::{WorkspaceQuota, Workspaces};
use mlflow_api::proto_json::time_text;
use mlflow_api::{Error, Workspace};

use crate::Failure;
use crate::output::print_line;
use crate::table_options::TableOptions;

/// Length of a UTC day in milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1_000;

/// Options of `workspace`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List all workspaces with today's usage (UTC) and quotas.
    List {
        #[command(flatten)]
        place: TableOptions,
    },
    /// Show the daily usage of a workspace, by UTC day.
    Usage {
        /// Name of the workspace.
        #[arg(value_name = "NAME")]
        workspace: String,
        /// Number of days, including today.
        #[arg(long, default_value_t = 30)]
        days: u32,
        #[command(flatten)]
        place: TableOptions,
    },
    /// Set the daily quota of a workspace, per UTC day. Once the quota is exceeded, requests are
    /// refused within a minute. Amounts that are left out have no limit.
    Quota {
        /// Name of the workspace.
        #[arg(value_name = "NAME")]
        workspace: String,
        /// Maximum number of runs.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
        runs: Option<i64>,
        /// Maximum number of traces.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
        traces: Option<i64>,
        /// Maximum bytes of spans, as stored after compression.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
        bytes: Option<i64>,
        #[command(flatten)]
        place: TableOptions,
    },
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    match options.command {
        Command::List { place } => {
            let workspaces = open(&place).await?;
            let today = day_of(now_ms());
            for workspace in workspaces.list().await.map_err(failure)? {
                let name = &workspace.name;
                let days = workspaces.days(name, today).await.map_err(failure)?;
                let brought = days.first().map(|day| day.counted.clone()).unwrap_or_default();
                let quota = workspaces.quota(name).await.map_err(failure)?;
                print_line(&format!("{name}\ttoday: {}\tquota: {}", format_amounts(&brought), format_amounts(&quota)));
            }
        }
        Command::Usage { workspace, days, place } => {
            let (name, workspaces) = (named(&workspace)?, open(&place).await?);
            workspaces.get(&name).await.map_err(failure)?;
            for day in workspaces.days(&name, day_of(now_ms()) + 1 - i64::from(days)).await.map_err(failure)? {
                let date = time_text(day.day * DAY);
                print_line(&format!(
                    "{}\t{}",
                    date.split('T').next().unwrap_or_default(),
                    format_amounts(&day.counted)
                ));
            }
        }
        Command::Quota { workspace, runs, traces, bytes, place } => {
            let (name, workspaces) = (named(&workspace)?, open(&place).await?);
            let bounds = [(QuotaKind::Runs, runs), (QuotaKind::Traces, traces), (QuotaKind::Bytes, bytes)];
            let quota: WorkspaceQuota = bounds.into_iter().filter_map(|(what, most)| Some((what, most?))).collect();
            workspaces.set_quota(&name, &quota).await.map_err(failure)?;
            print_line(&format!("Daily quota of {name}: {}.", format_amounts(&quota)));
        }
    }
    Ok(())
}

fn named(name: &str) -> Result<Workspace, Failure> {
    Workspace::parse(name).map_err(failure)
}

async fn open(place: &TableOptions) -> Result<Workspaces, Failure> {
    let (table, _engine) = place.connect().await?;
    entities::layout::check(&table).await?;
    Ok(Workspaces::new(table))
}

/// Formats amounts for display.
fn format_amounts(amounts: &WorkspaceQuota) -> String {
    let amounts: Vec<_> = amounts.iter().map(|(what, much)| format!("{much} {}", what.name())).collect();
    if amounts.is_empty() { "-".to_owned() } else { amounts.join(", ") }
}

fn failure(error: Error) -> Failure {
    error.cause.unwrap_or(error.message).into()
}
