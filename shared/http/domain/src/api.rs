//! Domains: functions with routes.

use std::future::ready;

use access::Permission;
use axum::Router;
use futures::future::BoxFuture;
use service::{DomainStore, FunctionContext, InternalCalls, Route};

use crate::{Environment, Function, MountFailure};

/// The HTTP API of a domain, as its crate declares it.
pub trait DomainApi {
    /// The store that the endpoints act on.
    type Store: DomainStore;

    /// Returns the routes.
    #[must_use]
    fn routes() -> Vec<Route<Self::Store>>;

    /// Returns routes that are served in addition, but do not count as implemented endpoints of
    /// MLflow.
    #[must_use]
    fn constants() -> Vec<Route<Self::Store>> {
        Vec::new()
    }

    /// Creates the store, without sending a request.
    ///
    /// # Errors
    /// Returns an error if the environment lacks something that the store needs.
    fn store(around: &Environment) -> Result<Self::Store, MountFailure>;

    /// Prepares the store for the first request, for example by creating the default experiment.
    /// Called once, when the domain is mounted.
    fn prepare(
        store: Self::Store,
        _around: &Environment,
    ) -> impl Future<Output = Result<Self::Store, MountFailure>> + Send {
        ready(Ok(store))
    }
}

/// A domain, as an entry in the list of all domains.
pub struct Domain {
    /// The function of the stack that serves the domain.
    pub function: Function,
    /// Returns the endpoints of the domain, for overviews.
    pub endpoints: fn() -> Vec<EndpointInfo>,
    /// Returns the endpoints of MLflow that the domain does not implement, but that have a route.
    pub unavailable: fn() -> Vec<UnavailableEndpoint>,
    /// Creates the router for HTTP requests, and the handlers of calls from other domains.
    pub mount: fn(Environment) -> BoxFuture<'static, Result<MountedDomain, MountFailure>>,
    /// Whether endpoints of the domain call endpoints of other domains. The other domains are
    /// mounted first.
    pub calls_others: bool,
    /// Whether a response that is too long for a Lambda is stored in the bucket instead of being
    /// rejected.
    pub offloads_responses: bool,
}

/// A route, as listed in overviews of all routes.
#[derive(Clone, Debug)]
pub struct EndpointInfo {
    /// Method, in upper case.
    pub method: &'static str,
    /// Full paths, the canonical one first.
    pub paths: Vec<String>,
    /// The least permission that the endpoint needs.
    pub permission: Permission,
}

impl EndpointInfo {
    /// Returns the name of the endpoint: its method and canonical path.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.paths.first().map_or("", String::as_str))
    }
}

/// An endpoint of MLflow that is not implemented, but has a route: it responds with a refusal or an
/// empty result, instead of the 404 of an unknown path.
#[derive(Clone, Debug)]
pub struct UnavailableEndpoint {
    /// Method, in upper case.
    pub method: &'static str,
    /// Full paths, the canonical one first.
    pub paths: Vec<String>,
    /// Why the endpoint is not implemented. `None` if it returns an empty result, so that the user
    /// interface shows no error.
    pub reason: Option<&'static str>,
}

/// A mounted domain.
pub struct MountedDomain {
    /// Handles HTTP requests.
    pub router: Router,
    /// Handlers of calls from other domains.
    pub calls: InternalCalls,
}

impl Domain {
    /// Creates a domain from an API.
    #[must_use]
    pub const fn of<A: DomainApi + 'static>(function: Function) -> Self {
        let domain = Self::with_router(function, endpoints::<A>, |around| Box::pin(mount_api::<A>(around)));
        Self { unavailable: unavailable::<A>, ..domain }
    }

    /// Creates a domain with a custom router.
    #[must_use]
    pub const fn with_router(
        function: Function,
        endpoints: fn() -> Vec<EndpointInfo>,
        mount: fn(Environment) -> BoxFuture<'static, Result<MountedDomain, MountFailure>>,
    ) -> Self {
        Self { function, endpoints, unavailable: Vec::new, mount, calls_others: false, offloads_responses: false }
    }

    /// Declares that endpoints of the domain call those of other domains.
    #[must_use]
    pub const fn calling_others(self) -> Self {
        Self { calls_others: true, ..self }
    }

    /// Declares that long responses of the domain are stored in the bucket.
    #[must_use]
    pub const fn offloading_responses(self) -> Self {
        Self { offloads_responses: true, ..self }
    }
}

/// Returns the routes of an API, as listed in overviews of all routes.
#[must_use]
pub fn endpoints<A: DomainApi>() -> Vec<EndpointInfo> {
    let endpoint = |route: Route<A::Store>| EndpointInfo {
        method: route.method,
        paths: route.full_paths(),
        permission: route.permission,
    };
    A::routes().into_iter().map(endpoint).collect()
}

/// Returns the endpoints that an API does not implement, but has routes for.
fn unavailable<A: DomainApi>() -> Vec<UnavailableEndpoint> {
    let endpoint = |route: Route<A::Store>| UnavailableEndpoint {
        method: route.method,
        paths: route.full_paths(),
        reason: route.refusal.map(|refusal| refusal.reason),
    };
    A::constants().into_iter().map(endpoint).collect()
}

async fn mount_api<A: DomainApi>(around: Environment) -> Result<MountedDomain, MountFailure> {
    let store = A::store(&around)?;
    let store = if around.is_only_called { store } else { A::prepare(store, &around).await? };
    let frame = FunctionContext::new(store, around.authorizer.clone());
    let routes = A::routes().into_iter().chain(A::constants()).collect();
    Ok(MountedDomain {
        router: service::router(routes, &frame),
        calls: InternalCalls::default().with(A::routes(), &frame),
    })
}
