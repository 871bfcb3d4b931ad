//! Reading scorers.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::requests::scorers as message;
use mlflow_api::scorers::{ScorerResponse, ScorersResponse};
use mlflow_api::{Error, ExperimentId, Request, Result, limits};
use service::Endpoint;

use crate::request_targets::ScorerTarget;
use crate::store::Store;

/// `scorers/list`. The variant determines which experiments' scorers are listed.
pub(crate) enum List {
    Everything,
    Experiment(ExperimentId),
    Experiments(Vec<ExperimentId>),
}

impl Endpoint for List {
    type Store = Store;
    type Answer = ScorersResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::ListScorers = request.read()?;
        let Some(texts) = message.experiment_ids else {
            return Ok(match message.experiment_id.as_str() {
                "" => Self::Everything,
                experiment => Self::Experiment(ExperimentId::parse(experiment)?),
            });
        };
        if !message.experiment_id.is_empty() {
            return Err(Error::invalid(
                "Cannot specify both 'experiment_id' and 'experiment_ids'. Use 'experiment_ids' to scope the query to \
                 multiple experiments, or 'experiment_id' to scope it to a single experiment.",
            ));
        }
        limits::searched_experiments(texts.len())?;
        texts.iter().try_for_each(|id| limits::experiment_id(id))?;
        let ids = texts.iter().map(|id| ExperimentId::parse(id));
        // Numbers that are out of range for experiment ids are ignored.
        let ids = ids.filter(|id| !matches!(id, Err(error) if error.code.http_status() == 404));
        ids.collect::<Result<_>>().map(Self::Experiments)
    }

    fn needs(&self) -> Needs {
        let all = Needs::list(Resource::Scorer);
        match self {
            Self::Everything => all,
            // If the request names a single experiment, permission to read it is required.
            Self::Experiment(experiment) => all.and(Action::Read, [Target::Experiment(*experiment)]),
            Self::Experiments(experiments) => {
                all.and_in(Action::List, Resource::Scorer, experiments.iter().copied().map(Target::Experiment))
            }
        }
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<ScorersResponse> {
        let visible = scope.visibility();
        let scorers = match self {
            Self::Everything => store.scorer_list_all(scope.workspace(), visible).await?,
            Self::Experiment(experiment) => store.scorer_list(&scope.experiment(experiment)?, visible).await?,
            Self::Experiments(experiments) => {
                store.scorer_list_of(&scope.listed_experiments(&experiments)?, visible).await?
            }
        };
        Ok(ScorersResponse { scorers })
    }
}

pub(crate) struct Versions(ScorerTarget);

impl Endpoint for Versions {
    type Store = Store;
    type Answer = ScorersResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::ListScorerVersions = request.read()?;
        ScorerTarget::of(message.experiment_id, message.name).map(Self)
    }

    fn needs(&self) -> Needs {
        Needs::read(self.0.target())
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<ScorersResponse> {
        Ok(ScorersResponse { scorers: store.scorer_versions(&self.0.granted(scope)?).await? })
    }
}

pub(crate) struct Get {
    scorer: ScorerTarget,
    version: Option<i32>,
}

impl Endpoint for Get {
    type Store = Store;
    type Answer = ScorerResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::OneScorerVersion = request.read()?;
        Ok(Self { scorer: ScorerTarget::of(message.experiment_id, message.name)?, version: message.version })
    }

    fn needs(&self) -> Needs {
        Needs::read(self.scorer.target())
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<ScorerResponse> {
        let version = self.version.map(i64::from);
        Ok(ScorerResponse { scorer: store.scorer_get(&self.scorer.granted(scope)?, version).await? })
    }
}
