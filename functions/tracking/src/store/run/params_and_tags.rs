//! Params and tags of runs, one per call. Batches are in `log_batch`.

use access::Granted;
use entities::RunLocation;
use entities::documents::{Document, DocumentChange, append_to_tag};
use mlflow_api::tracking::{LOGGED_MODELS_TAG, RUN_NAME_TAG};
use mlflow_api::{Error, Result};
use serde_json::{Map, Value};

use super::run_document::RunDocument;
use super::run_info::rename;
use crate::store::Store;

impl Store {
    /// Logs a param. Takes one request, and one more if the lease on the experiment has expired.
    pub async fn run_log_param(&self, at: &Granted<RunLocation>, key: &str, value: String) -> Result<()> {
        let experiment = self.run_experiment(at).await?;
        let document = RunDocument { at, experiment: &experiment, single_param: true };
        let change = DocumentChange { params: vec![(key.to_owned(), value)], ..DocumentChange::default() };
        entities::documents::change(&self.table, &document, change).await?;
        Ok(())
    }

    /// Sets a tag. Takes one request, and one more if the lease on the experiment has expired.
    pub async fn run_set_tag(&self, at: &Granted<RunLocation>, key: &str, value: String) -> Result<()> {
        let experiment = self.run_experiment(at).await?;
        let document = RunDocument { at, experiment: &experiment, single_param: false };
        let mut change = DocumentChange::default();
        if !add_tag(&mut change, key, value) {
            // There is nothing to write, but the run still has to be checked.
            return document.check(self.table.get(&at.key()).await?.as_ref());
        }
        entities::documents::change(&self.table, &document, change).await?;
        Ok(())
    }

    /// Deletes a tag. Takes one request, and one more if the lease on the experiment has expired.
    pub async fn run_delete_tag(&self, at: &Granted<RunLocation>, key: &str) -> Result<()> {
        let experiment = self.run_experiment(at).await?;
        let document = RunDocument { at, experiment: &experiment, single_param: false };
        if entities::documents::remove_tag(&self.table, &document, key).await? {
            return Ok(());
        }
        Err(Error::not_found(format!("No tag with name: {key} in run with id {}", at.run)))
    }

    /// Appends a model's description to the tag in which clients recorded models before logged
    /// models became entities.
    pub async fn run_record_model(&self, at: &Granted<RunLocation>, model: &Map<String, Value>) -> Result<()> {
        let experiment = self.run_experiment(at).await?;
        let document = RunDocument { at, experiment: &experiment, single_param: false };
        append_to_tag(&self.table, &document, LOGGED_MODELS_TAG, &describe(model)).await
    }
}

/// Adds a tag to a change. Returns `false` if the tag changes nothing, which is the case only for
/// an empty run name.
pub(crate) fn add_tag(change: &mut DocumentChange, key: &str, value: String) -> bool {
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

/// Returns the fields of a model that the tag stores: run, path and ids of the model, and its
/// flavors without their configuration. The equivalent in MLflow is `get_tags_dict`.
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
