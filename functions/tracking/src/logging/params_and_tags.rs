//! Params and tags, one per call.

use access::{Needs, Scope, Target};
use mlflow_api::requests::logging as message;
use mlflow_api::requests::runs::new_or_old;
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{Request, Result, RunId, limits};
use service::Endpoint;

use crate::store::Store;

pub(crate) struct LogParam {
    run: RunId,
    key: String,
    value: String,
}

impl Endpoint for LogParam {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::LogEntry = request.read()?;
        let value = limits::param(&message.key, &message.value, "")?;
        let run = RunId::named(new_or_old(&message.run_id, &message.run_uuid))?;
        Ok(Self { run, key: message.key, value })
    }

    fn needs(&self) -> Needs {
        Needs::update(Target::Run(self.run.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.run_log_param(&scope.run(&self.run)?, &self.key, self.value).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct SetTag {
    run: RunId,
    key: String,
    value: String,
}

impl Endpoint for SetTag {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::LogEntry = request.read()?;
        let value = limits::run_tag(&message.key, &message.value, "")?;
        let run = RunId::named(new_or_old(&message.run_id, &message.run_uuid))?;
        Ok(Self { run, key: message.key, value })
    }

    fn needs(&self) -> Needs {
        Needs::update(Target::Run(self.run.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.run_set_tag(&scope.run(&self.run)?, &self.key, self.value).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct DeleteTag {
    run: RunId,
    key: String,
}

impl Endpoint for DeleteTag {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::DeleteRunTag = request.read()?;
        Ok(Self { run: RunId::named(&message.run_id)?, key: message.key })
    }

    fn needs(&self) -> Needs {
        Needs::update(Target::Run(self.run.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.run_delete_tag(&scope.run(&self.run)?, &self.key).await?;
        Ok(EmptyResponse {})
    }
}
