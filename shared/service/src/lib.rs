//! The HTTP frame of every function: route rows, requests, answers, MLflow's 404.
//!
//! A function is a list of [`Route`]s over a state of its own; [`router`] makes the axum router that Lambda's adapter, the
//! laptop's server and the tests run alike.

mod answer;
mod attachment;
mod route;
mod router;

pub use answer::{Answer, html_not_found};
pub use attachment::Attachment;
pub use route::{Paths, Route};
pub use router::{joined, router};
