//! Endpoints of `experiments/…`.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::inputs::DatasetSummariesResponse;
use mlflow_api::key_value::pairs;
use mlflow_api::requests::experiments as message;
use mlflow_api::tracking::{
    CUSTOM_VIEW_TAG_PREFIX, CreateExperimentResponse, EmptyResponse, ExperimentResponse, SearchExperimentsResponse,
    ViewType,
};
use mlflow_api::{Error, ExperimentId, Request, Result, limits};
use service::Endpoint;

use crate::artifact_location;
use crate::store::{ExperimentSearch, NewExperiment, Store, known_experiments, too_many_custom_views};

pub(crate) struct Create(NewExperiment);

impl Endpoint for Create {
    type Store = Store;
    type Answer = CreateExperimentResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::CreateExperiment = request.read()?;
        let tags = pairs(message.tags);
        if tags.iter().filter(|(key, _)| key.starts_with(CUSTOM_VIEW_TAG_PREFIX)).count() > limits::MAX_CUSTOM_VIEWS {
            return Err(too_many_custom_views(""));
        }
        Ok(Self(NewExperiment { name: message.name, artifact_location: message.artifact_location, tags }))
    }

    fn needs(&self) -> Needs {
        Needs::create(Resource::Experiment)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<CreateExperimentResponse> {
        if !self.0.artifact_location.is_empty() && scope.identity().has_workspaces {
            // With workspaces, clients may not choose an artifact location, because it might belong
            // to another workspace.
            return Err(Error::invalid("artifact_location cannot be specified when workspaces are enabled"));
        }
        if !self.0.artifact_location.is_empty() {
            artifact_location::check_artifact_location(scope, store, &self.0.artifact_location).await?;
        }
        let id = store.experiment_create(scope.workspace(), &self.0).await?;
        Ok(CreateExperimentResponse { experiment_id: id.to_string() })
    }
}

pub(crate) struct Get(ExperimentId);

impl Endpoint for Get {
    type Store = Store;
    type Answer = ExperimentResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self(request.read::<message::ExperimentById>()?.experiment_id))
    }

    fn needs(&self) -> Needs {
        Needs::read(Target::Experiment(self.0))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<ExperimentResponse> {
        let (id, store) = (scope.experiment(self.0)?, store.showing_archival(scope.workspace()).await);
        Ok(ExperimentResponse { experiment: store.experiment_get(scope.workspace(), &id).await? })
    }
}

pub(crate) struct GetByName(String);

impl Endpoint for GetByName {
    type Store = Store;
    type Answer = ExperimentResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self(request.read::<message::GetExperimentByName>()?.experiment_name))
    }

    fn needs(&self) -> Needs {
        Needs::read(Target::ExperimentNamed(self.0.clone())).revealing_absence()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<ExperimentResponse> {
        let missing = || Error::not_found(format!("Could not find experiment with name '{}'", self.0));
        let experiment = scope.experiment_named(&self.0)?.ok_or_else(missing)?;
        let store = store.showing_archival(scope.workspace()).await;
        Ok(ExperimentResponse { experiment: store.experiment_get(scope.workspace(), &experiment).await? })
    }
}

pub(crate) struct Search(ExperimentSearch);

impl Endpoint for Search {
    type Store = Store;
    type Answer = SearchExperimentsResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::SearchExperiments = request.read()?;
        Ok(Self(ExperimentSearch {
            view: message.view_type.unwrap_or(ViewType::ActiveOnly),
            filter: message.filter,
            order_by: message.order_by,
            max_results: message.max_results,
            page_token: message.page_token,
        }))
    }

    fn needs(&self) -> Needs {
        Needs::list(Resource::Experiment)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<SearchExperimentsResponse> {
        let store = store.showing_archival(scope.workspace()).await;
        store.experiment_search(scope.workspace(), scope.visibility(), &self.0).await
    }
}

pub(crate) struct SearchDatasets(Vec<ExperimentId>);

impl Endpoint for SearchDatasets {
    type Store = Store;
    type Answer = DatasetSummariesResponse;

    fn read(request: &Request) -> Result<Self> {
        let ids = request.read::<message::SearchDatasets>()?.experiment_ids;
        if ids.is_empty() {
            return Err(Error::invalid("SearchDatasets request must specify at least one experiment_id."));
        }
        if ids.len() > limits::MAX_DATASET_EXPERIMENTS {
            return Err(Error::invalid(format!(
                "SearchDatasets request cannot specify more than {} experiment_ids. Received {} experiment_ids.",
                limits::MAX_DATASET_EXPERIMENTS,
                ids.len()
            )));
        }
        Ok(Self(known_experiments(&ids)?))
    }

    fn needs(&self) -> Needs {
        Needs::of(Action::Read, self.0.iter().copied().map(Target::Experiment))
            .or(Needs::read(Target::Nothing(Resource::Experiment)))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<DatasetSummariesResponse> {
        let experiments = scope.listed_experiments(&self.0)?;
        Ok(DatasetSummariesResponse { dataset_summaries: store.run_datasets_search(&experiments).await? })
    }
}

pub(crate) struct Update {
    experiment: ExperimentId,
    new_name: String,
}

impl Endpoint for Update {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::UpdateExperiment = request.read()?;
        limits::experiment_name(&message.new_name)?;
        Ok(Self { experiment: ExperimentId::parse(&message.experiment_id)?, new_name: message.new_name })
    }

    fn needs(&self) -> Needs {
        Needs::update(Target::Experiment(self.experiment))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let experiment = scope.experiment(self.experiment)?;
        store.experiment_rename(scope.workspace(), &experiment, &self.new_name).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct Delete(ExperimentId);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self(request.read::<message::ExperimentById>()?.experiment_id))
    }

    fn needs(&self) -> Needs {
        Needs::delete(Target::Experiment(self.0))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.experiment_delete(scope.workspace(), &scope.experiment(self.0)?).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct Restore(ExperimentId);

impl Endpoint for Restore {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self(request.read::<message::ExperimentById>()?.experiment_id))
    }

    fn needs(&self) -> Needs {
        Needs::delete(Target::Experiment(self.0))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.experiment_restore(scope.workspace(), &scope.experiment(self.0)?).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct SetTag {
    experiment: ExperimentId,
    key: String,
    value: String,
}

impl Endpoint for SetTag {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message::SetExperimentTag { experiment_id, key, value } = request.read()?;
        if !key.starts_with(CUSTOM_VIEW_TAG_PREFIX) {
            limits::experiment_tag(&key, &value)?;
        }
        Ok(Self { experiment: ExperimentId::parse(&experiment_id)?, key, value })
    }

    fn needs(&self) -> Needs {
        Needs::update(Target::Experiment(self.experiment))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store
            .experiment_set_tag(scope.workspace(), &scope.experiment(self.experiment)?, &self.key, &self.value)
            .await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct DeleteTag {
    experiment: ExperimentId,
    /// The experiment id as the client sent it, because MLflow's error message quotes it.
    text: String,
    key: String,
}

impl Endpoint for DeleteTag {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::DeleteExperimentTag = request.read()?;
        let experiment = ExperimentId::parse(&message.experiment_id)?;
        Ok(Self { experiment, text: message.experiment_id, key: message.key })
    }

    fn needs(&self) -> Needs {
        Needs::update(Target::Experiment(self.experiment))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.experiment_delete_tag(&scope.experiment(self.experiment)?, &self.text, &self.key).await?;
        Ok(EmptyResponse {})
    }
}
