//! The HTTP frame of every function: route rows, requests, answers, MLflow's 404.
//!
//! A function is a list of [`Route`]s over its [`Store`]; each row names an [`Endpoint`]. [`router`] makes the axum router that Lambda's
//! adapter, the laptop's server and the tests run alike.

mod answer;
mod attachment;
mod calls;
mod endpoint;
mod front;
mod incoming;
mod lambda;
mod room;
mod route;
mod router;
mod signed_in;
mod workspaces;

pub use answer::{Answer, FileUrl, IntoAnswer, html_not_found};
pub use attachment::{Attachment, disposition};
pub use calls::{Call, Calls};
pub use endpoint::{Endpoint, Frame, Store, Upload};
pub use front::front;
pub use incoming::BodyStream;
pub use lambda::{Aside, LongAnswer, within_lambda, within_lambda_or_aside};
pub use route::{Paths, Route};
pub use router::{joined, no_rows, router};
pub use signed_in::signed_in;
pub use workspaces::without_workspaces;
