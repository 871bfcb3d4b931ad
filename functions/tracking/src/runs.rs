//! Endpoints of `runs/…`, except those that log data.

use access::{Action, Needs, Resource, Scope, Target};
use mlflow_api::key_value::pairs;
use mlflow_api::requests::runs::{self as message, new_or_old};
use mlflow_api::tracking::{EmptyResponse, RunResponse, SearchRunsResponse, UpdateRunResponse};
use mlflow_api::{Error, ErrorCode, ExperimentId, Request, Result, RunId};
use service::Endpoint;

use crate::store::{NewRun, RunChange, RunSearch, Store};

pub(crate) struct Create {
    experiment: ExperimentId,
    new: NewRun,
}

impl Endpoint for Create {
    type Store = Store;
    type Answer = RunResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::CreateRun = request.read()?;
        if message.experiment_id.is_empty() {
            // If a request names no experiment, MLflow looks up the default experiment, but then
            // fails to write the run. This server rejects such a request.
            return Err(Error::new(ErrorCode::BadRequest, "A run needs the id of its experiment."));
        }
        let new = NewRun {
            user_id: message.user_id,
            name: message.run_name,
            start_time: message.start_time,
            tags: pairs(message.tags),
        };
        Ok(Self { experiment: ExperimentId::parse(&message.experiment_id)?, new })
    }

    fn needs(&self) -> Needs {
        Needs::create_in(Target::Experiment(self.experiment), Resource::Run)
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<RunResponse> {
        Ok(RunResponse { run: store.run_create(&scope.experiment(self.experiment)?, &self.new).await? })
    }
}

pub(crate) struct Get(RunId);

impl Endpoint for Get {
    type Store = Store;
    type Answer = RunResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::GetRun = request.read()?;
        RunId::named(new_or_old(&message.run_id, &message.run_uuid)).map(Self)
    }

    fn needs(&self) -> Needs {
        Needs::read(Target::Run(self.0.clone())).showing([Resource::LoggedModel])
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<RunResponse> {
        let mut run = store.run_get(&scope.run(&self.0)?).await?;
        if !scope.shows(Resource::LoggedModel) {
            run.hide_models();
        }
        Ok(RunResponse { run })
    }
}

pub(crate) struct Search(RunSearch);

impl Endpoint for Search {
    type Store = Store;
    type Answer = SearchRunsResponse;

    fn read(request: &Request) -> Result<Self> {
        RunSearch::read(&request.read()?).map(Self)
    }

    fn needs(&self) -> Needs {
        let experiments = self.0.experiments.iter().copied().map(Target::Experiment);
        let runs = Needs::nothing().and_in(Action::List, Resource::Run, experiments).or(Needs::list(Resource::Run));
        runs.showing([Resource::LoggedModel])
    }

    async fn act(mut self, scope: &Scope, store: &Store) -> Result<SearchRunsResponse> {
        self.0.hides_models = !scope.shows(Resource::LoggedModel);
        store.run_search(&scope.listed_experiments(&self.0.experiments)?, self.0).await
    }
}

pub(crate) struct Update {
    run: RunId,
    change: RunChange,
}

impl Endpoint for Update {
    type Store = Store;
    type Answer = UpdateRunResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::UpdateRun = request.read()?;
        let run = RunId::named(new_or_old(&message.run_id, &message.run_uuid))?;
        Ok(Self {
            run,
            change: RunChange { status: message.status, end_time: message.end_time, name: message.run_name },
        })
    }

    fn needs(&self) -> Needs {
        Needs::update(Target::Run(self.run.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<UpdateRunResponse> {
        Ok(UpdateRunResponse { run_info: store.run_update(&scope.run(&self.run)?, &self.change).await? })
    }
}

pub(crate) struct Delete(RunId);

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        RunId::named(&request.read::<message::RunById>()?.run_id).map(Self)
    }

    fn needs(&self) -> Needs {
        Needs::delete(Target::Run(self.0.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.run_delete(&scope.run(&self.0)?).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct Restore(RunId);

impl Endpoint for Restore {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        RunId::named(&request.read::<message::RunById>()?.run_id).map(Self)
    }

    fn needs(&self) -> Needs {
        Needs::delete(Target::Run(self.0.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.run_restore(&scope.run(&self.0)?).await?;
        Ok(EmptyResponse {})
    }
}
