//! Params and tags of runs, one at a time; batches are in `log_batch`.

use entities::attributes::{ROW_VALUE, TAG_ROWS, TAGS};
use entities::entries;
use mlflow_api::tracking::{LOGGED_MODELS_TAG, RUN_NAME_TAG};
use mlflow_api::{Error, Result, limits, python};
use serde_json::{Map, Value};
use table::{Condition, Failure, Item, Update, Write, number, text};

use super::Store;
use super::run::rename;
use super::run_document::RunDocument;
use documents::{Change, Document, INLINE_VALUE, row};

impl Store {
    /// Logs a param. One request, and one for the experiment where no lease lasts.
    pub async fn run_log_param(&self, run_id: &str, key: &str, value: &str) -> Result<()> {
        let value = limits::param(key, value, "")?;
        let (at, experiment) = self.run_locate_with_experiment(run_id).await?;
        let document = RunDocument { at: &at, experiment: &experiment, single_param: true };
        let change = Change { params: vec![(key.to_owned(), value)], ..Change::default() };
        documents::change(&self.table, &document, change).await?;
        Ok(())
    }

    /// Sets a tag. One request, and one for the experiment where no lease lasts.
    pub async fn run_set_tag(&self, run_id: &str, key: &str, value: &str) -> Result<()> {
        let value = limits::run_tag(key, value, "")?;
        let (at, experiment) = self.run_locate_with_experiment(run_id).await?;
        let document = RunDocument { at: &at, experiment: &experiment, single_param: false };
        let mut change = Change::default();
        if !add_tag(&mut change, key, value) {
            // Nothing to write, but still something to refuse.
            return document.check(self.table.get(&at.key()).await?.as_ref());
        }
        documents::change(&self.table, &document, change).await?;
        Ok(())
    }

    /// Deletes a tag. One request, and one for the experiment where no lease lasts.
    pub async fn run_delete_tag(&self, run_id: &str, key: &str) -> Result<()> {
        let (at, experiment) = self.run_locate_with_experiment(run_id).await?;
        let document = RunDocument { at: &at, experiment: &experiment, single_param: false };
        if documents::remove_tag(&self.table, &document, key).await? {
            return Ok(());
        }
        Err(Error::not_found(format!("No tag with name: {key} in run with id {run_id}")))
    }

    /// Appends a model's description to the tag in which clients before logged models kept their history.
    pub async fn run_record_model(&self, run_id: &str, model: &Map<String, Value>) -> Result<()> {
        let (at, experiment) = self.run_locate_with_experiment(run_id).await?;
        let document = RunDocument { at: &at, experiment: &experiment, single_param: false };
        for attempt in 0..self.table.retry().attempts {
            self.table.retry().pause(attempt).await;
            let item = self.table.get(&at.key()).await?;
            document.check(item.as_ref())?;
            let item = item.unwrap_or_default();
            let rows = if item.has(TAG_ROWS) { self.run_tag_rows(&at).await? } else { Vec::new() };
            let all = entries(&item, TAGS, &rows);
            let old = all.iter().find(|(key, _)| key == LOGGED_MODELS_TAG).map(|(_, value)| value);
            let mut models: Vec<Value> = match old {
                Some(old) => {
                    serde_json::from_str(old).map_err(|_| Error::internal("the tag of logged models is no list"))?
                }
                None => Vec::new(),
            };
            let described = describe(model);
            // The call is repeated where its answer was lost: the same model is recorded once.
            if models.contains(&described) {
                return Ok(());
            }
            models.push(described);
            let value = python::json_spaced(&Value::Array(models));
            if self.swap_tag(&document, &item, old.map(String::as_str), &value).await? {
                return Ok(());
            }
        }
        Err(Error::unavailable("the tag of logged models kept changing"))
    }

    /// Replaces the value of the tag of logged models if it is still the old one; whether it was.
    async fn swap_tag(&self, document: &RunDocument<'_>, item: &Item, old: Option<&str>, new: &str) -> Result<bool> {
        let path = || (TAGS, LOGGED_MODELS_TAG);
        let held = item.map(TAGS).is_some_and(|tags| tags.contains_key(LOGGED_MODELS_TAG));
        let unchanged = match old {
            Some(old) if held => Condition::Equals(path().into(), text(old)),
            _ => Condition::Missing(path().into()),
        };
        let update = document.finished(Update::new(document.key())).only_if(document.writable()).only_if(unchanged);
        let outcome = if new.len() <= INLINE_VALUE && !item.has(TAG_ROWS) {
            let no_rows = Condition::Missing(TAG_ROWS.into());
            self.table.update(&update.set(path(), text(new)).only_if(no_rows)).await.map(|_| ())
        } else {
            let update = if held { update.remove(path()) } else { update };
            let row_unchanged = match old {
                // What is in a row does not count beside what is in the document.
                _ if held => Condition::All(Vec::new()),
                Some(old) => Condition::Equals(ROW_VALUE.into(), text(old)),
                None => Condition::item_missing(),
            };
            let row = row(document.tag_row(&LOGGED_MODELS_TAG.into()), LOGGED_MODELS_TAG, new);
            let writes = [Write::Update(update.set(TAG_ROWS, number(1))), Write::Put(row, row_unchanged)];
            self.table.transact(&writes).await
        };
        match outcome {
            Ok(()) => Ok(true),
            Err(Failure::Refused { .. } | Failure::Cancelled(_)) => Ok(false),
            Err(failure) => Err(failure.into()),
        }
    }
}

/// Adds a tag to a change; `false` for the one tag that changes nothing: an empty name.
pub(super) fn add_tag(change: &mut Change, key: &str, value: String) -> bool {
    if key != RUN_NAME_TAG {
        change.tags.push((key.to_owned(), value));
        return true;
    }
    if value.is_empty() {
        return false;
    }
    rename(change, &value);
    true
}

/// What the tag keeps of a model: which run and path, and its flavors without their configuration (`get_tags_dict`).
fn describe(model: &Map<String, Value>) -> Value {
    let kept = ["run_id", "artifact_path", "utc_time_created", "model_uuid"];
    let kept = kept.iter().filter_map(|key| Some(((*key).to_owned(), model.get(*key)?.clone())));
    let mut described: Map<_, _> = kept.filter(|(_, value)| !value.is_null()).collect();
    described.entry("model_uuid").or_insert(Value::Null);
    let flavors = model.get("flavors").and_then(Value::as_object).into_iter().flatten().map(|(flavor, settings)| {
        let mut settings = settings.clone();
        if let Some(settings) = settings.as_object_mut() {
            settings.shift_remove("config");
        }
        (flavor.clone(), settings)
    });
    described.insert("flavors".to_owned(), Value::Object(flavors.collect()));
    Value::Object(described)
}
