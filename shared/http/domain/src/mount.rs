//! Mounting domains in one process.

use axum::Router;
use service::Calls;

use crate::{Domain, Failure, Surroundings};

/// The routers of the `served` domains as one. The `called` domains are only called by other
/// domains, and answer no HTTP request. A path that no router knows is answered as MLflow answers
/// an unknown path.
///
/// # Errors
/// A domain does not find what it needs, or the table cannot be reached.
pub async fn mount(
    served: &[&'static Domain],
    called: &[&'static Domain],
    around: &Surroundings,
) -> Result<Router, Failure> {
    let (mut routers, mut calls) = (Vec::new(), Calls::default());
    for (domain, is_served) in each(served, called) {
        if !domain.calls_others {
            let around = Surroundings { is_only_called: !is_served, ..around.clone() };
            let mounted = (domain.mount)(around.clone()).await?;
            calls = calls.and(mounted.calls.clone());
            routers.extend(is_served.then_some(mounted.router));
        }
    }
    let around = around.clone().calling(calls);
    for (domain, _) in each(served, &[]) {
        if domain.calls_others {
            let mounted = (domain.mount)(around.clone()).await?;
            routers.push(mounted.router);
        }
    }
    let mut routers = routers.into_iter();
    let first = routers.next().ok_or("no domain is to be served")?;
    let router = service::joined(first, routers);
    let router = reached(router, served, &around);
    // Passwords are not to be sent without TLS.
    Ok(if around.basic.is_some() { service::kept_to_tls(router) } else { router })
}

/// The router as clients reach it.
fn reached(router: Router, served: &[&'static Domain], around: &Surroundings) -> Router {
    if !around.is_lambda {
        return service::front(router);
    }
    // Answers fit into what a Lambda may answer.
    let has_long_answers = served.iter().any(|domain| domain.has_long_answers);
    match around.artifacts.aside().filter(|_| has_long_answers) {
        Some(aside) => service::within_lambda_or_aside(router, aside),
        None => service::within_lambda(router),
    }
}

fn each(served: &[&'static Domain], called: &[&'static Domain]) -> impl Iterator<Item = (&'static Domain, bool)> {
    let both = served.iter().map(|domain| (*domain, true)).chain(called.iter().map(|domain| (*domain, false)));
    both.collect::<Vec<_>>().into_iter()
}
