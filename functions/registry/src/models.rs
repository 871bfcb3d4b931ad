//! Endpoints of `registered-models/…`, except those for aliases.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::key_value::pairs;
use mlflow_api::registry::{
    IS_PROMPT_TAG, LatestVersionsResponse, ModelStage, ModelVersion, RegisteredModelResponse, SearchModelsResponse,
};
use mlflow_api::requests::registry as message;
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{RegisteredModelName, Request, Result};
use service::Endpoint;

use crate::response_visibility::{self, with_versions};
use crate::store::{NewModel, RegistrySearch as Asked, Store};

/// Page size for requests without `max_results` (`SearchRegisteredModels` in
/// `model_registry.proto`).
const DEFAULT_PAGE_SIZE: i64 = 100;

pub(crate) struct Create {
    name: RegisteredModelName,
    new: NewModel,
}

impl Endpoint for Create {
    type Store = Store;
    type Answer = RegisteredModelResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::CreateModel = request.read()?;
        Ok(Self { new: NewModel { description: message.description, tags: pairs(message.tags) }, name: message.name })
    }

    fn needs(&self) -> Needs {
        let kind = if self.new.is_prompt() { Resource::Prompt } else { Resource::RegisteredModel };
        Needs::create_in(Target::RegisteredModel(self.name.clone()), kind)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<RegisteredModelResponse> {
        let name = scope.registered_model(&self.name)?;
        Ok(RegisteredModelResponse { registered_model: store.model_create(scope.workspace(), &name, &self.new).await? })
    }
}

pub(crate) struct Get(RegisteredModelName);

impl Endpoint for Get {
    type Store = Store;
    type Answer = RegisteredModelResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self(request.read::<message::ModelByName>()?.name))
    }

    fn needs(&self) -> Needs {
        with_versions(Needs::read(Target::RegisteredModel(self.0.clone())), &self.0)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<RegisteredModelResponse> {
        Ok(response_visibility::visible_model(
            scope,
            &self.0,
            store.model_get(&scope.registered_model(&self.0)?).await?,
        ))
    }
}

pub(crate) struct Search(Asked);

impl Endpoint for Search {
    type Store = Store;
    type Answer = SearchModelsResponse;

    fn read(request: &Request) -> Result<Self> {
        let message::SearchModels { filter, max_results, order_by, page_token } = request.read()?;
        Ok(Self(Asked {
            filter,
            order_by,
            max_results: max_results.unwrap_or(DEFAULT_PAGE_SIZE),
            page_token,
            hides_runs: false,
        }))
    }

    fn needs(&self) -> Needs {
        Needs::list(Resource::RegisteredModel).showing([Resource::Run])
    }

    async fn act(mut self, scope: &Scope, store: &Store) -> Result<SearchModelsResponse> {
        self.0.hides_runs = !scope.shows(Resource::Run);
        store.model_search(scope.workspace(), scope.visibility(), &self.0).await
    }
}

pub(crate) struct Update {
    name: RegisteredModelName,
    description: String,
}

impl Endpoint for Update {
    type Store = Store;
    type Answer = RegisteredModelResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::UpdateModel = request.read()?;
        Ok(Self { name: message.name, description: message.description })
    }

    fn needs(&self) -> Needs {
        with_versions(Needs::update(Target::RegisteredModel(self.name.clone())), &self.name)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<RegisteredModelResponse> {
        let name = scope.registered_model(&self.name)?;
        let model = store.model_update(scope.workspace(), &name, &self.description).await?;
        Ok(response_visibility::visible_model(scope, &self.name, model))
    }
}

pub(crate) struct Rename {
    name: RegisteredModelName,
    new_name: RegisteredModelName,
}

impl Endpoint for Rename {
    type Store = Store;
    type Answer = RegisteredModelResponse;

    fn read(request: &Request) -> Result<Self> {
        let message::RenameModel { name, new_name } = request.read()?;
        Ok(Self { name, new_name })
    }

    /// As in MLflow, renaming requires permission on the model only, and not on the new name. The
    /// transaction rejects a name that is in use.
    fn needs(&self) -> Needs {
        with_versions(Needs::update(Target::RegisteredModel(self.name.clone())), &self.name)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<RegisteredModelResponse> {
        let name = scope.registered_model(&self.name)?;
        let model = store.model_rename(scope.workspace(), &name, &self.new_name).await?;
        Ok(response_visibility::visible_model(scope, &self.name, model))
    }
}

pub(crate) struct Delete(RegisteredModelName);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self(request.read::<message::ModelByName>()?.name))
    }

    fn needs(&self) -> Needs {
        Needs::delete(Target::RegisteredModel(self.0.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.model_delete(scope.workspace(), &scope.registered_model(&self.0)?).await?;
        Ok(EmptyResponse {})
    }
}

/// Returns the permissions that changing a tag of a model requires. One tag turns a model into a
/// prompt or back. Changing this tag requires full rights, because other grants apply to the model
/// afterwards.
fn with_tag(name: &RegisteredModelName, key: &str) -> Needs {
    let model = Target::RegisteredModel(name.clone());
    let needs = Needs::update(model.clone());
    if key == IS_PROMPT_TAG { needs.and(Action::Manage, [model]) } else { needs }
}

pub(crate) struct SetTag(message::SetModelTag);

impl Endpoint for SetTag {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        request.read().map(Self)
    }

    fn needs(&self) -> Needs {
        with_tag(&self.0.name, &self.0.key)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let message::SetModelTag { name, key, value } = &self.0;
        store.model_set_tag(scope.workspace(), &scope.registered_model(name)?, key, value).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct DeleteTag(message::DeleteModelTag);

impl Endpoint for DeleteTag {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        request.read().map(Self)
    }

    fn needs(&self) -> Needs {
        with_tag(&self.0.name, &self.0.key)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let message::DeleteModelTag { name, key } = &self.0;
        store.model_delete_tag(scope.workspace(), &scope.registered_model(name)?, key).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct LatestVersions(message::GetLatestVersions);

impl Endpoint for LatestVersions {
    type Store = Store;
    type Answer = LatestVersionsResponse;

    fn read(request: &Request) -> Result<Self> {
        request.read().map(Self)
    }

    fn needs(&self) -> Needs {
        let versions = Needs::of_in(Action::Read, Resource::ModelVersion, Target::RegisteredModel(self.0.name.clone()));
        versions.showing([Resource::Run])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<LatestVersionsResponse> {
        // Stages are parsed after the model has been read, because MLflow looks up the model before
        // it checks the stages.
        let stages = || self.0.stages.iter().map(|stage| ModelStage::parse(stage)).collect();
        let mut model_versions = store.model_latest_versions(&scope.registered_model(&self.0.name)?, stages).await?;
        if !scope.shows(Resource::Run) {
            model_versions.iter_mut().for_each(ModelVersion::hide_run);
        }
        Ok(LatestVersionsResponse { model_versions })
    }
}
