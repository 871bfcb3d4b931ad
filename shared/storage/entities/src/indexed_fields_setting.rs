//! The setting of additionally indexed fields. Some fields are always indexed, and this setting
//! adds others. An experiment can override it with a row of its own.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use key_schema::attributes::{Attribute, EXPERIMENT, INDEXED, SEARCHED, Text};
use key_schema::{Key, KeyRange, Name, rows};
use mlflow_api::ExperimentId;
use search::{CommonFields, IndexedFields};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use table::{Condition, Failure, Item, Query, Result, Table, text};

/// How long a process may rely on the setting that it read. A process that removes a field waits as
/// long, so that no search relies on the removed field.
pub const LEASE_DURATION: Duration = Duration::from_mins(1);
/// Maximum number of experiments with fields of their own. Every process reads all of them once per
/// minute.
pub const MAX_EXPERIMENTS_WITH_FIELDS: usize = 100;

const SETTING_NAME: &str = "index_fields";

/// Two sets of fields: those that the indexer indexes, and those that searches may rely on because
/// they have been indexed for every run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexedFieldsSetting {
    /// Fields that the indexer indexes.
    pub indexed: IndexedFields,
    /// Fields that searches rely on.
    pub searched: IndexedFields,
    /// Overrides of experiments.
    pub own: BTreeMap<ExperimentId, ExperimentFieldsSetting>,
}

/// The setting of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExperimentFieldsSetting {
    /// Fields that the indexer indexes.
    pub indexed: ExperimentFieldPatterns,
    /// Fields that searches rely on.
    pub searched: ExperimentFieldPatterns,
}

/// Field patterns of one experiment. Without patterns of its own, an experiment uses the server's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExperimentFieldPatterns {
    /// Replaces [`IndexedFields::values`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
    /// Replaces [`IndexedFields::text`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Vec<String>>,
}

impl ExperimentFieldPatterns {
    /// Returns patterns that match no field.
    #[must_use]
    pub fn nothing() -> Self {
        Self { values: Some(Vec::new()), text: Some(Vec::new()) }
    }

    /// Checks whether the experiment overrides nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the patterns in effect: those of the experiment, or the server's if the experiment
    /// has none.
    #[must_use]
    pub fn over(&self, of_server: &IndexedFields) -> IndexedFields {
        IndexedFields {
            values: self.values.as_ref().unwrap_or(&of_server.values).clone(),
            text: self.text.as_ref().unwrap_or(&of_server.text).clone(),
        }
    }
}

impl IndexedFieldsSetting {
    /// Reads a table's setting, or returns the default if the table has none. Takes one request and
    /// one read unit per 4 KB.
    ///
    /// # Errors
    /// Returns [`Failure::Unreadable`] if the setting cannot be read.
    pub async fn read(table: &Table) -> Result<Self> {
        Self::among(&table.query(Query::of(all_rows())).await?)
    }

    /// Reads this setting from the rows of all settings of a table.
    ///
    /// # Errors
    /// Returns [`Failure::Unreadable`] if the setting cannot be read.
    pub fn among(settings: &[Item]) -> Result<Self> {
        let (range, of_server) = (all_rows(), key());
        let mut setting = Self::default();
        for row in settings {
            match row.key() {
                Some(key) if key == of_server => {
                    setting.indexed = read(row, INDEXED)?;
                    setting.searched = read(row, SEARCHED)?;
                }
                Some(key) if range.contains(&key) => {
                    let experiment = row.get(EXPERIMENT).ok_or_else(|| unreadable(EXPERIMENT.name()))?;
                    let own = ExperimentFieldsSetting { indexed: read(row, INDEXED)?, searched: read(row, SEARCHED)? };
                    setting.own.insert(experiment, own);
                }
                _ => {}
            }
        }
        Ok(setting)
    }

    /// Returns the fields that the indexer indexes for an experiment's runs.
    #[must_use]
    pub fn indexed_in(&self, experiment: &ExperimentId) -> Cow<'_, IndexedFields> {
        match self.own.get(experiment) {
            None => Cow::Borrowed(&self.indexed),
            Some(own) => Cow::Owned(own.indexed.over(&self.indexed)),
        }
    }

    /// Returns the fields that a search across these experiments may rely on.
    #[must_use]
    pub fn searched_in<'a>(&self, experiments: impl IntoIterator<Item = &'a ExperimentId>) -> CommonFields {
        // There may be thousands of experiments, but only a few have fields of their own. The
        // server's fields, which all others share, are therefore added once.
        let (mut each, mut has_others) = (Vec::new(), false);
        for experiment in experiments {
            match self.own.get(experiment) {
                Some(own) => each.push(own.searched.over(&self.searched)),
                None => has_others = true,
            }
        }
        if has_others || each.is_empty() {
            each.push(self.searched.clone());
        }
        CommonFields::of(each)
    }

    /// Checks whether a change of fields is in progress. During a change, the fields that searches
    /// rely on differ from those that the indexer indexes, in one experiment or in the server's
    /// setting.
    #[must_use]
    pub fn is_between_fields(&self) -> bool {
        self.indexed != self.searched || self.own.values().any(ExperimentFieldsSetting::is_between_fields)
    }

    /// Writes the server's setting, unless it has changed since `before` was read. Settings of
    /// experiments are not written. Takes one request.
    ///
    /// # Errors
    /// Returns [`Failure::Refused`] if the setting has been changed in the meantime, and other
    /// failures of the table.
    pub async fn write_after(&self, before: &Self, table: &Table) -> Result<()> {
        let item =
            Item::new(key()).with(INDEXED, text(to_json(&self.indexed))).with(SEARCHED, text(to_json(&self.searched)));
        let is_as_read = says(to_json(&before.indexed), to_json(&before.searched));
        // If the setting was the default when it was read, its row may also be missing.
        let is_default = [&before.indexed, &before.searched].iter().all(|fields| **fields == IndexedFields::default());
        let is_as_read =
            if is_default { Condition::Any(vec![Condition::item_missing(), is_as_read]) } else { is_as_read };
        table.put(item, &is_as_read).await
    }
}

impl ExperimentFieldsSetting {
    /// Checks whether the fields that searches rely on differ from those that the indexer indexes.
    #[must_use]
    pub fn is_between_fields(&self) -> bool {
        self.indexed != self.searched
    }

    /// Checks whether the experiment has no fields of its own.
    fn is_empty(&self) -> bool {
        self.indexed.is_empty() && self.searched.is_empty()
    }

    /// Deletes an experiment's own setting, so that the server's applies. Takes one request.
    ///
    /// # Errors
    /// Returns failures of the table.
    pub async fn forget(table: &Table, experiment: ExperimentId) -> Result<()> {
        table.delete(&own_key(experiment), &Condition::Always).await
    }

    /// Writes an experiment's own setting, unless it has changed since `before` was read. An empty
    /// setting is deleted instead. Takes one request.
    ///
    /// # Errors
    /// Returns [`Failure::Refused`] if the setting has been changed in the meantime, and other
    /// failures of the table.
    pub async fn write_after(&self, before: &Self, table: &Table, experiment: ExperimentId) -> Result<()> {
        let key = own_key(experiment);
        let is_as_read = if before.is_empty() {
            Condition::item_missing()
        } else {
            says(to_json(&before.indexed), to_json(&before.searched))
        };
        if self.is_empty() {
            return table.delete(&key, &is_as_read).await;
        }
        let item = Item::new(key)
            .with(EXPERIMENT, text(experiment.to_string()))
            .with(INDEXED, text(to_json(&self.indexed)))
            .with(SEARCHED, text(to_json(&self.searched)));
        table.put(item, &is_as_read).await
    }
}

/// Returns the condition that a row holds these fields.
fn says(indexed: String, searched: String) -> Condition {
    let says = |attribute: Attribute<Text>, fields| Condition::Equals(attribute.into(), text(fields));
    says(INDEXED, indexed).and(says(SEARCHED, searched))
}

/// Returns the range of the setting's rows: the server's and those of experiments.
fn all_rows() -> KeyRange {
    rows::Config::all().beginning(&Name::from(SETTING_NAME))
}

fn key() -> Key {
    rows::Config::key(&SETTING_NAME.into())
}

fn own_key(experiment: ExperimentId) -> Key {
    rows::Config::key(&format!("{SETTING_NAME}.{experiment}").as_str().into())
}

/// Reads the fields in an attribute. A missing attribute stands for the default.
fn read<T: Default + DeserializeOwned>(row: &Item, attribute: Attribute<Text>) -> Result<T> {
    let fields = row.get(attribute).map_or_else(|| Some(T::default()), from_json);
    fields.ok_or_else(|| unreadable(attribute.name()))
}

fn unreadable(attribute: &str) -> Failure {
    Failure::Unreadable(format!("{attribute} of the setting {SETTING_NAME}"))
}

/// Serializes fields as JSON.
#[must_use]
pub fn to_json(fields: &impl Serialize) -> String {
    serde_json::to_string(fields).unwrap_or_default()
}

/// Parses fields from JSON. Returns `None` if it is invalid.
#[must_use]
pub fn from_json<T: DeserializeOwned>(json: &str) -> Option<T> {
    serde_json::from_str(json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_may_have_some_of_its_own() {
        let owned = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect::<Vec<_>>();
        let [one, other] = ["7", "8"].map(|id| ExperimentId::parse(id).unwrap());
        let own = ExperimentFieldPatterns { values: None, text: Some(owned(&["tags.note"])) };
        assert_eq!(from_json(&to_json(&own)), Some(own.clone()));
        let (nothing, mut setting) = (ExperimentFieldPatterns::nothing(), IndexedFieldsSetting::default());
        setting.own.insert(one, ExperimentFieldsSetting { indexed: own, searched: nothing });
        assert!(setting.indexed_in(&one).has_text("tags.note") && setting.indexed_in(&one).has_value("tags.team"));
        assert!(!setting.indexed_in(&other).has_text("tags.note"));
        assert!(setting.searched_in(&[other]).has_value("tags.team"));
        assert!(!setting.searched_in(&[one]).has_value("tags.team"));
        assert!(!setting.searched_in(&[other, one]).has_value("tags.team"));
        assert!(setting.searched_in(&[]).has_value("tags.team"));
    }
}
