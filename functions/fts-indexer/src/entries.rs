//! In which lists of the index a run stands.

use std::collections::BTreeSet;

use entities::attributes::{NAME, PARAMS, STAGE, START_TIME, TAGS, USER};
use entities::{RUN, RunItems, RunLocation, entries, run_inputs, searched_dataset, stage_from};
use key_schema::{Descending, DescendingDouble, Field, Level, Name, Value, rows};
use mlflow_api::Result;
use mlflow_api::tracking::LifecycleStage;
use search::fields::{IndexedFields, RUN_NAME, USER_ID, of_datasets};
use search::{DatasetField, tokens};

/// The sort keys of a run's entries: one for each metric and each param, and its tokens. A run that was deleted on its own
/// has none.
///
/// # Errors
/// An internal one if something of the run cannot be read.
pub fn run_entries(at: &RunLocation, items: &RunItems, fields: &IndexedFields) -> Result<BTreeSet<String>> {
    let run = &items.run;
    if stage_from(run.text(STAGE).unwrap_or_default()) == LifecycleStage::Deleted {
        return Ok(BTreeSet::new());
    }
    let started = Descending(run.number(START_TIME).unwrap_or_default());
    let mut found = BTreeSet::new();
    for metric in items.latest_metrics() {
        let (metric, point) = metric?;
        let value = DescendingDouble(point.value);
        found.insert(rows::RankByMetric::key(&at.experiment, &Field::from(metric), &value, &started, &at.run).sk);
    }
    let params = entries(run, PARAMS, &items.params)?;
    for (param, value) in &params {
        let (param, value) = (Field::from(param.as_str()), Value::from(value.as_str()));
        found.insert(rows::RankByParam::key(&at.experiment, &param, &value, &started, &at.run).sk);
    }

    let entity = Name::from(at.run.as_str());
    let mut token = |level: Level, field: &str, token: &str| {
        let (field, token) = (Field::from(field), Value::from(token));
        found.insert(rows::FullText::key(&at.experiment, &level, &RUN.into(), &field, &token, &started, &entity).sk);
    };
    let mut index = |field: &str, value: &str, has_value: bool| {
        if has_value && fields.has_value(field) {
            token(Level::Value, field, value);
        }
        if fields.has_text(field) {
            for trigram in &tokens::trigrams(value) {
                token(Level::Trigram, field, trigram);
            }
            for word in &tokens::words(value) {
                token(Level::Word, field, word);
            }
        }
    };
    // The list of names holds the whole name, and that of a param its whole value.
    index(RUN_NAME, run.text(NAME).unwrap_or_default(), false);
    index(USER_ID, run.text(USER).unwrap_or_default(), true);
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
