//! Reads, validates and writes the values of settings.

use std::collections::BTreeMap;
use std::fmt;

use entities::attributes::{LAST_NUMBER, LAYOUT};
use entities::fields;
use entities::trace_retention::{TraceSetting, retention_tags};
use entities::workspaces::Workspaces;
use key_schema::rows;
use mlflow_api::{Error, ExperimentId, TraceRetention, Workspace};
use retention::{Age, Policy};
use search::IndexedFields;
use table::{Query, Table};

use super::settings::{Kind, SETTINGS, Scope, Setting};
use crate::reindex::Part;
use crate::{Failure, reindex};

/// Value of a duration or amount without a limit.
pub(super) const OFF: &str = "off";
/// Value of a list of patterns that matches no field.
const NOTHING: &str = "none";

/// Part of the table that a value applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    Server,
    Workspace(Workspace),
    Experiment(ExperimentId),
}

impl Holder {
    pub(super) fn scope(&self) -> Scope {
        match self {
            Self::Server => Scope::Server,
            Self::Workspace(_) => Scope::Workspace,
            Self::Experiment(_) => Scope::Experiment,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server => formatter.write_str("server"),
            Self::Workspace(name) => write!(formatter, "workspace {name}"),
            Self::Experiment(id) => write!(formatter, "experiment {id}"),
        }
    }
}

/// A setting with its value for one holder.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) setting: &'static Setting,
    pub(super) holder: Holder,
    pub(super) value: String,
}

/// Returns all values in a table: those of the server, and those of experiments and workspaces that
/// override the default. Takes five requests, plus one per listed workspace and one per fifty
/// experiments with a tag.
pub(super) async fn read_all(table: &Table) -> Result<Vec<Held>, Failure> {
    let state = table.query(Query::of(rows::Config::all())).await.map_err(unread)?;
    let layout = state.iter().find_map(|row| row.get(LAYOUT)).unwrap_or_default();
    let last_number = state.iter().find_map(|row| row.get(LAST_NUMBER)).unwrap_or_default();
    let fields = fields::Setting::read(table).await.map_err(unread)?;
    let traces = TraceSetting::text(table).await.map_err(unread)?.unwrap_or_else(|| OFF.to_owned());
    let deleted = Policy::Deleted.read(table).await.map_err(unread)?;
    let histories = Policy::Histories.read(table).await.map_err(unread)?;
    let tags = retention_tags(table).await.map_err(failed)?;
    let workspaces = Workspaces::new(table.clone());
    let mut quotas = BTreeMap::new();
    for workspace in workspaces.list().await.map_err(failed)? {
        quotas.insert(workspace.name.clone(), workspaces.quota(&workspace.name).await.map_err(failed)?);
    }
    let mut held = Vec::new();
    for setting in &SETTINGS {
        let mut add = |holder, value| held.push(Held { setting, holder, value });
        match setting.kind {
            Kind::DeletedRetention => add(Holder::Server, text_of_age(deleted.as_ref())),
            Kind::HistoryRetention => add(Holder::Server, text_of_age(histories.as_ref())),
            Kind::TraceRetention => {
                add(Holder::Server, traces.clone());
                for (experiment, tag) in &tags {
                    add(Holder::Experiment(*experiment), tag.clone());
                }
            }
            Kind::IndexedValues | Kind::IndexedTexts => {
                let is_text = setting.kind == Kind::IndexedTexts;
                let of_server = if is_text { &fields.indexed.text } else { &fields.indexed.values };
                add(Holder::Server, text_of_patterns(of_server));
                for (experiment, own) in &fields.own {
                    let patterns = if is_text { &own.indexed.text } else { &own.indexed.values };
                    if let Some(patterns) = patterns {
                        add(Holder::Experiment(*experiment), text_of_patterns(patterns));
                    }
                }
            }
            Kind::Quota(counted) => {
                for (workspace, quota) in &quotas {
                    if let Some(most) = quota.get(&counted) {
                        add(Holder::Workspace(workspace.clone()), most.to_string());
                    }
                }
            }
            Kind::Layout => add(Holder::Server, layout.to_string()),
            Kind::ExperimentIds => add(Holder::Server, last_number.to_string()),
        }
    }
    Ok(held)
}

/// Validates a value given on the command line, and returns it in the form that is displayed and
/// stored.
pub(super) fn checked(kind: Kind, values: &[String]) -> Result<String, Failure> {
    if let Kind::IndexedValues | Kind::IndexedTexts = kind {
        return match values {
            [nothing] if nothing == NOTHING => Ok(NOTHING.to_owned()),
            patterns => {
                for pattern in patterns {
                    reindex::pattern(pattern).map_err(|why| format!("{pattern}: {why}"))?;
                }
                Ok(patterns.join(" "))
            }
        };
    }
    let [value] = values else { return Err("this setting takes one value".into()) };
    if value == OFF {
        return Ok(OFF.to_owned());
    }
    match kind {
        Kind::DeletedRetention | Kind::HistoryRetention => Age::parse(value).map(|_| ()).map_err(failed)?,
        Kind::TraceRetention => TraceRetention::parse(value).map(|_| ()).map_err(failed)?,
        _ => amount(value).map(|_| ())?,
    }
    Ok(value.clone())
}

/// Writes a validated value. Patterns and the tag of an experiment are written elsewhere.
pub(super) async fn write(table: &Table, kind: Kind, holder: &Holder, value: &str) -> Result<(), Failure> {
    let bound = Some(value).filter(|value| *value != OFF);
    match (kind, holder) {
        (Kind::DeletedRetention | Kind::HistoryRetention, _) => {
            let age = bound.map(Age::parse).transpose().map_err(failed)?;
            let policy = if kind == Kind::DeletedRetention { Policy::Deleted } else { Policy::Histories };
            policy.write(table, age.as_ref()).await.map_err(unread)
        }
        (Kind::TraceRetention, Holder::Server) => TraceSetting::write(table, bound).await.map_err(failed),
        (Kind::Quota(counted), Holder::Workspace(workspace)) => {
            let workspaces = Workspaces::new(table.clone());
            let mut quota = workspaces.quota(workspace).await.map_err(failed)?;
            match bound {
                Some(most) => quota.insert(counted, amount(most)?),
                None => quota.remove(&counted),
            };
            workspaces.set_quota(workspace, &quota).await.map_err(failed)
        }
        _ => Err(format!("this setting cannot be written for {holder}").into()),
    }
}

/// Returns the part of the table to reindex with these patterns for one of the two settings.
/// Without patterns, the server goes back to the default, and an experiment to the fields of the
/// server.
pub(super) async fn fields_with(
    table: &Table,
    kind: Kind,
    holder: &Holder,
    value: Option<&str>,
) -> Result<Part, Failure> {
    let setting = fields::Setting::read(table).await.map_err(unread)?;
    let patterns = value.map(|value| match value {
        NOTHING => Vec::new(),
        patterns => patterns.split(' ').map(str::to_owned).collect(),
    });
    if let Holder::Experiment(id) = holder {
        let mut own = setting.own.get(id).map(|own| own.indexed.clone()).unwrap_or_default();
        match kind {
            Kind::IndexedTexts => own.text = patterns,
            _ => own.values = patterns,
        }
        return Ok(Part::Experiment(*id, Some(own)));
    }
    let (mut fields, of_default) = (setting.indexed, IndexedFields::default());
    match kind {
        Kind::IndexedTexts => fields.text = patterns.unwrap_or(of_default.text),
        _ => fields.values = patterns.unwrap_or(of_default.values),
    }
    Ok(Part::Table(Some(fields)))
}

/// Returns the holders for which the fields that searches rely on differ from the fields that the
/// indexer maintains: a change is in progress, or was interrupted.
pub(super) async fn between_fields(table: &Table) -> Result<Vec<Holder>, Failure> {
    let setting = fields::Setting::read(table).await.map_err(unread)?;
    let of_server = (setting.indexed != setting.searched).then_some(Holder::Server);
    let own = setting.own.iter().filter(|(_, own)| own.is_between_fields());
    Ok(of_server.into_iter().chain(own.map(|(id, _)| Holder::Experiment(*id))).collect())
}

fn amount(text: &str) -> Result<i64, Failure> {
    let amount = text.parse().ok().filter(|amount: &i64| *amount >= 0);
    amount.ok_or_else(|| format!("{text} is neither a non-negative number nor {OFF}").into())
}

fn text_of_age(age: Option<&Age>) -> String {
    age.map_or(OFF, Age::as_str).to_owned()
}

fn text_of_patterns(patterns: &[String]) -> String {
    if patterns.is_empty() { NOTHING.to_owned() } else { patterns.join(" ") }
}

fn unread(failure: table::Failure) -> Failure {
    failed(Error::from(failure))
}

/// Formats an error together with its internal cause, because the reader is the operator.
pub(super) fn failed(error: Error) -> Failure {
    let cause = error.cause.map(|cause| format!(" ({cause})"));
    format!("{}{}", error.message, cause.unwrap_or_default()).into()
}

#[cfg(test)]
mod tests {
    use entities::quota::Counted;

    use super::*;

    #[test]
    fn a_value_is_checked_before_anything_is_changed() {
        let owned = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>();
        let quota = Kind::Quota(Counted::Runs);
        for (kind, values, expected) in [
            (Kind::DeletedRetention, &["1d12h"][..], "1d12h"),
            (Kind::DeletedRetention, &["off"], "off"),
            (Kind::HistoryRetention, &["365d"], "365d"),
            (Kind::TraceRetention, &["90m"], "90m"),
            (Kind::IndexedValues, &["tags.*", "!tags.mlflow.*"], "tags.* !tags.mlflow.*"),
            (Kind::IndexedTexts, &["none"], "none"),
            (quota, &["0"], "0"),
        ] {
            assert_eq!(checked(kind, &owned(values)).unwrap(), expected);
        }
        for (kind, values) in [
            (Kind::DeletedRetention, &["soon"][..]),
            (Kind::DeletedRetention, &["30d", "1h"]),
            (Kind::HistoryRetention, &["a year"]),
            (Kind::TraceRetention, &["1d2h"]),
            (Kind::IndexedValues, &["metrics.*"]),
            (Kind::IndexedTexts, &["none", "tags.*"]),
            (quota, &["-1"]),
            (quota, &["many"]),
        ] {
            assert!(checked(kind, &owned(values)).is_err(), "{kind:?} {values:?}");
        }
    }
}
