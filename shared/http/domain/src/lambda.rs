//! A Lambda that serves domains.
//!
//! The `main` of each function uses a single-threaded runtime, because a sandbox handles one event
//! at a time, and mimalloc, because each attribute of each item takes a few small allocations.
//! Without these two choices, the tracking function took a seventh more CPU time for a start
//! followed by 100 runs, a sixth more for 1,000 runs, and two fifths more for a log-batch of 10
//! metrics. Programs with and without them were measured alternately with `bench/functions.py`.

pub use lambda_http::Error;

use crate::{Domain, Environment, log_lines, mount};

/// Runs a function until its sandbox ends, and writes its log ([`log_lines`]). An error of
/// `main` is logged before it is returned: Rust prints a returned error as plain text, and Lambda
/// drops text that is not JSON if the log level is `WARN`.
///
/// # Errors
/// Returns the error of `main`.
pub async fn logged(main: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    log_lines::install();
    main.await.inspect_err(|error| tracing::error!(%error, "the function has failed"))
}

/// Serves these domains until the sandbox ends. A cold start reads the environment, checks the
/// table, and prepares the domains, so that a connection to the table exists before the first call.
///
/// # Errors
/// Returns an error if a variable is missing from the environment, or if [`mount`] fails.
pub async fn run(served: &[&'static Domain], called: &[&'static Domain]) -> Result<(), Error> {
    // Boxed, because the future is large.
    logged(Box::pin(async {
        // Domains that are only called use the environment and the rights of the domains that are
        // served.
        let functions: Vec<_> = served.iter().map(|domain| &domain.function).collect();
        let around = Environment::from_environment(&functions).await?;
        let router = crate::gateway::with_connection_info(mount(served, called, &around).await?);
        service::run_lambda(service::log_requests(router, service::log)).await
    }))
    .await
}
