//! The index entries of a run, and the lists that they belong to.

use std::collections::BTreeSet;

use entities::attributes::{NAME, PARAMS, START_TIME, TAGS, USER};
use entities::indexed_fields_setting::from_json;
use entities::{
    RUN_ENTITY_TYPE, RunCopy, RunItems, RunLocation, entries, own_stage, run_inputs, searched_dataset, unreadable,
};
use key_schema::{Descending, DescendingDouble, Field, Key, Level, ListKind, Name, OwnStage, TokenPart, Value, rows};
use mlflow_api::Result;
use search::fields::{IndexedFields, RUN_NAME, USER_ID, of_datasets};
use search::{DatasetField, trigram_tokens};

/// Identity of a list: its kind, and its metric, param or field.
pub type ListIdentity = (ListKind, String);

/// The entries that a run should have in the index. The run's copy is not included.
#[derive(Clone, Debug, Default)]
pub struct RunEntries {
    /// Keys of the entries: one for each metric, one for each param, and the run's tokens.
    pub keys: BTreeSet<Key>,
    /// The lists that the entries belong to.
    pub lists: BTreeSet<ListIdentity>,
}

/// Returns the entries of a run. An individually deleted run has none.
///
/// # Errors
/// Returns an internal error if a part of the run cannot be read.
pub fn run_entries(at: &RunLocation, items: &RunItems, fields: &IndexedFields) -> Result<RunEntries> {
    let run = &items.run;
    let mut found = RunEntries::default();
    if own_stage(run) == OwnStage::Deleted {
        return Ok(found);
    }
    let started = Descending(run.get(START_TIME).unwrap_or_default());
    for (metric, point) in items.latest_metrics()? {
        let value = DescendingDouble(point.value);
        let key = rows::RankByMetric::key(&at.experiment, &Field::from(metric), &value, &started, &at.run);
        found.add(ListKind::Metric, metric, key);
    }
    let params = entries(run, PARAMS, &items.params)?;
    for (param, value) in &params {
        let value = Value::from(value.as_str());
        let key = rows::RankByParam::key(&at.experiment, &param.as_str().into(), &value, &started, &at.run);
        found.add(ListKind::Param, param, key);
    }

    let entity = Name::from(at.run.as_str());
    let mut token = |level: Level, field: &str, token: &str| {
        let (part, of, value) = (TokenPart::of(level, token), Field::from(field), Value::from(token));
        let key = rows::FullText::key(&at.experiment, &part, &RUN_ENTITY_TYPE.into(), &of, &value, &started, &entity);
        found.add(ListKind::Tokens(level), field, key);
    };
    let mut index = |field: &str, value: &str, has_value: bool| {
        if has_value && fields.has_value(field) {
            token(Level::Value, field, value);
        }
        if fields.has_text(field) {
            for trigram in &trigram_tokens::of_text(value) {
                token(Level::Trigram, field, trigram);
            }
        }
    };
    // The list of run names is sorted by whole names, and the list of a param by whole values, so
    // the tokens of these fields do not have to include them.
    index(RUN_NAME, run.get(NAME).unwrap_or_default(), false);
    index(USER_ID, run.get(USER).unwrap_or_default(), true);
    for (param, value) in &params {
        index(&format!("params.{param}"), value, false);
    }
    for (tag, value) in entries(run, TAGS, &items.tags)? {
        index(&format!("tags.{tag}"), &value, true);
    }
    for input in &run_inputs(&items.links)?.dataset_inputs {
        for field in DatasetField::ALL {
            if let Some(value) = searched_dataset(input).value(field) {
                index(&of_datasets(field), value, true);
            }
        }
    }
    Ok(found)
}

impl RunEntries {
    fn add(&mut self, kind: ListKind, of: &str, key: Key) {
        self.keys.insert(key);
        let list = (kind, of.to_owned());
        self.lists.insert(list);
    }
}

/// The entries of a run that its copy records.
#[derive(Clone, Debug)]
pub struct CopyEntries {
    /// Entries that follow from the copy.
    pub held: BTreeSet<Key>,
    /// Entries that still had to be deleted when the copy was created.
    pub stale: BTreeSet<Key>,
}

impl CopyEntries {
    /// Checks whether the copy accounts for an entry, either as current or as stale.
    #[must_use]
    pub fn contains(&self, entry: &Key) -> bool {
        self.held.contains(entry) || self.stale.contains(entry)
    }
}

/// Returns the entries that follow from a run's copy.
///
/// # Errors
/// Returns an internal error if the copy cannot be read.
pub fn entries_of_copy(copy: &RunCopy) -> Result<CopyEntries> {
    let held = if let Some(listed) = copy.listed_entries()? {
        listed.into_iter().collect()
    } else {
        let (at, ..) = copy.place().ok_or_else(|| unreadable(&copy.0, "the key of a copy"))?;
        let values = copy.clone().into_values().ok_or_else(|| unreadable(&copy.0, "the copy of a run"))?;
        let fields = copy.fields().map_or_else(|| Some(IndexedFields::default()), from_json);
        let fields = fields.ok_or_else(|| unreadable(&copy.0, "the fields of a copy"))?;
        run_entries(&at, &values, &fields)?.keys
    };
    Ok(CopyEntries { held, stale: copy.stale_entries()?.into_iter().collect() })
}
