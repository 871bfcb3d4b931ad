//! Calls of endpoints within the server, without HTTP.

use std::collections::HashMap;
use std::sync::Arc;

use access::Identity;
use futures::future::BoxFuture;
use mlflow_api::{Request, Result};

use crate::endpoint::{DomainStore, FunctionContext};
use crate::endpoint_response::EndpointResponse;
use crate::route::Route;

/// Calls an endpoint on behalf of an authenticated caller, in the same workspace and with the same
/// credentials. Needs are authorized as for an HTTP request.
pub type InternalCall = Arc<dyn Fn(Identity, Request) -> BoxFuture<'static, Result<EndpointResponse>> + Send + Sync>;

/// Endpoints of any functions, by method and canonical path: `GET /api/2.0/mlflow/runs/get`.
#[derive(Clone, Default)]
pub struct InternalCalls(HashMap<String, InternalCall>);

impl InternalCalls {
    /// Adds the endpoints of a function, called with its context `frame`. Endpoints that take a
    /// stream and routes with a constant response are left out.
    #[must_use]
    pub fn with<S: DomainStore>(mut self, routes: Vec<Route<S>>, frame: &FunctionContext<S>) -> Self {
        for route in routes {
            let name = format!("{} {}", route.method, route.full_paths()[0]);
            let Some(calling) = route.call_handler else { continue };
            let frame = frame.clone();
            let call: InternalCall = Arc::new(move |identity, request| calling(frame.clone(), identity, request));
            self.0.insert(name, call);
        }
        self
    }

    /// Adds the endpoints in `others`.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Returns the endpoint with this name, if there is one.
    #[must_use]
    pub fn get(&self, endpoint: &str) -> Option<&InternalCall> {
        self.0.get(endpoint)
    }
}
