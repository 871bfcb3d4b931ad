//! Registering and deleting scorers.

use access::{Action, Needs, Resource, Scope};
use mlflow_api::requests::scorers as message;
use mlflow_api::scorers::RegisterScorerResponse;
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{Request, Result};
use service::Endpoint;

use crate::request_targets::ScorerTarget;
use crate::store::Store;

pub(crate) struct Register {
    scorer: ScorerTarget,
    serialized: String,
}

impl Endpoint for Register {
    type Store = Store;
    type Answer = RegisterScorerResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::RegisterScorer = request.read()?;
        crate::store::check_scorer(&message.name, &message.serialized_scorer)?;
        let scorer = ScorerTarget::of(message.experiment_id, message.name)?;
        Ok(Self { scorer, serialized: message.serialized_scorer })
    }

    fn needs(&self) -> Needs {
        Needs::of(Action::Create, [self.scorer.target()])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<RegisterScorerResponse> {
        store.scorer_register(scope.workspace(), &self.scorer.granted(scope)?, &self.serialized).await
    }
}

pub(crate) struct Delete {
    scorer: ScorerTarget,
    version: Option<i32>,
}

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::OneScorerVersion = request.read()?;
        Ok(Self { scorer: ScorerTarget::of(message.experiment_id, message.name)?, version: message.version })
    }

    /// Deleting a single version requires only permission to read the scorer.
    fn needs(&self) -> Needs {
        let scorer = self.scorer.target();
        match self.version {
            None => Needs::delete(scorer),
            Some(_) => {
                Needs::of_in(Action::Delete, Resource::ScorerVersion, scorer.clone()).and(Action::Read, [scorer])
            }
        }
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let version = self.version.map(i64::from);
        store.scorer_delete(scope.workspace(), &self.scorer.granted(scope)?, version).await?;
        Ok(EmptyResponse {})
    }
}
