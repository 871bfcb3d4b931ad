//! Domains: functions with routes.

use std::future::ready;

use access::Permission;
use axum::Router;
use futures::future::BoxFuture;
use service::{Calls, Frame, Route, Store};

use crate::{Failure, Function, Surroundings};

/// The HTTP API of a domain, as its crate declares it.
pub trait Api {
    /// The store that the endpoints act on.
    type Store: Store;

    /// Returns the routes.
    #[must_use]
    fn routes() -> Vec<Route<Self::Store>>;

    /// Returns further routes. They do not count as implemented endpoints of MLflow.
    #[must_use]
    fn constants() -> Vec<Route<Self::Store>> {
        Vec::new()
    }

    /// Creates the store, without sending a request.
    ///
    /// # Errors
    /// Returns an error if the environment lacks something that the store needs.
    fn store(around: &Surroundings) -> Result<Self::Store, Failure>;

    /// Does work that is required once before the first request.
    fn prepared(
        store: Self::Store,
        _around: &Surroundings,
    ) -> impl Future<Output = Result<Self::Store, Failure>> + Send {
        ready(Ok(store))
    }
}

/// A domain, as an entry in the list of all domains.
pub struct Domain {
    /// The function of the stack.
    pub function: Function,
    /// Returns the endpoints.
    pub endpoints: fn() -> Vec<Endpoint>,
    /// Creates the router and the calls of the endpoints.
    pub mount: fn(Surroundings) -> BoxFuture<'static, Result<Mounted, Failure>>,
    /// Whether its endpoints call endpoints of other domains. Those are mounted first.
    pub calls_others: bool,
    /// Whether a response that is too long for a Lambda is stored in the bucket instead of being
    /// rejected.
    pub has_long_answers: bool,
}

/// A route, as listed in overviews of all routes.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Method, in upper case.
    pub method: &'static str,
    /// Full paths, the canonical one first.
    pub paths: Vec<String>,
    /// The least permission that the endpoint needs.
    pub permission: Permission,
}

impl Endpoint {
    /// Returns the name of the endpoint: its method and canonical path.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.paths.first().map_or("", String::as_str))
    }
}

/// A mounted domain.
pub struct Mounted {
    /// Handles HTTP requests.
    pub router: Router,
    /// Handles calls of other domains.
    pub calls: Calls,
}

impl Domain {
    /// Creates a domain from an API.
    #[must_use]
    pub const fn of<A: Api + 'static>(function: Function) -> Self {
        Self::with_router(function, endpoints::<A>, |around| Box::pin(mounted::<A>(around)))
    }

    /// Creates a domain with a custom router.
    #[must_use]
    pub const fn with_router(
        function: Function,
        endpoints: fn() -> Vec<Endpoint>,
        mount: fn(Surroundings) -> BoxFuture<'static, Result<Mounted, Failure>>,
    ) -> Self {
        Self { function, endpoints, mount, calls_others: false, has_long_answers: false }
    }

    /// Declares that endpoints of the domain call those of other domains.
    #[must_use]
    pub const fn calling_others(self) -> Self {
        Self { calls_others: true, ..self }
    }

    /// Declares that long responses of the domain are stored in the bucket.
    #[must_use]
    pub const fn with_long_answers(self) -> Self {
        Self { has_long_answers: true, ..self }
    }
}

/// Returns the routes of an API, as listed in overviews of all routes.
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
