//! `mlflow-serverless config`: shows and changes the settings of a table.

mod archival;
mod costs;
mod experiment_tag;
mod setting_holder;
mod settings;
mod values;

use clap::{Args, Subcommand};
use embedded_engine::Engine;
use entities::workspaces::Workspaces;
use mlflow_api::{ExperimentId, Workspace};
use table::Table;

use self::setting_holder::{SettingHolder, failed};
use self::settings::{SettingKind, SettingScope, TableSetting};
use self::values::SettingValue;
use crate::output::print_line;
use crate::table_options::TableOptions;
use crate::{Failure, reindex};

/// Options of `config`.
#[derive(Args)]
#[command(after_help = settings::settings_help())]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List all settings with their meaning, values, defaults, and the cost of a change. Reads no
    /// table.
    List,
    /// Show the values in a table. Experiments and workspaces are listed if they have a value of
    /// their own.
    Show {
        #[command(flatten)]
        place: TableOptions,
    },
    /// Show what a change costs and, with `--yes`, apply it.
    #[command(after_help = settings::settings_help())]
    Set {
        /// Name of the setting.
        #[arg(value_name = "SETTING")]
        setting: String,
        /// New value. Settings that are patterns take one or more.
        #[arg(value_name = "VALUE", required = true)]
        values: Vec<String>,
        #[command(flatten)]
        change: ChangeOptions,
        #[command(flatten)]
        place: TableOptions,
    },
    /// Reset a setting to its default. Without `--yes`, only show what that costs.
    Unset {
        /// Name of the setting.
        #[arg(value_name = "SETTING")]
        setting: String,
        #[command(flatten)]
        change: ChangeOptions,
        #[command(flatten)]
        place: TableOptions,
    },
}

/// Options of a command that changes a setting.
#[derive(Args)]
struct ChangeOptions {
    /// Change the value for this experiment only.
    #[arg(long, value_name = "ID", conflicts_with = "workspace")]
    experiment: Option<String>,
    /// Change the value for this workspace.
    #[arg(long, value_name = "NAME")]
    workspace: Option<String>,
    /// Apply the change. Without this option, the command only shows what the change costs, and
    /// exits with an error.
    #[arg(long)]
    yes: bool,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    match options.command {
        Command::List => {
            print_line(settings::settings_table().trim_end());
            Ok(())
        }
        Command::Show { place } => {
            let (table, _engine) = open(&place).await?;
            show(&table).await
        }
        Command::Set { setting, values, change, place } => {
            let (setting, holder) = (setting_of(&setting)?, change.holder()?);
            check_scope(setting, &holder)?;
            let value = values::validate(setting.kind, &values)?;
            apply_change(setting, &holder, Some(&value), &change, &place).await
        }
        Command::Unset { setting, change, place } => {
            let (setting, holder) = (setting_of(&setting)?, change.holder()?);
            check_scope(setting, &holder)?;
            apply_change(setting, &holder, None, &change, &place).await
        }
    }
}

impl ChangeOptions {
    fn holder(&self) -> Result<SettingHolder, Failure> {
        Ok(match (&self.experiment, &self.workspace) {
            (Some(id), _) => SettingHolder::Experiment(ExperimentId::parse(id).map_err(|error| error.message)?),
            (_, Some(name)) => SettingHolder::Workspace(Workspace::parse(name).map_err(|error| error.message)?),
            _ => SettingHolder::Server,
        })
    }
}

/// Returns the setting of this name if operators can change it.
fn setting_of(name: &str) -> Result<&'static TableSetting, Failure> {
    let setting = TableSetting::named(name)?;
    if setting.is_settable() {
        return Ok(setting);
    }
    Err(format!("{name} cannot be set: it is maintained by the server").into())
}

fn check_scope(setting: &TableSetting, holder: &SettingHolder) -> Result<(), Failure> {
    if setting.scope.contains(&holder.scope()) {
        return Ok(());
    }
    let name = setting.name;
    Err(match (holder.scope(), setting.scope) {
        (SettingScope::Server, [SettingScope::Workspace]) => {
            format!("{name} is set per workspace: select one with --workspace")
        }
        (SettingScope::Experiment, _) => format!("{name} cannot be set for an experiment"),
        (SettingScope::Workspace, _) => format!("{name} cannot be set for a workspace"),
        (SettingScope::Server, _) => format!("{name} cannot be set for the server"),
    }
    .into())
}

async fn open(place: &TableOptions) -> Result<(Table, Option<Engine>), Failure> {
    let (table, engine) = place.connect().await?;
    place.create(&table, false).await?;
    Ok((table, engine))
}

async fn show(table: &Table) -> Result<(), Failure> {
    let held = values::read_all(table).await?;
    let width = held.iter().map(|held| held.holder.to_string().len()).max().unwrap_or_default();
    for SettingValue { setting, holder, value } in held {
        let is_default = holder == SettingHolder::Server && value == setting.default;
        let default = if is_default { " (default)" } else { "" };
        print_line(&format!("{:<24} {:<width$}  {value}{default}", setting.name, holder.to_string()));
    }
    for holder in values::holders_changing_fields(table).await? {
        let option = match &holder {
            SettingHolder::Experiment(id) => format!(" --experiment {id}"),
            _ => String::new(),
        };
        print_line(&format!(
            "Searches do not use all indexed fields of the {holder} yet: a command is rebuilding the index, or was interrupted. If \
             none is running, run `reindex{option}`."
        ));
    }
    Ok(())
}

/// Prints the cost of a change, and applies it if `--yes` is given. Without a value, resets the
/// setting to its default.
async fn apply_change(
    setting: &TableSetting,
    holder: &SettingHolder,
    value: Option<&str>,
    change: &ChangeOptions,
    place: &TableOptions,
) -> Result<(), Failure> {
    let (table, engine) = open(place).await?;
    if let SettingHolder::Workspace(workspace) = holder {
        Workspaces::new(table.clone()).get(workspace).await.map_err(failed)?;
    }
    let is_of_fields = matches!(setting.kind, SettingKind::IndexedValues | SettingKind::IndexedTexts);
    if let (SettingHolder::Experiment(id), true, Some(_)) = (holder, is_of_fields, value) {
        reindex::check_experiment(&table, *id).await?;
    }
    let present = self::current_value(&table, setting, holder).await?;
    let wanted = value.unwrap_or(setting.default);
    let is_same = match value {
        Some(value) => present.as_deref() == Some(value),
        None => present.is_none() || *holder == SettingHolder::Server && present.as_deref() == Some(wanted),
    };
    // If searches still rely on other fields than the indexer maintains, an earlier change to this
    // value was interrupted, and this call completes it.
    if is_same && !(is_of_fields && values::holders_changing_fields(&table).await?.contains(holder)) {
        print_line(&format!("{} of the {holder} already has this value. Nothing was changed.", setting.name));
        return Ok(());
    }
    let before = present.as_deref().unwrap_or("not set");
    print_line(&format!("{} of the {holder}: {before} -> {}", setting.name, value.unwrap_or("not set")));
    // An experiment without a tag of its own uses the setting of the server.
    let falls_back = setting.kind == SettingKind::TraceRetention && *holder != SettingHolder::Server && value.is_none();
    let of_server = if falls_back { self::current_value(&table, setting, &SettingHolder::Server).await? } else { None };
    print_line(&costs::describe_cost(&table, setting, holder, of_server.as_deref().unwrap_or(wanted)).await?);
    if !change.yes {
        return Err("nothing was changed. Repeat the command with --yes to apply the change".into());
    }
    match (setting.kind, holder) {
        (SettingKind::TraceRetention, SettingHolder::Experiment(id)) => experiment_tag::set(&table, *id, value).await?,
        (SettingKind::IndexedValues | SettingKind::IndexedTexts, _) => {
            let part = values::fields_with(&table, setting.kind, holder, value).await?;
            reindex::rebuild(&table, engine, &place.name, &place.storage.archive()?, part, None).await?;
        }
        (SettingKind::TraceArchival(of), SettingHolder::Workspace(name)) if value.is_none() => {
            archival::unset(&table, of, name).await?;
        }
        (SettingKind::TraceArchival(of), _) => archival::write(&table, of, holder, wanted).await?,
        _ => values::write(&table, setting.kind, holder, wanted).await?,
    }
    print_line("The change was applied.");
    Ok(())
}

/// Returns the value of a setting for the server, a workspace or an experiment, or `None` if no
/// value is set there.
async fn current_value(
    table: &Table,
    setting: &TableSetting,
    holder: &SettingHolder,
) -> Result<Option<String>, Failure> {
    let held = values::read_all(table).await?.into_iter();
    let mut held = held.filter(|held| held.setting.kind == setting.kind && held.holder == *holder);
    Ok(held.next().map(|held| held.value))
}
