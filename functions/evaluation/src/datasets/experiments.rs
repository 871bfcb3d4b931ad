//! The experiments of a dataset.

use access::{Action, Needs, Scope, Target};
use mlflow_api::evaluation_datasets::{DatasetExperimentsResponse, DatasetResponse};
use mlflow_api::requests::evaluation_datasets as message;
use mlflow_api::{ExperimentId, Request, Result};
use service::Endpoint;

use super::lifecycle::{check_workspace, experiments};
use crate::request_targets::DatasetTarget;
use crate::store::Store;

pub(crate) struct Experiments(DatasetTarget);

impl Endpoint for Experiments {
    type Store = Store;
    type Answer = DatasetExperimentsResponse;

    fn read(request: &Request) -> Result<Self> {
        Ok(Self(DatasetTarget::of(request)))
    }

    fn needs(&self) -> Needs {
        Needs::of(Action::Read, self.0.targets())
    }

    /// Returns only the experiments that the caller may read. Texts that are not experiment ids are
    /// returned without a check.
    async fn act(self, scope: &Scope, store: &Store) -> Result<DatasetExperimentsResponse> {
        let asked = self.0.granted(scope)?;
        let mut experiment_ids = store.dataset_experiments(&asked).await?;
        if let Some(dataset) = &asked.dataset {
            experiment_ids.retain(|text| {
                ExperimentId::parse(text).map_or(true, |experiment| scope.shows_experiment(dataset, experiment))
            });
        }
        Ok(DatasetExperimentsResponse { experiment_ids })
    }
}

pub(crate) struct AddExperiments {
    dataset: DatasetTarget,
    experiments: Vec<String>,
}

impl Endpoint for AddExperiments {
    type Store = Store;
    type Answer = DatasetResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::DatasetExperimentIds = request.read()?;
        Ok(Self { dataset: DatasetTarget::of(request), experiments: message.experiment_ids })
    }

    /// Adding a dataset to experiments also requires permission on the experiments, because they
    /// will list the dataset.
    fn needs(&self) -> Needs {
        let experiments = experiments(&self.experiments).map(Target::Experiment);
        Needs::of(Action::Update, self.dataset.targets()).and(Action::Update, experiments)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<DatasetResponse> {
        let dataset = self.dataset.granted(scope)?;
        check_workspace(scope, &self.experiments)?;
        Ok(DatasetResponse { dataset: store.dataset_add_experiments(&dataset, &self.experiments).await? })
    }
}

pub(crate) struct RemoveExperiments {
    dataset: DatasetTarget,
    experiments: Vec<String>,
}

impl Endpoint for RemoveExperiments {
    type Store = Store;
    type Answer = DatasetResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::DatasetExperimentIds = request.read()?;
        Ok(Self { dataset: DatasetTarget::of(request), experiments: message.experiment_ids })
    }

    /// Removing a dataset from experiments also requires permission on the experiments, because
    /// they list the dataset.
    fn needs(&self) -> Needs {
        let experiments = experiments(&self.experiments).map(Target::Experiment);
        Needs::of(Action::Update, self.dataset.targets()).and(Action::Update, experiments)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<DatasetResponse> {
        let dataset = self.dataset.granted(scope)?;
        Ok(DatasetResponse { dataset: store.dataset_remove_experiments(&dataset, &self.experiments).await? })
    }
}
