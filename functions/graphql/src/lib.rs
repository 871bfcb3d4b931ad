//! The GraphQL function: returns the parts of other functions' responses that a query selects.
//!
//! `schema.graphql` is the whole schema on one page, and [`root_endpoints`](mod@root_endpoints)
//! maps each root field to an endpoint of another function. This function calls these endpoints on
//! behalf of the query's caller, so they check the permissions that they would check for a REST
//! request. It makes no requests to the table itself.
//!
//! `POST /graphql` → `query.rs` parses and validates queries on a thread for blocking work, at most
//! 16 at a time per process. `operation.rs` checks MLflow's limits. `root_resolver.rs` resolves the
//! root fields, and `response_object.rs` the fields of the objects that they return.
//! `endpoint_calls.rs` calls the endpoint that `root_endpoints.rs` names, through `service::InternalCalls`.

mod declaration;
mod endpoint_calls;
mod operation;
mod query;
mod query_limits;
mod response_object;
mod root_endpoints;
mod root_resolver;
mod store;

use access::Permission::SignedIn;
use service::{FunctionContext, Paths, Route};

pub use declaration::DOMAIN;
pub use store::Store;

/// Returns the routes of this function. A query itself requires no permissions, because each
/// endpoint that it calls checks the caller's permissions.
#[must_use]
pub fn routes() -> Vec<Route<Store>> {
    vec![
        Route::to::<query::GraphqlQuery>("GET", "/graphql", SignedIn).under(Paths::Bare),
        Route::to::<query::GraphqlQuery>("POST", "/graphql", SignedIn).under(Paths::Bare),
    ]
}

/// Returns the router of the domain over the given store. For tests.
pub fn router(store: &Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    service::router(routes(), &FunctionContext::new(store.clone(), authorizer))
}
