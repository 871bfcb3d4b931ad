//! Reads, validates and writes the settings for the archival of traces.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use entities::trace_archival::{ArchivalAge, ArchivalSettingChange, TraceArchivalSetting};
use entities::workspaces::{WorkspaceChange, WorkspaceDocument, Workspaces};
use mlflow_api::{ExperimentId, Workspace, location};
use table::Table;

use super::setting_holder::{EMPTY_LIST, SettingHolder, UNLIMITED, failed};
use super::settings::TraceArchivalValue;
use crate::Failure;

/// Schemes of the locations that an artifact store of this program may support.
const SCHEMES: [&str; 2] = ["s3:", "file:"];

/// Formats a value of the server's setting.
pub(super) fn of_server(setting: &TraceArchivalSetting, value: TraceArchivalValue) -> String {
    match value {
        TraceArchivalValue::Age => setting.age.as_str().to_owned(),
        TraceArchivalValue::Location => setting.location.clone().unwrap_or_else(|| UNLIMITED.to_owned()),
        TraceArchivalValue::Allowlist if setting.allowlist.is_empty() => EMPTY_LIST.to_owned(),
        TraceArchivalValue::Allowlist => {
            setting.allowlist.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        }
        TraceArchivalValue::PerPass => setting.per_pass.map_or_else(|| UNLIMITED.to_owned(), |most| most.to_string()),
    }
}

/// Formats a value that a workspace defines for itself.
pub(super) fn of_workspace(workspace: &WorkspaceDocument, value: TraceArchivalValue) -> Option<String> {
    match value {
        TraceArchivalValue::Age => workspace.archive_after.clone(),
        TraceArchivalValue::Location => workspace.archive.clone(),
        TraceArchivalValue::Allowlist | TraceArchivalValue::PerPass => None,
    }
}

/// Validates values given on the command line, and returns them in the form that is displayed and
/// stored.
pub(super) fn validate(value: TraceArchivalValue, values: &[String]) -> Result<String, Failure> {
    if value == TraceArchivalValue::Allowlist {
        let ids = allowlist(values.iter().map(String::as_str).filter(|id| *id != EMPTY_LIST))?;
        let texts: Vec<_> = ids.iter().map(ToString::to_string).collect();
        return Ok(if texts.is_empty() { EMPTY_LIST.to_owned() } else { texts.join(" ") });
    }
    let [text] = values else { return Err("this setting takes one value".into()) };
    if text == UNLIMITED {
        return Ok(UNLIMITED.to_owned());
    }
    match value {
        TraceArchivalValue::Age => Ok(ArchivalAge::parse(text).map_err(failed)?.as_str().to_owned()),
        TraceArchivalValue::PerPass => Ok(per_pass(text)?.to_string()),
        TraceArchivalValue::Location | TraceArchivalValue::Allowlist => {
            let chosen = location::check_archive("trace_archival.location", text).map_err(failed)?;
            if !SCHEMES.iter().any(|scheme| chosen.starts_with(scheme)) {
                return Err("the location must be the server's artifact root or a directory below it, as a URI that begins with s3: or file:".into());
            }
            Ok(chosen)
        }
    }
}

/// Writes a validated value. [`UNLIMITED`] removes a location or a limit of the server, and the
/// location of a workspace.
pub(super) async fn write(
    table: &Table,
    value: TraceArchivalValue,
    holder: &SettingHolder,
    text: &str,
) -> Result<(), Failure> {
    let own = Some(text).filter(|text| *text != UNLIMITED);
    let change = match (value, holder) {
        (TraceArchivalValue::Age, SettingHolder::Workspace(name)) => {
            let change = WorkspaceChange { archive_after: Some(text.to_owned()), ..WorkspaceChange::default() };
            return change_workspace(table, name, &change).await;
        }
        (TraceArchivalValue::Location, SettingHolder::Workspace(name)) => {
            let location = Some(own.unwrap_or_default().to_owned());
            let change = WorkspaceChange { archive: location, ..WorkspaceChange::default() };
            return change_workspace(table, name, &change).await;
        }
        (TraceArchivalValue::Age, _) => ArchivalSettingChange::Age(Some(ArchivalAge::parse(text).map_err(failed)?)),
        (TraceArchivalValue::Location, _) => ArchivalSettingChange::Location(own.map(str::to_owned)),
        (TraceArchivalValue::Allowlist, _) => {
            ArchivalSettingChange::Allowlist(allowlist(text.split(' ').filter(|id| *id != EMPTY_LIST))?)
        }
        (TraceArchivalValue::PerPass, _) => ArchivalSettingChange::PerPass(own.map(per_pass).transpose()?),
    };
    TraceArchivalSetting::change(table, &change).await.map_err(failed)
}

/// Removes a value that a workspace defines for itself.
pub(super) async fn unset(table: &Table, value: TraceArchivalValue, name: &Workspace) -> Result<(), Failure> {
    let change = match value {
        TraceArchivalValue::Age => WorkspaceChange { archive_after: Some(String::new()), ..WorkspaceChange::default() },
        _ => WorkspaceChange { archive: Some(String::new()), ..WorkspaceChange::default() },
    };
    change_workspace(table, name, &change).await
}

async fn change_workspace(table: &Table, name: &Workspace, change: &WorkspaceChange) -> Result<(), Failure> {
    Workspaces::new(table.clone()).change(name, change).await.map(drop).map_err(failed)
}

fn allowlist<'a>(ids: impl Iterator<Item = &'a str>) -> Result<BTreeSet<ExperimentId>, Failure> {
    ids.filter(|id| !id.is_empty()).map(|id| ExperimentId::parse(id).map_err(failed)).collect()
}

fn per_pass(text: &str) -> Result<NonZeroU32, Failure> {
    text.parse().map_err(|_| format!("{text} is neither a positive number nor {UNLIMITED}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_validated_before_they_are_written() {
        let owned = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>();
        for (value, given, expected) in [
            (TraceArchivalValue::Age, &[" 30d "][..], "30d"),
            (TraceArchivalValue::Age, &["off"], "off"),
            (TraceArchivalValue::Location, &["s3://b/x"], "s3://b/x"),
            (TraceArchivalValue::Location, &["off"], "off"),
            (TraceArchivalValue::Allowlist, &["17", "2", "17"], "2 17"),
            (TraceArchivalValue::Allowlist, &["none"], "none"),
            (TraceArchivalValue::PerPass, &["100"], "100"),
        ] {
            assert_eq!(validate(value, &owned(given)).unwrap(), expected);
        }
        for (value, given) in [
            (TraceArchivalValue::Age, &["1d12h"][..]),
            (TraceArchivalValue::Location, &["/x"]),
            (TraceArchivalValue::Location, &["gs://b/x"]),
            (TraceArchivalValue::Location, &["mlflow-artifacts:/x"]),
            (TraceArchivalValue::Allowlist, &["x"]),
            (TraceArchivalValue::PerPass, &["0"]),
            (TraceArchivalValue::PerPass, &["1", "2"]),
        ] {
            assert!(validate(value, &owned(given)).is_err(), "{value:?} {given:?}");
        }
    }
}
