//! The server's setting for the archival of traces.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use key_schema::attributes::{ARCHIVE, ARCHIVE_AFTER, ARCHIVED_PER_PASS, OWN};
use key_schema::{Key, rows};
use mlflow_api::{ArchivalRetention, Error, ExperimentId, Result, location};
use table::{Failure, Item, Table, Update, bytes_set, number, text};

const SETTING_NAME: &str = "trace_archival";
/// Text of [`ArchivalAge::Off`].
const OFF: &str = "off";
/// Age at which traces are archived if there is no setting.
const DEFAULT_AGE: &str = "30d";
/// Maximum number of experiments in the allowlist. Every process reads their ids once per minute.
const MAX_EXPERIMENTS: usize = 1_000;

/// The age at which traces are archived, as configured for a server or a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchivalAge {
    /// Traces are not archived.
    Off,
    /// Traces are archived at this age, counted from their start.
    After(ArchivalRetention),
}

impl ArchivalAge {
    /// Parses `30d`, `12h`, `90m` or `off`.
    ///
    /// # Errors
    /// Fails with `INVALID_PARAMETER_VALUE` for any other text.
    pub fn parse(text: &str) -> Result<Self> {
        if text.trim() == OFF { Ok(Self::Off) } else { ArchivalRetention::parse(text).map(Self::After) }
    }

    /// Returns the text of the age.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Off => OFF,
            Self::After(retention) => retention.as_str(),
        }
    }

    /// Returns the retention, or `None` if traces are not archived.
    #[must_use]
    pub fn retention(&self) -> Option<&ArchivalRetention> {
        match self {
            Self::Off => None,
            Self::After(retention) => Some(retention),
        }
    }
}

/// The server's setting for the archival of traces. Its default applies to tables without the
/// setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceArchivalSetting {
    /// Age at which traces are archived.
    pub age: ArchivalAge,
    /// Location of the files `traces.pb`. `None` if the spans of traces move to objects that only
    /// this server reads.
    pub location: Option<String>,
    /// Experiments whose tag may define a higher age than the setting of their workspace or of the
    /// server.
    pub allowlist: BTreeSet<ExperimentId>,
    /// Maximum number of traces that are written to files per pass.
    pub per_pass: Option<NonZeroU32>,
}

/// A change of one value of the setting. `None` restores the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchivalSettingChange {
    /// Age at which traces are archived.
    Age(Option<ArchivalAge>),
    /// Location of the files `traces.pb`.
    Location(Option<String>),
    /// Experiments whose tag may define a higher age.
    Allowlist(BTreeSet<ExperimentId>),
    /// Maximum number of traces per pass.
    PerPass(Option<NonZeroU32>),
}

impl Default for TraceArchivalSetting {
    fn default() -> Self {
        let age = ArchivalRetention::parse(DEFAULT_AGE).map_or(ArchivalAge::Off, ArchivalAge::After);
        Self { age, location: None, allowlist: BTreeSet::new(), per_pass: None }
    }
}

fn key() -> Key {
    rows::Config::key(&SETTING_NAME.into())
}

impl TraceArchivalSetting {
    /// Reads the setting. Takes one request and one read unit.
    ///
    /// # Errors
    /// Returns [`Failure::Unreadable`] if the setting cannot be read, and other failures of the
    /// table.
    pub async fn read(table: &Table) -> table::Result<Self> {
        Self::among(table.get(&key()).await?.as_slice())
    }

    /// Reads this setting from the rows of all settings of a table.
    pub(crate) fn among(settings: &[Item]) -> table::Result<Self> {
        let item = settings.iter().find(|item| item.key() == Some(key()));
        let read = item.map_or_else(|| Some(Self::default()), Self::of);
        read.ok_or_else(|| Failure::Unreadable(format!("an attribute of the setting {SETTING_NAME}")))
    }

    fn of(item: &Item) -> Option<Self> {
        let default = Self::default();
        let age = match item.value(ARCHIVE_AFTER) {
            None => default.age,
            Some(age) => ArchivalAge::parse(age.as_s().ok()?).ok()?,
        };
        let location = match item.value(ARCHIVE) {
            None => None,
            Some(location) => Some(location.as_s().ok()?.clone()),
        };
        let allowlist = match item.value(OWN) {
            None => BTreeSet::new(),
            Some(own) => own.as_bs().ok()?.iter().map(|id| read_id(id.as_ref())).collect::<Option<_>>()?,
        };
        let per_pass = match item.value(ARCHIVED_PER_PASS) {
            None => None,
            Some(number) => Some(number.as_n().ok()?.parse().ok()?),
        };
        Some(Self { age, location, allowlist, per_pass })
    }

    /// Changes one value of the setting. Takes one request and one write unit per KB.
    ///
    /// # Errors
    /// Returns `INVALID_PARAMETER_VALUE` if the location is malformed or the allowlist is too long,
    /// and failures of the table.
    pub async fn change(table: &Table, change: &ArchivalSettingChange) -> Result<()> {
        let update = Update::upsert(key());
        let update = match change {
            ArchivalSettingChange::Age(Some(age)) => update.set(ARCHIVE_AFTER, text(age.as_str())),
            ArchivalSettingChange::Age(None) => update.remove(ARCHIVE_AFTER),
            ArchivalSettingChange::Location(Some(chosen)) => {
                update.set(ARCHIVE, text(location::check_archive("trace_archival.location", chosen)?))
            }
            ArchivalSettingChange::Location(None) => update.remove(ARCHIVE),
            ArchivalSettingChange::Allowlist(ids) if ids.len() > MAX_EXPERIMENTS => {
                return Err(Error::invalid(format!(
                    "The allowlist may contain at most {MAX_EXPERIMENTS} experiments."
                )));
            }
            ArchivalSettingChange::Allowlist(ids) if ids.is_empty() => update.remove(OWN),
            ArchivalSettingChange::Allowlist(ids) => {
                update.set(OWN, bytes_set(ids.iter().map(|id| id.to_string().into_bytes())))
            }
            ArchivalSettingChange::PerPass(Some(per_pass)) => update.set(ARCHIVED_PER_PASS, number(per_pass.get())),
            ArchivalSettingChange::PerPass(None) => update.remove(ARCHIVED_PER_PASS),
        };
        Ok(table.apply(&update).await?)
    }

    /// Removes an experiment that is being permanently deleted from the allowlist. Takes one
    /// request.
    ///
    /// # Errors
    /// Returns failures of the table.
    pub(crate) async fn forget(table: &Table, experiment: ExperimentId) -> table::Result<()> {
        let named = bytes_set([experiment.to_string().into_bytes()]);
        table.apply(&Update::upsert(key()).delete(OWN, named)).await
    }
}

fn read_id(id: &[u8]) -> Option<ExperimentId> {
    std::str::from_utf8(id).ok()?.parse().ok().and_then(ExperimentId::from_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_setting_is_an_error() {
        for item in [
            Item::new(key()).with(ARCHIVE_AFTER, text("soon")),
            Item::new(key()).with(OWN, bytes_set([b"x".to_vec()])),
            Item::new(key()).with(ARCHIVED_PER_PASS, number(0)),
        ] {
            assert!(matches!(TraceArchivalSetting::among(&[item]), Err(Failure::Unreadable(_))));
        }
    }
}
