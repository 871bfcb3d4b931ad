//! Inputs and outputs of runs.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::inputs::{DatasetInput, ModelInput};
use mlflow_api::requests::logging as message;
use mlflow_api::tracking::{EmptyResponse, ModelOutput};
use mlflow_api::{ModelId, Request, Result, RunId, limits};
use service::Endpoint;

use crate::store::Store;

pub(crate) struct LogInputs {
    run: RunId,
    datasets: Vec<DatasetInput>,
    models: Vec<ModelInput>,
}

impl Endpoint for LogInputs {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::LogInputs = request.read()?;
        limits::run_id(&message.run_id)?;
        message.datasets.iter().try_for_each(DatasetInput::check)?;
        Ok(Self { run: RunId::named(&message.run_id)?, datasets: message.datasets, models: message.models })
    }

    /// The logged models are only recorded in rows of the run. Their existence is not checked, but
    /// the caller needs permission to update them.
    fn needs(&self) -> Needs {
        let models = self.models.iter().map(|model| model.model_id.as_str());
        Needs::update(Target::Run(self.run.clone())).and_naming(Action::Update, model_targets(models))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.run_log_inputs(&scope.run(&self.run)?, &self.datasets, &self.models).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct LogOutputs {
    run: RunId,
    models: Vec<ModelOutput>,
}

impl Endpoint for LogOutputs {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::LogOutputs = request.read()?;
        Ok(Self { run: RunId::named(&message.run_id)?, models: message.models })
    }

    /// The logged models are only recorded in rows of the run. Their existence is not checked, but
    /// the caller needs permission to update them.
    fn needs(&self) -> Needs {
        let models = self.models.iter().map(|model| model.model_id.as_str());
        Needs::update(Target::Run(self.run.clone())).and_naming(Action::Update, model_targets(models))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.run_log_outputs(&scope.run(&self.run)?, &self.models).await?;
        Ok(EmptyResponse {})
    }
}

/// Returns the logged models with these ids as permission targets. A string that is not a valid
/// model id refers to no model. Empty strings are skipped.
fn model_targets<'a>(ids: impl Iterator<Item = &'a str>) -> impl Iterator<Item = Target> {
    let ids = ids.filter(|id| !id.is_empty());
    ids.map(|id| ModelId::parse(id).map_or(Target::Nothing(Resource::LoggedModel), Target::LoggedModel))
}
