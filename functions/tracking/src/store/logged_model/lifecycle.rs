//! Creating, reading, finalizing and deleting logged models, and their params and tags. Their
//! metrics are in `metrics.rs`.

use access::Granted;
use entities::attributes::{ARTIFACT_URI, CREATED, MODEL_STATUS, SOURCE_RUN, STAGE, UPDATED};
use entities::documents::{DocumentChange, LoggedModelDocument};
use entities::experiments::check_is_active;
use entities::{ModelItems, ModelLocation, model_whole, now_ms, read_model_items};
use key_schema::{Stage, rows};
use mlflow_api::logged_models::{LoggedModel, ModelStatus};
use mlflow_api::response_size::{MAX_JSON_BYTES, too_long};
use mlflow_api::tracking::LifecycleStage;
use mlflow_api::{Error, ErrorCode, ExperimentId, ModelId, Result, location};
use rand::RngExt;
use table::{ChangePlan, Failure, Item, Update, number, text};

use super::items::{StoredLoggedModel, index_keys};
use crate::store::Store;
use crate::store::generated_names::random_run_name;

/// A logged model to create.
#[derive(Clone, Debug, Default)]
pub struct NewLoggedModel {
    /// Name. If it is empty, the server generates one.
    pub name: String,
    /// The type of the model.
    pub model_type: String,
    /// Id of the run that created the model. Whether the run exists is not checked.
    pub source_run_id: String,
    /// Params.
    pub params: Vec<(String, String)>,
    /// Tags.
    pub tags: Vec<(String, String)>,
}

/// Maximum number of compressed bytes of metric points in a response about a logged model. As JSON,
/// each point is several times larger.
const MAX_POINT_BYTES: usize = 8 << 20;

impl Store {
    /// Creates a logged model in an active experiment. Takes two requests, or one while a lease on
    /// the experiment lasts. Costs three write units, or four with a source run, plus one for each
    /// additional KB.
    pub async fn logged_model_create(
        &self,
        experiment: &Granted<ExperimentId>,
        new: &NewLoggedModel,
    ) -> Result<LoggedModel> {
        let experiment = **experiment;
        let state = self.experiments.state(experiment).await?.ok_or_else(|| experiment.not_found())?;
        check_is_active(experiment, state.stage)?;
        // The texts are not checked, because MLflow limits the length of none of them.
        let info = (format!("{}{}", new.name, new.model_type), new.source_run_id.clone());
        entities::documents::check_sizes(&[info])?;
        entities::documents::check_sizes(&new.params)?;
        entities::documents::check_sizes(&new.tags)?;
        check_unique("param", &new.params)?;
        check_unique("tag", &new.tags)?;
        let name = if new.name.is_empty() { random_run_name() } else { new.name.clone() };
        let (state, name) = (&state, &name);
        self.table
            // Fails only if every attempt draws an id that is in use, that is, another model was
            // created in the same millisecond with the same random number out of a million.
            .change("the logged model of every id drawn", |_| async move {
                let created = now_ms();
                let chance = rand::rng().random();
                let model = ModelId::new(u64::try_from(created).unwrap_or_default(), experiment, chance);
                let artifact_uri = location::append(&state.artifact_location, &format!("models/{model}/artifacts"));
                let at = ModelLocation { experiment, model };
                let stored = StoredLoggedModel {
                    at: &at,
                    name,
                    model_type: &new.model_type,
                    source_run: &new.source_run_id,
                    status: ModelStatus::Pending,
                    stage: LifecycleStage::Active,
                    created,
                    updated: created,
                    artifact_uri: &artifact_uri,
                    params: &new.params,
                    tags: &new.tags,
                };
                let (item, rows) = stored.items();
                let mut in_transaction = Vec::new();
                let more_rows = entities::documents::take_rows(&mut in_transaction, rows.clone());
                self.table.write_many(more_rows, &[]).await?;
                let range = rows::LoggedModelParam::all(&experiment).model(&at.model).range();
                let is_param = |row: &Item| row.key().is_some_and(|key| range.contains(&key));
                let (params, tags) = rows.into_iter().partition(is_param);
                let items = ModelItems { model: item, params, tags, ..ModelItems::default() };
                let whole = model_whole(&at, &items)?;
                Ok(ChangePlan::Create(items.model, in_transaction, whole))
            })
            .await
    }

    /// Reads a logged model, with every point of its metrics. Takes one request, and one more for
    /// each kind of separate row that the model has.
    pub async fn logged_model_get(&self, at: &Granted<ModelLocation>, allow_deleted: bool) -> Result<LoggedModel> {
        let mut items = self.table.get_many(&[at.key(), at.metrics_key()]).await?;
        let model = items.remove(&at.key()).ok_or_else(|| at.not_found())?;
        if !allow_deleted && is_deleted(&model) {
            return Err(at.not_found());
        }
        let metrics = items.remove(&at.metrics_key());
        let items = read_model_items(&self.table, at, model, metrics).await?;
        check_point_bytes(at, &items)?;
        model_whole(at, &items)
    }

    /// Returns the location of a logged model's artifacts, unless the model is deleted. Takes one
    /// request.
    pub async fn logged_model_artifact_uri(&self, at: &Granted<ModelLocation>) -> Result<String> {
        let model = self.table.get(&at.key()).await?.filter(|model| !is_deleted(model));
        let model = model.ok_or_else(|| at.not_found())?;
        Ok(model.get(ARTIFACT_URI).unwrap_or_default().to_owned())
    }

    /// Sets a logged model's status and returns the model. Takes two requests, and one more for
    /// each kind of separate row that the model has.
    pub async fn logged_model_finalize(&self, at: &Granted<ModelLocation>, status: ModelStatus) -> Result<LoggedModel> {
        let update = Update::new(at.key()).set(MODEL_STATUS, number(status.number())).set(UPDATED, number(now_ms()));
        let model = match self.table.update(&update).await {
            Err(Failure::Refused { .. }) => return Err(at.not_found()),
            outcome => outcome?,
        };
        let metrics = self.table.get(&at.metrics_key()).await?;
        model_whole(at, &read_model_items(&self.table, at, model, metrics).await?)
    }

    /// Deletes a logged model. Searches no longer find it, and reading it requires `allow_deleted`.
    /// Takes two requests. Deleting a model that is already deleted only updates its last-change
    /// time.
    pub async fn logged_model_delete(&self, at: &Granted<ModelLocation>) -> Result<()> {
        let model = self.table.get(&at.key()).await?.ok_or_else(|| at.not_found())?;
        // Creation time and source run never change after the model was created.
        let (created, run) = (model.get(CREATED).unwrap_or_default(), model.get(SOURCE_RUN).unwrap_or_default());
        let update =
            Update::new(at.key()).set(STAGE, text(LifecycleStage::Deleted.name())).set(UPDATED, number(now_ms()));
        let places = index_keys(at, created, run, Stage::Deleted { version: 0 });
        let update = places.into_iter().fold(update, Update::indexed);
        match self.table.apply(&update).await {
            Ok(()) => Ok(()),
            Err(Failure::Refused { .. }) => Err(at.not_found()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Adds params to a logged model. Takes one request per 100 params, one more if a value is too
    /// large for the document, and two more if the model already has params that are stored in
    /// rows. A param that exists with an equal value is left unchanged, so that the call can be
    /// repeated. MLflow rejects a param that exists.
    pub async fn logged_model_log_params(
        &self,
        at: &Granted<ModelLocation>,
        params: Vec<(String, String)>,
    ) -> Result<()> {
        let change = DocumentChange { params, ..DocumentChange::default() };
        self.logged_model_change(at, change).await
    }

    /// Sets tags of a logged model. If a key occurs twice, its last value is used. Takes one
    /// request per 100 tags.
    pub async fn logged_model_set_tags(&self, at: &Granted<ModelLocation>, tags: Vec<(String, String)>) -> Result<()> {
        let change = DocumentChange { tags, ..DocumentChange::default() };
        self.logged_model_change(at, change).await
    }

    async fn logged_model_change(&self, at: &ModelLocation, change: DocumentChange) -> Result<()> {
        let document = LoggedModelDocument { at };
        if change.params.is_empty() && change.tags.is_empty() {
            // The call writes nothing, but the model still has to be checked.
            return entities::documents::Document::check(&document, self.table.get(&at.key()).await?.as_ref());
        }
        if let Some(key) = entities::documents::repeated_key(&change.params) {
            // If the model does not exist, that error takes precedence over the repeated param.
            entities::documents::Document::check(&document, self.table.get(&at.key()).await?.as_ref())?;
            return Err(repeated_key_error("param", key));
        }
        entities::documents::check_sizes(&change.params)?;
        entities::documents::check_sizes(&change.tags)?;
        entities::documents::change(&self.table, &document, change).await?;
        Ok(())
    }

    /// Deletes a tag of a logged model. Takes one request, unless some of the model's tags are
    /// stored in separate rows.
    pub async fn logged_model_delete_tag(&self, at: &Granted<ModelLocation>, key: &str) -> Result<()> {
        if entities::documents::remove_tag(&self.table, &LoggedModelDocument { at }, key).await? {
            return Ok(());
        }
        let [key, model] = [key, at.model.as_str()].map(mlflow_api::python::repr);
        Err(Error::not_found(format!("No tag with key {key} found for model with ID {model}.")))
    }
}

/// Rejects a logged model with more points than a response can hold. Every response about a model
/// contains all of its points.
pub(super) fn check_point_bytes(at: &ModelLocation, items: &ModelItems) -> Result<()> {
    let points: usize = items.segments.iter().map(Item::size).sum();
    if points > MAX_POINT_BYTES {
        return Err(too_long(
            &format!("The logged model '{}' with the points of its metrics", at.model),
            MAX_JSON_BYTES,
        ));
    }
    Ok(())
}

/// Checks whether a model is deleted, according to its document.
pub(crate) fn is_deleted(model: &Item) -> bool {
    model.get(STAGE).unwrap_or_default() == LifecycleStage::Deleted
}

/// Rejects params or tags with a repeated key. In MLflow, a repeated key violates a database
/// constraint.
fn check_unique(what: &str, entries: &[(String, String)]) -> Result<()> {
    entities::documents::repeated_key(entries).map_or(Ok(()), |key| Err(repeated_key_error(what, key)))
}

fn repeated_key_error(what: &str, key: &str) -> Error {
    Error::new(ErrorCode::BadRequest, format!("The {what} '{key}' is given twice."))
}
