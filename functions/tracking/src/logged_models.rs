//! Endpoints of `logged-models/…`.

use access::{Action, Needs, Resource, Scope, Target};
use artifact_access::send_file_or_url;
use artifact_store::ArtifactPath;
use mlflow_api::key_value::pairs;
use mlflow_api::logged_models::{
    LoggedModel, LoggedModelResponse, ModelArtifactsResponse, ModelStatus, SearchLoggedModelsResponse, check_name,
};
use mlflow_api::requests::logged_models as message;
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{Error, ErrorCode, ExperimentId, ModelId, Request, Result, RunId};
use service::{Endpoint, EndpointResponse};

use crate::store::{LoggedModelSearch, NewLoggedModel, Store};

pub(crate) struct Create {
    experiment: ExperimentId,
    new: NewLoggedModel,
}

impl Endpoint for Create {
    type Store = Store;
    type Answer = LoggedModelResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::CreateLoggedModel = request.read()?;
        check_name(&message.name)?;
        let new = NewLoggedModel {
            name: message.name,
            model_type: message.model_type,
            source_run_id: message.source_run_id,
            params: pairs(message.params),
            tags: pairs(message.tags),
        };
        Ok(Self { experiment: ExperimentId::parse(&message.experiment_id)?, new })
    }

    /// The source run is only recorded in the model. Whether the run exists is not checked, but the
    /// caller needs permission to read it.
    fn needs(&self) -> Needs {
        let run = Some(&self.new.source_run_id).filter(|run| !run.is_empty());
        let run = run.map(|run| RunId::parse(run).map_or(Target::Nothing(Resource::Run), Target::Run));
        let model = Needs::create_in(Target::Experiment(self.experiment), Resource::LoggedModel);
        model.and_naming(Action::Read, run).showing([Resource::Run])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<LoggedModelResponse> {
        Ok(visible_model(scope, store.logged_model_create(&scope.experiment(self.experiment)?, &self.new).await?))
    }
}

pub(crate) struct Get {
    model: ModelId,
    allow_deleted: bool,
}

impl Endpoint for Get {
    type Store = Store;
    type Answer = LoggedModelResponse;

    fn read(request: &Request) -> Result<Self> {
        let allow_deleted = request.argument("allow_deleted").is_some_and(|value| value.to_lowercase() == "true");
        Ok(Self { model: model_in_path(request)?, allow_deleted })
    }

    fn needs(&self) -> Needs {
        Needs::read(Target::LoggedModel(self.model.clone())).showing([Resource::Run])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<LoggedModelResponse> {
        Ok(visible_model(scope, store.logged_model_get(&scope.logged_model(&self.model)?, self.allow_deleted).await?))
    }
}

/// `PATCH logged-models/{model_id}`. As in MLflow, the model is identified by the request body, and
/// the id in the path is ignored.
pub(crate) struct Finalize {
    model: ModelId,
    status: ModelStatus,
}

impl Endpoint for Finalize {
    type Store = Store;
    type Answer = LoggedModelResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::FinalizeLoggedModel = request.read()?;
        Ok(Self { model: ModelId::named(&message.model_id)?, status: message.status.unwrap_or_default() })
    }

    fn needs(&self) -> Needs {
        Needs::update(Target::LoggedModel(self.model.clone())).showing([Resource::Run])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<LoggedModelResponse> {
        Ok(visible_model(scope, store.logged_model_finalize(&scope.logged_model(&self.model)?, self.status).await?))
    }
}

pub(crate) struct Delete(ModelId);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        model_in_path(request).map(Self)
    }

    fn needs(&self) -> Needs {
        Needs::delete(Target::LoggedModel(self.0.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.logged_model_delete(&scope.logged_model(&self.0)?).await?;
        Ok(EmptyResponse {})
    }
}

/// `POST logged-models/{model_id}/params`. The model is identified by the path, but the request
/// body has to contain a model id too.
pub(crate) struct LogParams {
    model: ModelId,
    params: Vec<(String, String)>,
}

impl Endpoint for LogParams {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::LogModelParams = request.read()?;
        Ok(Self { model: model_in_path(request)?, params: pairs(message.params) })
    }

    fn needs(&self) -> Needs {
        Needs::update(Target::LoggedModel(self.model.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.logged_model_log_params(&scope.logged_model(&self.model)?, self.params).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct SetTags {
    model: ModelId,
    tags: Vec<(String, String)>,
}

impl Endpoint for SetTags {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::SetModelTags = request.read()?;
        Ok(Self { model: model_in_path(request)?, tags: pairs(message.tags) })
    }

    fn needs(&self) -> Needs {
        Needs::update(Target::LoggedModel(self.model.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.logged_model_set_tags(&scope.logged_model(&self.model)?, self.tags).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct DeleteTag {
    model: ModelId,
    key: String,
}

impl Endpoint for DeleteTag {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self { model: model_in_path(request)?, key: request.path_part("tag_key").to_owned() })
    }

    /// As in MLflow, deleting a tag requires permission to delete the model.
    fn needs(&self) -> Needs {
        Needs::delete(Target::LoggedModel(self.model.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.logged_model_delete_tag(&scope.logged_model(&self.model)?, &self.key).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct Search(LoggedModelSearch);

impl Endpoint for Search {
    type Store = Store;
    type Answer = SearchLoggedModelsResponse;

    fn read(request: &Request) -> Result<Self> {
        LoggedModelSearch::read(request.read()?).map(Self)
    }

    fn needs(&self) -> Needs {
        let experiments = self.0.experiments.iter().copied().map(Target::Experiment);
        let models = Needs::nothing().and_in(Action::List, Resource::LoggedModel, experiments);
        let models = models.or(Needs::list(Resource::LoggedModel)).showing([Resource::Run]);
        // If the filter names runs, the caller must be allowed to read at least some runs.
        // Otherwise, the models that match would reveal information about hidden runs.
        models.and(Action::Read, self.0.uses_runs().then_some(Target::Any(Resource::Run)))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<SearchLoggedModelsResponse> {
        let experiments = scope.listed_experiments(&self.0.experiments)?;
        let search = if scope.shows(Resource::Run) { self.0 } else { self.0.hiding_runs() };
        store.logged_model_search(&experiments, search).await
    }
}

/// A request for a list of the artifacts of a model whose artifact location is managed by this
/// server.
pub(crate) struct ListArtifacts {
    model: ModelId,
    path: ArtifactPath,
}

impl Endpoint for ListArtifacts {
    type Store = Store;
    type Answer = ModelArtifactsResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::ListModelArtifacts = request.read()?;
        let path = ArtifactPath::parse(&message.artifact_directory_path)?;
        Ok(Self { model: model_in_path(request)?, path })
    }

    fn needs(&self) -> Needs {
        Needs::read(Target::LoggedModel(self.model.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<ModelArtifactsResponse> {
        let root_uri = store.logged_model_artifact_uri(&scope.logged_model(&self.model)?).await?;
        let files = store.artifacts().at(&root_uri)?.list(&self.path).await?;
        Ok(ModelArtifactsResponse { root_uri, files })
    }
}

/// A request for an artifact of a model whose artifact location is managed by this server.
pub(crate) struct GetArtifact {
    model: ModelId,
    path: ArtifactPath,
    /// Whether the client prefers to download the file itself through a presigned URL. MLflow
    /// clients from version 3.18 request this.
    presigned: bool,
}

impl Endpoint for GetArtifact {
    type Store = Store;
    type Answer = EndpointResponse;

    fn read(request: &Request) -> Result<Self> {
        let path = request.argument("artifact_file_path").filter(|path| !path.is_empty()).ok_or_else(|| {
            let message = "Request must include the \"artifact_file_path\" query parameter.";
            Error::new(ErrorCode::BadRequest, message)
        })?;
        let path = ArtifactPath::parse(path)?;
        Ok(Self { model: model_in_path(request)?, path, presigned: request.argument("presigned") == Some("true") })
    }

    fn needs(&self) -> Needs {
        Needs::read(Target::LoggedModel(self.model.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EndpointResponse> {
        let location = store.logged_model_artifact_uri(&scope.logged_model(&self.model)?).await?;
        send_file_or_url(&store.artifacts().at(&location)?, &self.path, self.presigned).await
    }
}

/// Returns the response about a logged model. The ids of runs are omitted if the caller may not
/// read any runs.
fn visible_model(scope: &Scope, mut model: LoggedModel) -> LoggedModelResponse {
    if !scope.shows(Resource::Run) {
        model.hide_runs();
    }
    LoggedModelResponse { model }
}

fn model_in_path(request: &Request) -> Result<ModelId> {
    ModelId::named(request.path_part("model_id"))
}
