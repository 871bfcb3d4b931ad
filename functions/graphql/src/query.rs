//! The endpoint of the function.

use std::sync::Arc;

use access::{Needs, Scope};
use apollo_compiler::response::JsonMap;
use mlflow_api::{Error, Request, Result};
use serde_json::Value;
use service::Endpoint;
use table::Meter;
use tokio::sync::{Semaphore, oneshot};

use crate::limits;
use crate::operation::{self, Response};
use crate::requests::Requests;
use crate::store::Store;

/// Queries that are executed at a time. Each keeps one of the threads that may be kept busy, and
/// needs others for its calls. If queries had all of them, none would ever end.
static EXECUTING: Semaphore = Semaphore::const_new(16);

/// A query as it was sent.
pub(crate) struct Query {
    text: String,
    variables: JsonMap,
    operation: Option<String>,
    /// Arguments of the path: one endpoint of MLflow reads them even here.
    arguments: Vec<(String, String)>,
}

impl Endpoint for Query {
    type Store = Store;
    type Answer = Response;

    fn read(request: &Request) -> Result<Self> {
        let mut body = request.json_object()?;
        let Some(Value::String(text)) = body.remove("query") else {
            return Err(Error::invalid("The request must have a 'query', which is a string."));
        };
        if text.len() > limits::QUERY {
            return Err(Error::invalid(format!("The query is longer than {} bytes.", limits::QUERY)));
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

    /// Nothing by itself: its calls ask the authorizer again.
    fn needs(&self) -> Needs {
        Needs::nothing()
    }

    async fn act(self, scope: &Scope, store: &Store) -> Result<Response> {
        let requests = Requests::new(Arc::clone(&store.calls), scope.identity().clone(), self.arguments);
        let schema = Arc::clone(&store.schema);
        // The library's future may not move between threads. It gets one of those that may be kept busy, for long answers keep it so.
        let runtime = tokio::runtime::Handle::current();
        // Dropped with this call, when its client is gone: then the query ends, too.
        let (_waiting, gone) = oneshot::channel::<()>();
        let executing = EXECUTING.acquire().await.map_err(Error::internal)?;
        // Its calls are counted there as well.
        let meter = Meter::of_task().unwrap_or_default();
        let executed = tokio::task::spawn_blocking(move || {
            let _executing = executing;
            let operation = self.operation.as_deref();
            let executed = operation::execute(&schema, self.text, operation, &self.variables, &requests);
            runtime.block_on(meter.counting(async {
                tokio::select! {
                    executed = executed => executed,
                    _ = gone => Err(Error::internal("the client is gone")),
                }
            }))
        });
        executed.await.map_err(Error::internal)?
    }
}
