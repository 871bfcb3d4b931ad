//! The evaluation datasets, scorers, label schemas and review queues that requests refer to.

use access::{Action, Granted, Needs, Resource, Scope, Target};
use mlflow_api::{EvaluationDatasetId, ExperimentId, LabelSchemaId, Request, Result, ReviewQueueId};

use crate::store::{DatasetReference, ScorerName};

/// The dataset id in a path. A text that is not a valid id refers to no dataset. Only some
/// endpoints return an error for such a text.
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

    /// Returns the dataset with the scope's grant of access. If the dataset is in another
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

    /// Returns the scorer with the scope's grant of access.
    pub(crate) fn granted(self, scope: &Scope) -> Result<ScorerName> {
        let experiment = scope.scorer(self.experiment, &self.name)?;
        Ok(ScorerName { experiment, text: self.text, name: self.name })
    }

    /// Returns the scorer, for a request that has been granted access to the experiment instead of
    /// the scorer.
    pub(crate) fn granted_with_experiment(self, scope: &Scope) -> Result<ScorerName> {
        Ok(ScorerName { experiment: scope.experiment(self.experiment)?, text: self.text, name: self.name })
    }
}

/// Defines the target of requests about entities whose ids contain their experiment. A text that is
/// not a valid id refers to no entity.
macro_rules! target_in_experiment {
    ($(#[doc = $doc:literal])+ $name:ident, $id:ty, $resource:ident) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            text: String,
            id: Option<$id>,
        }

        impl $name {
            /// Parses the id in a request.
            pub(crate) fn of(text: String) -> Self {
                Self { id: <$id>::parse(&text), text }
            }

            /// Returns the need for an action on the entity.
            pub(crate) fn needs(&self, action: Action) -> Needs {
                let target = match &self.id {
                    Some(id) => Target::Experiment(id.experiment()),
                    None => Target::Nothing(Resource::$resource),
                };
                Needs::of_in(action, Resource::$resource, target)
            }

            /// Returns the entity's id, and its experiment with the scope's grant of access.
            /// Returns `None` if the text is not a valid id, or if the caller may not read the
            /// experiment. The entity does not have to exist.
            pub(crate) fn known(self, scope: &Scope) -> Result<Option<(Granted<ExperimentId>, $id)>> {
                let Some(id) = self.id else { return Ok(None) };
                Ok(scope.listed_experiment(id.experiment())?.map(|experiment| (experiment, id)))
            }

            /// Returns the entity's id, and its experiment with the scope's grant of access. The
            /// entity does not have to exist.
            pub(crate) fn granted(self, scope: &Scope) -> Result<(Granted<ExperimentId>, $id)> {
                let text = self.text.clone();
                self.known(scope)?.ok_or_else(|| <$id>::not_found(&text))
            }
        }
    };
}

target_in_experiment! {
    /// The label schema that a request refers to.
    LabelSchemaTarget, LabelSchemaId, LabelSchema
}
target_in_experiment! {
    /// The review queue that a request refers to.
    ReviewQueueTarget, ReviewQueueId, ReviewQueue
}
