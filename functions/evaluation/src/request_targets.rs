//! Evaluation datasets and scorers as requests refer to them.

use access::{Resource, Scope, Target};
use mlflow_api::{EvaluationDatasetId, ExperimentId, Request, Result};

use crate::store::{DatasetReference, ScorerName};

/// The dataset id in a path. A text that is not a valid id refers to no dataset. Only some calls
/// report that as an error.
#[derive(Clone, Debug)]
pub(crate) struct DatasetTarget {
    text: String,
    id: Option<EvaluationDatasetId>,
}

impl DatasetTarget {
    /// Parses the id in the request's path.
    pub(crate) fn of(request: &Request) -> Self {
        let text = request.path_part("dataset_id").to_owned();
        Self { id: EvaluationDatasetId::parse(&text), text }
    }

    /// Returns the datasets on which the request requires permissions.
    pub(crate) fn targets(&self) -> [Target; 1] {
        [self.id.clone().map_or(Target::Nothing(Resource::EvaluationDataset), Target::EvaluationDataset)]
    }

    /// Returns the dataset, to which the scope has granted access. If the dataset is in another
    /// workspace, the result is a reference without a dataset.
    pub(crate) fn granted(self, scope: &Scope) -> Result<DatasetReference> {
        let dataset = self.id.as_ref().map(|id| scope.known_evaluation_dataset(id)).transpose()?.flatten();
        Ok(DatasetReference { text: self.text, dataset })
    }
}

/// The scorer that a request refers to, by experiment and name.
#[derive(Clone, Debug)]
pub(crate) struct ScorerTarget {
    pub(crate) experiment: ExperimentId,
    /// The experiment's id as the client sent it, because error messages quote it.
    text: String,
    name: String,
}

impl ScorerTarget {
    pub(crate) fn of(experiment: String, name: String) -> Result<Self> {
        Ok(Self { experiment: ExperimentId::parse(&experiment)?, text: experiment, name })
    }

    /// Returns the scorer on which the request requires permissions.
    pub(crate) fn target(&self) -> Target {
        Target::Scorer(self.experiment, self.name.clone())
    }

    /// Returns the scorer, to which the scope has granted access.
    pub(crate) fn granted(self, scope: &Scope) -> Result<ScorerName> {
        let experiment = scope.scorer(self.experiment, &self.name)?;
        Ok(ScorerName { experiment, text: self.text, name: self.name })
    }

    /// Returns the scorer, for a request whose scope has granted access to the experiment instead
    /// of the scorer.
    pub(crate) fn granted_with_experiment(self, scope: &Scope) -> Result<ScorerName> {
        Ok(ScorerName { experiment: scope.experiment(self.experiment)?, text: self.text, name: self.name })
    }
}
