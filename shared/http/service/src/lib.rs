//! The HTTP frame of every function: routes, requests, answers, MLflow's 404.
//!
//! A function is a list of [`Route`]s over its [`Store`]. Each route names an [`Endpoint`].
//! [`router`] makes the axum router that Lambda's adapter, the laptop's server and the tests run
//! alike.
//!
//! 1. In a Lambda, `lambda_event.rs` mends or refuses events that `lambda_http` would panic on.
//!    `lambda.rs` refuses a path that `lambda_http` has read as another one. `front.rs` drops
//!    slashes before the first, redirects paths with doubled slashes inside, and answers `OPTIONS`.
//! 2. The router finds the route. Most are under `/api/2.0/mlflow/…` and
//!    `/ajax-api/2.0/mlflow/…` alike. `.under(Paths::…)` names other paths: version 3.0, below
//!    `mlflow-artifacts/`, `/ajax-api` only, or the path as written. If workspaces are off, a
//!    request that names one is refused before any route (`workspaces.rs`).
//! 3. **Authenticate**: the authorizer gets method, path, headers, and what the server or the
//!    gateway knows of the sender. It says who is calling, in which workspace, and what the
//!    credentials leave out. It answers 401 if it does not know. Open routes ask nobody.
//!    `signed_in` asks the same for the page.
//! 4. **Read** ([`Endpoint::read`]): a body has at most 32 MB, and 500,000 JSON values. Large bodies of all requests share
//!    64 MB. Of decompressed ones, 16 MB are worked on at a time, or one longer body (`room.rs`).
//!    Long ones are read on other threads.
//! 5. **Authorize** ([`Endpoint::needs`]): [`access::Scope::enter`] resolves the needs and asks the
//!    authorizer. A route says the least that its endpoint needs. A request whose needs do not
//!    include that is answered 500.
//! 6. [`Store::only_shown`] hides entities that clients are no longer shown: so far, traces whose
//!    time is over.
//! 7. **Act** ([`Endpoint::act`]): one or two calls of the store, with the entities that the scope
//!    grants.
//! 8. **Answer**: the router compresses answers of 4 KB and more, except files, for clients that
//!    take gzip. It answers even if code panics. A Lambda refuses an answer of more than 6 MB with
//!    400. Only the traces function puts a longer answer to a `GET`, up to 64 MB, into the bucket,
//!    and redirects with 307 (`lambda.rs`).
//! 9. **Tell**: outermost, [`told`] makes one [`RequestLine`] of each request: route, status, time,
//!    requests and units of the table, and a hash of the caller. A Lambda logs it.

mod answer;
mod attachment;
mod calls;
mod endpoint;
mod front;
mod incoming;
mod lambda;
mod lambda_event;
mod request_line;
mod room;
mod route;
mod router;
mod signed_in;
mod transport;
mod workspaces;

pub use answer::{Answer, FileUrl, IntoAnswer, html_not_found};
pub use attachment::{Attachment, disposition};
pub use calls::{Call, Calls};
pub use endpoint::{Endpoint, Frame, Store, Upload};
pub use front::front;
pub use incoming::BodyStream;
pub use lambda::{Aside, LongAnswer, within_lambda, within_lambda_or_aside};
pub use lambda_event::run_lambda;
pub use request_line::{RequestLine, log, told, told_work};
pub use route::{Paths, Route};
pub use router::{joined, no_rows, router};
pub use signed_in::signed_in;
pub use transport::kept_to_tls;
pub use workspaces::without_workspaces;
