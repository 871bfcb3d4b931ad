//! How requests name evaluation datasets and scorers.

use access::{Resource, Scope, Target};
use mlflow_api::{EvaluationDatasetId, ExperimentId, Request, Result};

use crate::store::{AskedDataset, ScorerName};

/// The dataset that a path names. A text that no dataset can have as its id is the id of none, which not every call minds.
#[derive(Clone, Debug)]
pub(crate) struct AskedId {
    text: String,
    id: Option<EvaluationDatasetId>,
}

impl AskedId {
    /// The dataset of the path.
    pub(crate) fn of(request: &Request) -> Self {
        let text = request.path_part("dataset_id").to_owned();
        Self { id: EvaluationDatasetId::parse(&text), text }
    }

    /// The targets of its needs.
    pub(crate) fn targets(&self) -> [Target; 1] {
        [self.id.clone().map_or(Target::Nothing(Resource::EvaluationDataset), Target::EvaluationDataset)]
    }

    /// The dataset, granted; none, where it is in another workspace.
    pub(crate) fn granted(self, scope: &Scope) -> Result<AskedDataset> {
        let dataset = self.id.as_ref().map(|id| scope.known_evaluation_dataset(id)).transpose()?.flatten();
        Ok(AskedDataset { text: self.text, dataset })
    }
}

/// The scorer that a request names.
#[derive(Clone, Debug)]
pub(crate) struct AskedScorer {
    pub(crate) experiment: ExperimentId,
    /// The experiment as it was sent: messages quote it.
    text: String,
    name: String,
}

impl AskedScorer {
    pub(crate) fn of(experiment: String, name: String) -> Result<Self> {
        Ok(Self { experiment: ExperimentId::parse(&experiment)?, text: experiment, name })
    }

    /// The target of its needs.
    pub(crate) fn target(&self) -> Target {
        Target::Scorer(self.experiment, self.name.clone())
    }

    /// The scorer, granted.
    pub(crate) fn granted(self, scope: &Scope) -> Result<ScorerName> {
        let experiment = scope.scorer(self.experiment, &self.name)?;
        Ok(ScorerName { experiment, text: self.text, name: self.name })
    }

    /// The scorer, whose experiment was granted, and not it.
    pub(crate) fn granted_with_experiment(self, scope: &Scope) -> Result<ScorerName> {
        Ok(ScorerName { experiment: scope.experiment(self.experiment)?, text: self.text, name: self.name })
    }
}
