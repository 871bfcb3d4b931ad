//! Mounting of domains in one process.

use axum::Router;
use service::InternalCalls;

use crate::offloaded_responses::offload_to;
use crate::{Domain, Environment, MountFailure};

/// Mounts domains and returns their merged router. The `called` domains are only called by other
/// domains and do not answer HTTP requests. For paths that no domain serves, the response is
/// MLflow's response to unknown paths.
///
/// # Errors
/// Returns an error if a domain cannot be mounted, or if the table is unreachable.
pub async fn mount(
    served: &[&'static Domain],
    called: &[&'static Domain],
    around: &Environment,
) -> Result<Router, MountFailure> {
    let (mut routers, mut calls) = (Vec::new(), InternalCalls::default());
    for (domain, is_served) in mounting_order(served, called) {
        if !domain.calls_others {
            let around = Environment { is_only_called: !is_served, ..around.clone() };
            let mounted = (domain.mount)(around.clone()).await?;
            calls = calls.and(mounted.calls.clone());
            routers.extend(is_served.then_some(mounted.router));
        }
    }
    let around = around.clone().with_calls(calls);
    for (domain, _) in mounting_order(served, &[]) {
        if domain.calls_others {
            let mounted = (domain.mount)(around.clone()).await?;
            routers.push(mounted.router);
        }
    }
    let mut routers = routers.into_iter();
    let first = routers.next().ok_or("no domains to serve")?;
    let router = service::join_routers(first, routers);
    let router = wrap_router(router, served, &around);
    // Browsers must not send passwords without TLS, so strict transport security is enabled if
    // users sign in.
    Ok(if around.user_authorizer.is_some() { service::with_hsts(router) } else { router })
}

/// Wraps the router in the layers for all paths: normalization, and in a Lambda the limit on the
/// size of responses.
fn wrap_router(router: Router, served: &[&'static Domain], around: &Environment) -> Router {
    if !around.is_lambda {
        return service::normalize_paths(router);
    }
    // A Lambda's response has a maximum size. Longer responses are stored in the bucket, if a
    // domain requires that and there is a bucket, or are replaced by an error.
    let has_long_answers = served.iter().any(|domain| domain.offloads_responses);
    match offload_to(&around.artifacts).filter(|_| has_long_answers) {
        Some(aside) => service::within_lambda_or_offload(router, aside),
        None => service::within_lambda(router),
    }
}

fn mounting_order(
    served: &[&'static Domain],
    called: &[&'static Domain],
) -> impl Iterator<Item = (&'static Domain, bool)> {
    let both = served.iter().map(|domain| (*domain, true)).chain(called.iter().map(|domain| (*domain, false)));
    both.collect::<Vec<_>>().into_iter()
}
