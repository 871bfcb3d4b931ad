//! `mlflow-serverless config`: the settings of a table.

mod costs;
mod experiment_tag;
mod settings;
mod values;

use clap::{Args, Subcommand};
use embedded_engine::Engine;
use mlflow_api::{ExperimentId, Workspace};
use table::Table;
use workspaces::Workspaces;

use self::settings::{Kind, Scope, Setting};
use self::values::{Held, Holder};
use crate::connect::Place;
use crate::say::say;
use crate::{Failure, reindex};

/// Options of `config`.
#[derive(Args)]
#[command(after_help = settings::help())]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List all settings: their meaning, values and defaults, and the cost of a change. It reads no
    /// table.
    List,
    /// Show the values in a table. Of experiments and workspaces, only those that have one of their
    /// own.
    Show {
        #[command(flatten)]
        place: Place,
    },
    /// Say what a change costs and, with `--yes`, make it.
    #[command(after_help = settings::help())]
    Set {
        /// Name of the setting.
        #[arg(value_name = "SETTING")]
        setting: String,
        /// Its value; of patterns, one or several.
        #[arg(value_name = "VALUE", required = true)]
        values: Vec<String>,
        #[command(flatten)]
        change: Change,
        #[command(flatten)]
        place: Place,
    },
    /// Go back to the default in the same way.
    Unset {
        /// Name of the setting.
        #[arg(value_name = "SETTING")]
        setting: String,
        #[command(flatten)]
        change: Change,
        #[command(flatten)]
        place: Place,
    },
}

/// Options of a change.
#[derive(Args)]
struct Change {
    /// For this experiment only.
    #[arg(long, value_name = "ID", conflicts_with = "workspace")]
    experiment: Option<String>,
    /// For this workspace.
    #[arg(long, value_name = "NAME")]
    workspace: Option<String>,
    /// Make the change. Without this, the command says what it costs, and fails.
    #[arg(long)]
    yes: bool,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    match options.command {
        Command::List => {
            say(settings::listed().trim_end());
            Ok(())
        }
        Command::Show { place } => {
            let (table, _engine) = open(&place).await?;
            show(&table).await
        }
        Command::Set { setting, values, change, place } => {
            let (setting, holder) = (setting_of(&setting)?, change.holder()?);
            check_scope(setting, &holder)?;
            let value = values::checked(setting.kind, &values)?;
            make(setting, &holder, Some(&value), &change, &place).await
        }
        Command::Unset { setting, change, place } => {
            let (setting, holder) = (setting_of(&setting)?, change.holder()?);
            check_scope(setting, &holder)?;
            make(setting, &holder, None, &change, &place).await
        }
    }
}

impl Change {
    fn holder(&self) -> Result<Holder, Failure> {
        Ok(match (&self.experiment, &self.workspace) {
            (Some(id), _) => Holder::Experiment(ExperimentId::parse(id).map_err(|error| error.message)?),
            (_, Some(name)) => Holder::Workspace(Workspace::parse(name).map_err(|error| error.message)?),
            _ => Holder::Server,
        })
    }
}

/// A setting that somebody can set.
fn setting_of(name: &str) -> Result<&'static Setting, Failure> {
    let setting = Setting::named(name)?;
    if setting.is_settable() {
        return Ok(setting);
    }
    Err(format!("{name} cannot be set: the server keeps it").into())
}

fn check_scope(setting: &Setting, holder: &Holder) -> Result<(), Failure> {
    if setting.scope.contains(&holder.scope()) {
        return Ok(());
    }
    let name = setting.name;
    Err(match (holder.scope(), setting.scope) {
        (Scope::Server, [Scope::Workspace]) => format!("{name} is set for a workspace: name it with --workspace"),
        (Scope::Experiment, _) => format!("{name} cannot be set for an experiment"),
        (Scope::Workspace, _) => format!("{name} cannot be set for a workspace"),
        (Scope::Server, _) => format!("{name} cannot be set for the server"),
    }
    .into())
}

async fn open(place: &Place) -> Result<(Table, Option<Engine>), Failure> {
    let (table, engine) = place.connect().await?;
    place.create(&table, false).await?;
    Ok((table, engine))
}

async fn show(table: &Table) -> Result<(), Failure> {
    let held = values::read_all(table).await?;
    let width = held.iter().map(|held| held.holder.to_string().len()).max().unwrap_or_default();
    for Held { setting, holder, value } in held {
        let is_default = holder == Holder::Server && value == setting.default;
        let default = if is_default { " (default)" } else { "" };
        say(&format!("{:<18} {:<width$}  {value}{default}", setting.name, holder.to_string()));
    }
    for holder in values::between_fields(table).await? {
        let option = match &holder {
            Holder::Experiment(id) => format!(" --experiment {id}"),
            _ => String::new(),
        };
        say(&format!(
            "Searches do not rely on all indexed fields of the {holder} yet: a command is at work, or was cut off. If \
             none is, call `reindex{option}`."
        ));
    }
    Ok(())
}

/// Says what a change costs, and makes it. Without a value, it goes back to the default.
async fn make(
    setting: &Setting,
    holder: &Holder,
    value: Option<&str>,
    change: &Change,
    place: &Place,
) -> Result<(), Failure> {
    let (table, engine) = open(place).await?;
    if let Holder::Workspace(workspace) = holder {
        Workspaces::new(table.clone()).get(workspace).await.map_err(values::failed)?;
    }
    let is_of_fields = matches!(setting.kind, Kind::IndexedValues | Kind::IndexedTexts);
    if let (Holder::Experiment(id), true, Some(_)) = (holder, is_of_fields, value) {
        reindex::check_experiment(&table, *id).await?;
    }
    let present = self::present(&table, setting, holder).await?;
    let wanted = value.unwrap_or(setting.default);
    let is_same = match value {
        Some(value) => present.as_deref() == Some(value),
        None => present.is_none() || *holder == Holder::Server && present.as_deref() == Some(wanted),
    };
    // Else an earlier change was cut off, and this one goes on with it.
    if is_same && !(is_of_fields && values::between_fields(&table).await?.contains(holder)) {
        say(&format!("{} of the {holder} is that already. Nothing was changed.", setting.name));
        return Ok(());
    }
    let before = present.as_deref().unwrap_or("not set");
    say(&format!("{} of the {holder}: {before} -> {}", setting.name, value.unwrap_or("not set")));
    // Without a tag, an experiment is like all others.
    let falls_back = setting.kind == Kind::TraceRetention && *holder != Holder::Server && value.is_none();
    let of_server = if falls_back { self::present(&table, setting, &Holder::Server).await? } else { None };
    say(&costs::of(&table, setting, holder, of_server.as_deref().unwrap_or(wanted)).await?);
    if !change.yes {
        return Err("nothing was changed. With --yes, the change is made".into());
    }
    match (setting.kind, holder) {
        (Kind::TraceRetention, Holder::Experiment(id)) => experiment_tag::set(&table, *id, value).await?,
        (Kind::IndexedValues | Kind::IndexedTexts, _) => {
            let part = values::fields_with(&table, setting.kind, holder, value).await?;
            reindex::rebuild(&table, engine, &place.name, part, None).await?;
        }
        _ => values::write(&table, setting.kind, holder, wanted).await?,
    }
    say("The change was made.");
    Ok(())
}

/// The value of a setting, if it has one for this holder.
async fn present(table: &Table, setting: &Setting, holder: &Holder) -> Result<Option<String>, Failure> {
    let held = values::read_all(table).await?.into_iter();
    let mut held = held.filter(|held| held.setting.kind == setting.kind && held.holder == *holder);
    Ok(held.next().map(|held| held.value))
}
