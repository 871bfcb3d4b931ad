//! The endpoint of the function.

use std::sync::Arc;

use access::{Needs, Scope};
use apollo_compiler::response::JsonMap;
use mlflow_api::{Error, Request, Result};
use serde_json::Value;
use service::Endpoint;
use table::UsageMeter;
use tokio::sync::{Semaphore, oneshot};

use crate::endpoint_calls::EndpointCalls;
use crate::operation::{self, Response};
use crate::query_limits;
use crate::store::Store;

/// A semaphore that limits the number of concurrent queries. Each query occupies one blocking
/// thread, and its calls need further blocking threads. If queries could occupy all blocking
/// threads, they would deadlock.
static QUERY_SLOTS: Semaphore = Semaphore::const_new(16);

/// A query as it was sent.
pub(crate) struct GraphqlQuery {
    text: String,
    variables: JsonMap,
    operation: Option<String>,
    /// Query parameters of the URL. One of MLflow's endpoints reads them even when called through
    /// GraphQL.
    arguments: Vec<(String, String)>,
}

impl Endpoint for GraphqlQuery {
    type Store = Store;
    type Answer = Response;

    fn read(request: &Request) -> Result<Self> {
        let mut body = request.json_object()?;
        let Some(Value::String(text)) = body.remove("query") else {
            return Err(Error::invalid("The request must have a 'query' of type string."));
        };
        if text.len() > query_limits::MAX_QUERY_BYTES {
            return Err(Error::invalid(format!("The query is longer than {} bytes.", query_limits::MAX_QUERY_BYTES)));
        }
        let variables = match body.remove("variables") {
            None | Some(Value::Null) => JsonMap::new(),
            Some(Value::Object(variables)) => {
                variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
            }
            Some(_) => return Err(Error::invalid("The 'variables' of the request must be a JSON object.")),
        };
        let operation = match body.remove("operationName") {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) => Some(name),
            Some(_) => return Err(Error::invalid("The 'operationName' of the request must be a string.")),
        };
        Ok(Self { text, variables, operation, arguments: request.query.clone() })
    }

    /// The query itself needs no permissions. Each of its calls is authorized separately.
    fn needs(&self) -> Needs {
        Needs::nothing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Response> {
        let requests = EndpointCalls::new(Arc::clone(&store.calls), scope.identity().clone(), self.arguments);
        let schema = Arc::clone(&store.schema);
        // The query runs on a blocking thread, because the library's future is not `Send`. Large
        // responses keep the thread busy anyway.
        let runtime = tokio::runtime::Handle::current();
        // The sender is dropped together with this future when the client disconnects, which
        // cancels the query.
        let (_waiting, gone) = oneshot::channel::<()>();
        let executing = QUERY_SLOTS.acquire().await.map_err(Error::internal)?;
        // The requests of the query's calls are counted by this task's meter.
        let meter = UsageMeter::of_task().unwrap_or_default();
        let executed = tokio::task::spawn_blocking(move || {
            let _executing = executing;
            let operation = self.operation.as_deref();
            let executed = operation::execute(&schema, self.text, operation, &self.variables, &requests);
            runtime.block_on(meter.counting(async {
                tokio::select! {
                    executed = executed => executed,
                    _ = gone => Err(Error::internal("the client has disconnected")),
                }
            }))
        });
        executed.await.map_err(Error::internal)?
    }
}
