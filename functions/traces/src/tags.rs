//! Endpoints for trace tags, in both versions.

use access::{Needs, Scope, Target};
use mlflow_api::requests::traces as message;
use mlflow_api::traces::{ARCHIVAL_FAILURE_TAG, SERVER_TAGS};
use mlflow_api::tracking::EmptyResponse;
use mlflow_api::{Error, Request, Result, TraceId};
use service::Endpoint;

use crate::store::{Store, no_tag};

/// Rejects changes to tags that only the server may set.
fn check_client_tag(key: &str, done: &str) -> Result<()> {
    if !SERVER_TAGS.contains(&key) || (done == "deleted" && key == ARCHIVAL_FAILURE_TAG) {
        return Ok(());
    }
    Err(Error::invalid(format!("Tag '{key}' is immutable and cannot be {done} on a trace.")))
}

pub(crate) struct Set {
    trace: TraceId,
    key: String,
    value: String,
}

impl Endpoint for Set {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::SetTag = request.read()?;
        check_client_tag(&message.key, "set")?;
        let trace = crate::trace_path::parse_trace_id(request)?;
        Ok(Self { trace, key: message.key, value: message.value })
    }

    fn needs(&self) -> Needs {
        Needs::update(Target::Trace(self.trace.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        store.trace_set_tag(&scope.trace(&self.trace)?, &self.key, &self.value).await?;
        Ok(EmptyResponse {})
    }
}

pub(crate) struct Delete {
    trace: TraceId,
    key: String,
}

impl Endpoint for Delete {
    type Store = Store;
    type Answer = EmptyResponse;

    fn read(request: &Request) -> Result<Self> {
        let message: message::DeleteTag = request.read()?;
        check_client_tag(&message.key, "deleted")?;
        let id = crate::trace_path::raw_trace_id(request);
        let trace = TraceId::parse(id).ok_or_else(|| no_tag(id, &message.key))?;
        Ok(Self { trace, key: message.key })
    }

    fn needs(&self) -> Needs {
        Needs::update(Target::Trace(self.trace.clone()))
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<EmptyResponse> {
        let trace = scope.known_trace(&self.trace)?.ok_or_else(|| no_tag(self.trace.as_str(), &self.key))?;
        store.trace_delete_tag(&trace, &self.key).await?;
        Ok(EmptyResponse {})
    }
}
