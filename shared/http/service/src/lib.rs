//! The HTTP frame of every function: routes, requests, responses, and MLflow's 404.
//!
//! A function is a list of [`Route`]s over its [`DomainStore`]. Each route names an [`Endpoint`].
//! [`router`] builds the axum router that the Lambda adapter, the local server and the tests all
//! run.
//!
//! 1. In a Lambda, `lambda_event.rs` repairs or rejects events that `lambda_http` would panic on.
//!    `lambda_limits.rs` rejects a path that `lambda_http` has parsed into a different one.
//!    `path_normalization.rs` strips duplicate leading slashes, redirects paths with duplicate
//!    slashes elsewhere, and answers `OPTIONS`.
//! 2. The router finds the route. Most routes exist under both `/api/2.0/mlflow/…` and
//!    `/ajax-api/2.0/mlflow/…`. `.under(Paths::…)` selects other paths: version 3.0, below
//!    `mlflow-artifacts/`, `/ajax-api` only, or the path as written. If workspaces are disabled, a
//!    request that names one is rejected before routing (`workspace_rejection.rs`).
//! 3. **Authenticate**: the authorizer receives the method, the path, the headers, and what the
//!    server or the gateway knows about the sender. It returns the caller, the workspace, and the
//!    restrictions of the credentials. If it cannot identify the caller, the response is 401. Open
//!    routes skip this step. `require_sign_in` does the same for the pages of the user interface.
//! 4. **Read** ([`Endpoint::read`]): a body is limited to 32 MB and 500,000 JSON values. Large
//!    bodies of all requests share 64 MB. Up to 16 MB of decompressed bodies are processed at the
//!    same time, or one longer body (`body_memory.rs`). Long bodies are parsed on other threads.
//! 5. **Authorize** ([`Endpoint::needs`]): [`access::Scope::enter`] resolves the needs and consults
//!    the authorizer. A route declares the least permission that its endpoint needs. A request
//!    whose needs do not include that permission is answered with 500.
//! 6. [`DomainStore::hide_expired`] hides entities that clients may no longer see. Currently, these
//!    are expired traces.
//! 7. **Act** ([`Endpoint::act`]): one or two calls of the store, with the entities that the scope
//!    grants.
//! 8. **Respond**: the router compresses responses of 4 KB and more, except files, for clients that
//!    accept gzip. It responds even if code panics. In a Lambda, responses of more than 6 MB are
//!    replaced by a 400. Only the traces function stores longer responses to `GET`, up to 64 MB, in
//!    the bucket and redirects to them with 307 (`lambda_limits.rs`).
//! 9. **Log**: as the outermost layer, [`log_requests`] creates one [`RequestLine`] per request,
//!    which a Lambda logs. It contains the route, the status, the duration, the requests and units
//!    of the table, and a hash of the caller.

mod attachment;
mod body_memory;
mod endpoint;
mod endpoint_response;
mod hsts;
mod incoming_request;
mod internal_calls;
mod lambda_event;
mod lambda_limits;
mod path_normalization;
mod refusal;
mod request_line;
mod route;
mod router;
mod router_authentication;
mod workspace_rejection;

pub use attachment::Attachment;
pub use endpoint::{DomainStore, Endpoint, FunctionContext, Upload};
pub use endpoint_response::{EndpointResponse, FileUrl, IntoEndpointResponse, html_not_found};
pub use hsts::with_hsts;
pub use incoming_request::BodyStream;
pub use internal_calls::{InternalCall, InternalCalls};
pub use lambda_event::run_lambda;
pub use lambda_limits::{LongResponse, ResponseOffload, within_lambda, within_lambda_or_offload};
pub use path_normalization::normalize_paths;
pub use refusal::Refusal;
pub use request_line::{RequestLine, log, log_requests, log_work};
pub use route::{Paths, Route};
pub use router::{empty_router, join_routers, router};
pub use router_authentication::require_sign_in;
pub use workspace_rejection::reject_workspaces;
