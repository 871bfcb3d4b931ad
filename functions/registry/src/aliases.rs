//! Endpoints of `registered-models/alias`.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::registry::ModelVersionResponse;
use mlflow_api::requests::registry as message;
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{Request, Result};
use service::Endpoint;

use crate::response_visibility;
use crate::store::Store;

pub(crate) struct Get(message::ModelAlias);

impl Endpoint for Get {
    type Store = Store;
    type Answer = ModelVersionResponse;

    fn read(request: &Request) -> Result<Self> {
        request.read().map(Self)
    }

    fn needs(&self) -> Needs {
        let model = Target::RegisteredModel(self.0.name.clone());
        Needs::of_in(Action::Read, Resource::ModelVersion, model).showing([Resource::Run])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<ModelVersionResponse> {
        Ok(response_visibility::visible_version(
            scope,
            store.alias_get(&scope.registered_model(&self.0.name)?, &self.0.alias).await?,
        ))
    }
}

pub(crate) struct Set(message::SetAlias);

impl Endpoint for Set {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        request.read().map(Self)
    }

    fn needs(&self) -> Needs {
        let model = Target::RegisteredModel(self.0.name.clone());
        Needs::update(model.clone()).and_in(Action::Read, Resource::ModelVersion, [model])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let message::SetAlias { name, alias, version } = &self.0;
        store.alias_set(&scope.registered_model(name)?, alias, version).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct Delete(message::ModelAlias);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        request.read().map(Self)
    }

    fn needs(&self) -> Needs {
        let model = Target::RegisteredModel(self.0.name.clone());
        Needs::of(Action::Manage, [model.clone()]).and_in(Action::Read, Resource::ModelVersion, [model])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.alias_delete(&scope.registered_model(&self.0.name)?, &self.0.alias).await?;
        Ok(EmptyResponse {})
    }
}
