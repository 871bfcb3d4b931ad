//! A Lambda that serves domains.
//!
//! The `main` of each function has a runtime of one thread, since a sandbox handles one event at
//! a time. It has mimalloc, since each attribute of each item is a few small allocations. Without
//! both, a start of the tracking function and 100 runs took a seventh more processor time. 1,000
//! runs took a sixth more, and a log-batch of 10 metrics two fifths. Both programs were measured
//! in turn by `bench/functions.py`.

pub use lambda_http::Error;

use crate::{Domain, Surroundings, mount};

/// Serves these domains until the sandbox ends. A cold start reads the environment, looks at the
/// table, and prepares the domains, so that a connection to the table exists before the first call.
///
/// # Errors
/// Variables that the environment lacks, or anything that [`mount`] does not find.
pub async fn run(served: &[&'static Domain], called: &[&'static Domain]) -> Result<(), Error> {
    tracing_subscriber::fmt().json().with_max_level(tracing::Level::INFO).without_time().init();
    // Domains that are only called use the environment and the rights of those that are served.
    let functions: Vec<_> = served.iter().map(|domain| &domain.function).collect();
    let around = Surroundings::from_environment(&functions).await?;
    let router = gateway::entered(mount(served, called, &around).await?);
    service::run_lambda(service::told(router, service::log)).await
}
