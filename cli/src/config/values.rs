//! Reads, validates and writes the values of settings.

use std::collections::BTreeMap;

use entities::attributes::{LAST_NUMBER, LAYOUT};
use entities::indexed_fields_setting;
use entities::trace_archival::TraceArchivalSetting;
use entities::trace_retention::{TraceRetentionSetting, retention_tags};
use entities::workspaces::Workspaces;
use key_schema::rows;
use mlflow_api::{Error, TraceRetention};
use retention::{DeletionAge, HistoryArchiveAge, RetentionPolicy};
use search::IndexedFields;
use table::{Query, Table};

use super::setting_holder::{EMPTY_LIST, SettingHolder, UNLIMITED, failed};
use super::settings::{SETTINGS, SettingKind, TableSetting};
use crate::reindex::ReindexTarget;
use crate::{Failure, reindex};

/// A setting and its value for the server, an experiment or a workspace.
#[derive(Debug)]
pub(super) struct SettingValue {
    pub(super) setting: &'static TableSetting,
    pub(super) holder: SettingHolder,
    pub(super) value: String,
}

/// Returns all values in a table: those of the server, and those of experiments and workspaces that
/// override the default. Takes nine requests, plus one per workspace, one per fifty experiments
/// with a tag, and one per hundred further workspaces.
pub(super) async fn read_all(table: &Table) -> Result<Vec<SettingValue>, Failure> {
    let state = table.query(Query::of(rows::Config::all())).await.map_err(unread)?;
    let layout = state.iter().find_map(|row| row.get(LAYOUT)).unwrap_or_default();
    let last_number = state.iter().find_map(|row| row.get(LAST_NUMBER)).unwrap_or_default();
    let fields = indexed_fields_setting::IndexedFieldsSetting::read(table).await.map_err(unread)?;
    let traces = TraceRetentionSetting::text(table).await.map_err(unread)?.unwrap_or_else(|| UNLIMITED.to_owned());
    let deleted = RetentionPolicy::Deleted.read(table).await.map_err(unread)?;
    let histories = RetentionPolicy::Histories.read(table).await.map_err(unread)?;
    let archival = TraceArchivalSetting::read(table).await.map_err(unread)?;
    let archive_age = HistoryArchiveAge::read(table).await.map_err(unread)?;
    let tags = retention_tags(table).await.map_err(failed)?;
    let workspaces = Workspaces::new(table.clone());
    let mut quotas = BTreeMap::new();
    let all_workspaces = workspaces.list().await.map_err(failed)?;
    for workspace in &all_workspaces {
        quotas.insert(workspace.name.clone(), workspaces.quota(&workspace.name).await.map_err(failed)?);
    }
    let mut held = Vec::new();
    for setting in &SETTINGS {
        let mut add = |holder, value| held.push(SettingValue { setting, holder, value });
        match setting.kind {
            SettingKind::DeletedRetention => add(SettingHolder::Server, text_of_age(deleted.as_ref())),
            SettingKind::HistoryRetention => add(SettingHolder::Server, text_of_age(histories.as_ref())),
            SettingKind::HistoryArchive => add(SettingHolder::Server, text_of_age(archive_age.as_ref())),
            SettingKind::TraceRetention => {
                add(SettingHolder::Server, traces.clone());
                for (experiment, tag) in &tags {
                    add(SettingHolder::Experiment(*experiment), tag.clone());
                }
            }
            SettingKind::TraceArchival(of) => {
                add(SettingHolder::Server, super::archival::of_server(&archival, of));
                for workspace in &all_workspaces {
                    if let Some(own) = super::archival::of_workspace(workspace, of) {
                        add(SettingHolder::Workspace(workspace.name.clone()), own);
                    }
                }
            }
            SettingKind::IndexedValues | SettingKind::IndexedTexts => {
                let is_text = setting.kind == SettingKind::IndexedTexts;
                let of_server = if is_text { &fields.indexed.text } else { &fields.indexed.values };
                add(SettingHolder::Server, text_of_patterns(of_server));
                for (experiment, own) in &fields.own {
                    let patterns = if is_text { &own.indexed.text } else { &own.indexed.values };
                    if let Some(patterns) = patterns {
                        add(SettingHolder::Experiment(*experiment), text_of_patterns(patterns));
                    }
                }
            }
            SettingKind::Quota(counted) => {
                for (workspace, quota) in &quotas {
                    if let Some(most) = quota.get(&counted) {
                        add(SettingHolder::Workspace(workspace.clone()), most.to_string());
                    }
                }
            }
            SettingKind::Layout => add(SettingHolder::Server, layout.to_string()),
            SettingKind::ExperimentIds => add(SettingHolder::Server, last_number.to_string()),
        }
    }
    Ok(held)
}

/// Validates a value given on the command line, and returns it in the form that is displayed and
/// stored.
pub(super) fn validate(kind: SettingKind, values: &[String]) -> Result<String, Failure> {
    if let SettingKind::IndexedValues | SettingKind::IndexedTexts = kind {
        return match values {
            [nothing] if nothing == EMPTY_LIST => Ok(EMPTY_LIST.to_owned()),
            patterns => {
                for pattern in patterns {
                    reindex::pattern(pattern).map_err(|why| format!("{pattern}: {why}"))?;
                }
                Ok(patterns.join(" "))
            }
        };
    }
    if let SettingKind::TraceArchival(of) = kind {
        return super::archival::validate(of, values);
    }
    let [value] = values else { return Err("this setting takes one value".into()) };
    if value == UNLIMITED {
        return Ok(UNLIMITED.to_owned());
    }
    match kind {
        SettingKind::DeletedRetention | SettingKind::HistoryRetention | SettingKind::HistoryArchive => {
            DeletionAge::parse(value).map(|_| ()).map_err(failed)?;
        }
        SettingKind::TraceRetention => TraceRetention::parse(value).map(|_| ()).map_err(failed)?,
        _ => amount(value).map(|_| ())?,
    }
    Ok(value.clone())
}

/// Writes a validated value. Field patterns are written by `reindex`, and tags of experiments by
/// `experiment_tag`.
pub(super) async fn write(
    table: &Table,
    kind: SettingKind,
    holder: &SettingHolder,
    value: &str,
) -> Result<(), Failure> {
    let bound = Some(value).filter(|value| *value != UNLIMITED);
    match (kind, holder) {
        (SettingKind::DeletedRetention | SettingKind::HistoryRetention, _) => {
            let age = bound.map(DeletionAge::parse).transpose().map_err(failed)?;
            let policy = if kind == SettingKind::DeletedRetention {
                RetentionPolicy::Deleted
            } else {
                RetentionPolicy::Histories
            };
            policy.write(table, age.as_ref()).await.map_err(unread)
        }
        (SettingKind::HistoryArchive, _) => {
            let age = bound.map(DeletionAge::parse).transpose().map_err(failed)?;
            HistoryArchiveAge::write(table, age.as_ref()).await.map_err(unread)
        }
        (SettingKind::TraceRetention, SettingHolder::Server) => {
            TraceRetentionSetting::write(table, bound).await.map_err(failed)
        }
        (SettingKind::Quota(counted), SettingHolder::Workspace(workspace)) => {
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

/// Returns the part of the table to reindex after one of the two settings for indexed fields is
/// changed to these patterns. Without patterns, the server returns to its default fields, and an
/// experiment to the fields of the server.
pub(super) async fn fields_with(
    table: &Table,
    kind: SettingKind,
    holder: &SettingHolder,
    value: Option<&str>,
) -> Result<ReindexTarget, Failure> {
    let setting = indexed_fields_setting::IndexedFieldsSetting::read(table).await.map_err(unread)?;
    let patterns = value.map(|value| match value {
        EMPTY_LIST => Vec::new(),
        patterns => patterns.split(' ').map(str::to_owned).collect(),
    });
    if let SettingHolder::Experiment(id) = holder {
        let mut own = setting.own.get(id).map(|own| own.indexed.clone()).unwrap_or_default();
        match kind {
            SettingKind::IndexedTexts => own.text = patterns,
            _ => own.values = patterns,
        }
        return Ok(ReindexTarget::Experiment(*id, Some(own)));
    }
    let (mut fields, of_default) = (setting.indexed, IndexedFields::default());
    match kind {
        SettingKind::IndexedTexts => fields.text = patterns.unwrap_or(of_default.text),
        _ => fields.values = patterns.unwrap_or(of_default.values),
    }
    Ok(ReindexTarget::Table(Some(fields)))
}

/// Returns the holders whose fields are being changed, or whose change was interrupted. For these,
/// the fields that searches rely on differ from the fields that the indexer maintains.
pub(super) async fn holders_changing_fields(table: &Table) -> Result<Vec<SettingHolder>, Failure> {
    let setting = indexed_fields_setting::IndexedFieldsSetting::read(table).await.map_err(unread)?;
    let of_server = (setting.indexed != setting.searched).then_some(SettingHolder::Server);
    let own = setting.own.iter().filter(|(_, own)| own.is_between_fields());
    Ok(of_server.into_iter().chain(own.map(|(id, _)| SettingHolder::Experiment(*id))).collect())
}

fn amount(text: &str) -> Result<i64, Failure> {
    let amount = text.parse().ok().filter(|amount: &i64| *amount >= 0);
    amount.ok_or_else(|| format!("{text} is neither a non-negative number nor {UNLIMITED}").into())
}

fn text_of_age(age: Option<&DeletionAge>) -> String {
    age.map_or(UNLIMITED, DeletionAge::as_str).to_owned()
}

fn text_of_patterns(patterns: &[String]) -> String {
    if patterns.is_empty() { EMPTY_LIST.to_owned() } else { patterns.join(" ") }
}

fn unread(failure: table::Failure) -> Failure {
    failed(Error::from(failure))
}

#[cfg(test)]
mod tests {
    use entities::quota::QuotaKind;

    use super::*;

    #[test]
    fn a_value_is_checked_before_anything_is_changed() {
        let owned = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>();
        let quota = SettingKind::Quota(QuotaKind::Runs);
        for (kind, values, expected) in [
            (SettingKind::DeletedRetention, &["1d12h"][..], "1d12h"),
            (SettingKind::DeletedRetention, &["off"], "off"),
            (SettingKind::HistoryRetention, &["365d"], "365d"),
            (SettingKind::HistoryArchive, &["90d"], "90d"),
            (SettingKind::TraceRetention, &["90m"], "90m"),
            (SettingKind::IndexedValues, &["tags.*", "!tags.mlflow.*"], "tags.* !tags.mlflow.*"),
            (SettingKind::IndexedTexts, &["none"], "none"),
            (quota, &["0"], "0"),
        ] {
            assert_eq!(validate(kind, &owned(values)).unwrap(), expected);
        }
        for (kind, values) in [
            (SettingKind::DeletedRetention, &["soon"][..]),
            (SettingKind::DeletedRetention, &["30d", "1h"]),
            (SettingKind::HistoryRetention, &["a year"]),
            (SettingKind::TraceRetention, &["1d2h"]),
            (SettingKind::IndexedValues, &["metrics.*"]),
            (SettingKind::IndexedTexts, &["none", "tags.*"]),
            (quota, &["-1"]),
            (quota, &["many"]),
        ] {
            assert!(validate(kind, &owned(values)).is_err(), "{kind:?} {values:?}");
        }
    }
}
