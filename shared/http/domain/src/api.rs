//! A domain: a function with its routes.

use std::future::ready;

use access::Permission;
use axum::Router;
use futures::future::BoxFuture;
use service::{Calls, Frame, Route, Store};

use crate::{Failure, Function, Surroundings};

/// The HTTP API of a domain, as its crate declares it.
pub trait Api {
    /// The store that its endpoints act on.
    type Store: Store;

    /// Its routes.
    #[must_use]
    fn routes() -> Vec<Route<Self::Store>>;

    /// Further routes that it answers. They are no endpoints of MLflow's that are built.
    #[must_use]
    fn constants() -> Vec<Route<Self::Store>> {
        Vec::new()
    }

    /// Its store. No request is sent.
    ///
    /// # Errors
    /// Something that it needs is not there.
    fn store(around: &Surroundings) -> Result<Self::Store, Failure>;

    /// Work that has to be done once before the first request.
    fn prepared(
        store: Self::Store,
        _around: &Surroundings,
    ) -> impl Future<Output = Result<Self::Store, Failure>> + Send {
        ready(Ok(store))
    }
}

/// A domain: one line of the list of all.
pub struct Domain {
    /// Its function in the stack.
    pub function: Function,
    /// Its endpoints.
    pub endpoints: fn() -> Vec<Endpoint>,
    /// Makes its router and the calls of its endpoints.
    pub mount: fn(Surroundings) -> BoxFuture<'static, Result<Mounted, Failure>>,
    /// Whether its endpoints call those of other domains, which are mounted before.
    pub calls_others: bool,
    /// Whether an answer that is too long for a Lambda is put into the bucket, and not refused.
    pub has_long_answers: bool,
}

/// A route, as lists of all routes have it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Method, in upper case.
    pub method: &'static str,
    /// Full paths, the canonical one first.
    pub paths: Vec<String>,
    /// The least that it needs.
    pub permission: Permission,
}

impl Endpoint {
    /// Its name: method and canonical path.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.paths.first().map_or("", String::as_str))
    }
}

/// A domain that can be asked.
pub struct Mounted {
    /// Answers HTTP requests.
    pub router: Router,
    /// Answers calls of other domains.
    pub calls: Calls,
}

impl Domain {
    /// The domain of an API.
    #[must_use]
    pub const fn of<A: Api + 'static>(function: Function) -> Self {
        Self::with_router(function, endpoints::<A>, |around| Box::pin(mounted::<A>(around)))
    }

    /// A domain whose router is made otherwise.
    #[must_use]
    pub const fn with_router(
        function: Function,
        endpoints: fn() -> Vec<Endpoint>,
        mount: fn(Surroundings) -> BoxFuture<'static, Result<Mounted, Failure>>,
    ) -> Self {
        Self { function, endpoints, mount, calls_others: false, has_long_answers: false }
    }

    /// The same domain, whose endpoints call those of others.
    #[must_use]
    pub const fn calling_others(self) -> Self {
        Self { calls_others: true, ..self }
    }

    /// The same domain, whose long answers go into the bucket.
    #[must_use]
    pub const fn with_long_answers(self) -> Self {
        Self { has_long_answers: true, ..self }
    }
}

/// The routes of an API, as lists of all routes have them.
#[must_use]
pub fn endpoints<A: Api>() -> Vec<Endpoint> {
    let endpoint = |route: Route<A::Store>| Endpoint {
        method: route.method,
        paths: route.full_paths(),
        permission: route.permission,
    };
    A::routes().into_iter().map(endpoint).collect()
}

async fn mounted<A: Api>(around: Surroundings) -> Result<Mounted, Failure> {
    let store = A::store(&around)?;
    let store = if around.is_only_called { store } else { A::prepared(store, &around).await? };
    let frame = Frame::guarded(store, around.authorizer.clone());
    let routes = A::routes().into_iter().chain(A::constants()).collect();
    Ok(Mounted { router: service::router(routes, &frame), calls: Calls::default().with(A::routes(), &frame) })
}
