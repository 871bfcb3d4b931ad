//! What runs read and put out.

use access::{Needs, Scope, Target};
use mlflow_api::inputs::{DatasetInput, ModelInput};
use mlflow_api::requests::logging as message;
use mlflow_api::tracking::{Empty, ModelOutput};
use mlflow_api::{Request, Result, RunId, limits};
use service::Endpoint;

use crate::store::Store;

pub(crate) struct LogInputs {
    run: RunId,
    datasets: Vec<DatasetInput>,
    models: Vec<ModelInput>,
}

impl Endpoint for LogInputs {
    type Store = Store;
    type Answer = Empty;

    fn read(request: &Request) -> Result<Self> {
        let message: message::LogInputs = request.read()?;
        limits::run_id(&message.run_id)?;
        message.datasets.iter().try_for_each(DatasetInput::check)?;
        Ok(Self { run: RunId::named(&message.run_id)?, datasets: message.datasets, models: message.models })
    }

    /// The models are only named in the run's own rows: MLflow does not look whether there are such models.
    fn needs(&self) -> Needs {
        Needs::update(Target::Run(self.run.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Empty> {
        store.run_log_inputs(&scope.run(&self.run)?, &self.datasets, &self.models).await?;
        Ok(Empty {})
    }
}

pub(crate) struct LogOutputs {
    run: RunId,
    models: Vec<ModelOutput>,
}

impl Endpoint for LogOutputs {
    type Store = Store;
    type Answer = Empty;

    fn read(request: &Request) -> Result<Self> {
        let message: message::LogOutputs = request.read()?;
        Ok(Self { run: RunId::named(&message.run_id)?, models: message.models })
    }

    /// The run alone, as for its inputs.
    fn needs(&self) -> Needs {
        Needs::update(Target::Run(self.run.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Empty> {
        store.run_log_outputs(&scope.run(&self.run)?, &self.models).await?;
        Ok(Empty {})
    }
}
