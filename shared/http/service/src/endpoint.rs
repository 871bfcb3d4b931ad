//! Endpoints: each parses its input, declares its needs, and acts.

use std::num::NonZero;
use std::sync::{Arc, LazyLock};

use access::{Authorizer, Identity, Needs, Permission, RequestHead, Scope};
use mlflow_api::{Error, Request, Result};
use table::Table;
use tokio::sync::Semaphore;

use crate::body_memory::BodyMemory;
use crate::endpoint_response::{EndpointResponse, IntoEndpointResponse};
use crate::incoming_request::{BodyStream, IncomingRequest};
use crate::request_line::note_caller;

/// Minimum size of bodies that are parsed on another thread, in bytes. Parsing them on an async
/// worker would delay the other requests of that worker.
const MIN_BACKGROUND_PARSE_BYTES: usize = 256 << 10;

/// Limit on bodies that are parsed concurrently, because parsing one may take some hundred MB and
/// keeps a processor busy.
static PARSE_PERMITS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(0, NonZero::get).max(4)));

/// The store of a function.
pub trait DomainStore: Clone + Send + Sync + 'static {
    /// Returns the table in which the router looks up the entities that a request names.
    fn table(&self) -> &Table;

    /// Returns the store for one request. A store whose transactions create, rename or delete
    /// guarded entities takes the writes that the authorizer adds to these transactions from the
    /// scope ([`Scope::authorizer_writes`]), such as the creator's grant. Endpoints only ever get
    /// this store.
    #[must_use]
    fn for_request(&self, scope: &Scope) -> Self;

    /// Removes expired entities from a scope, even if they are still in the table. Applied to all
    /// requests.
    fn hide_expired(&self, scope: Scope) -> impl Future<Output = Result<Scope>> + Send {
        std::future::ready(Ok(scope))
    }
}

/// A request to an endpoint. The router authenticates the caller, parses the endpoint from the
/// request, authorizes its needs, and lets it act.
pub trait Endpoint: Sized + Send + 'static {
    /// The store of the function.
    type Store: DomainStore;
    /// The response of the endpoint.
    type Answer: IntoEndpointResponse;

    /// Parses the request. Fields are checked in MLflow's order, and ids are converted to their
    /// types.
    ///
    /// # Errors
    /// MLflow's errors for requests that are rejected without reading stored data.
    fn read(request: &Request) -> Result<Self>;

    /// Returns all entities that [`Endpoint::act`] touches.
    fn needs(&self) -> Needs;

    /// Performs the request. The scope hands out the entities that the needs named, and no others.
    fn act(self, scope: &Scope, store: &Self::Store) -> impl Future<Output = Result<Self::Answer>> + Send;
}

/// A request whose body may be too large for memory. It is like an [`Endpoint`], but receives the
/// body as a stream, after the caller has been authenticated and authorized.
pub trait Upload: Sized + Send + 'static {
    /// The store of the function.
    type Store: DomainStore;
    /// The response of the endpoint.
    type Answer: IntoEndpointResponse;

    /// Parses the request without its body.
    ///
    /// # Errors
    /// MLflow's errors for requests that are rejected without reading stored data.
    fn read(request: &Request) -> Result<Self>;

    /// Returns all entities that [`Upload::act`] touches.
    fn needs(&self) -> Needs;

    /// Performs the request. A body that ends too early yields an error in the stream.
    fn act(
        self,
        scope: &Scope,
        store: &Self::Store,
        body: BodyStream,
    ) -> impl Future<Output = Result<Self::Answer>> + Send;
}

/// The parts that all requests to a function share.
#[derive(Clone)]
pub struct FunctionContext<S> {
    pub(crate) store: S,
    pub(crate) authorizer: Arc<dyn Authorizer>,
}

impl<S: DomainStore> FunctionContext<S> {
    /// Creates the context of a function, with the authorizer that decides what callers may do.
    pub fn new(store: S, authorizer: Arc<dyn Authorizer>) -> Self {
        Self { store, authorizer }
    }
}

/// Handles a request to an endpoint, given its headers and its body.
pub(crate) async fn serve<E: Endpoint>(
    frame: FunctionContext<E::Store>,
    permission: Permission,
    incoming: IncomingRequest,
) -> Result<EndpointResponse> {
    let identity = frame.authenticate(permission, &incoming.head).await?;
    let (request, room) = incoming.read_body().await?;
    call_endpoint::<E>(frame, permission, identity, request, room).await
}

/// Handles a call of an endpoint, given an authenticated caller and a complete request.
pub(crate) async fn call<E: Endpoint>(
    frame: FunctionContext<E::Store>,
    permission: Permission,
    identity: Identity,
    request: Request,
) -> Result<EndpointResponse> {
    call_endpoint::<E>(frame, permission, identity, request, BodyMemory::none()).await
}

async fn call_endpoint<E: Endpoint>(
    frame: FunctionContext<E::Store>,
    permission: Permission,
    identity: Identity,
    request: Request,
    room: BodyMemory,
) -> Result<EndpointResponse> {
    let (endpoint, _room) = read::<E>(request, room).await?;
    let scope = frame.enter(identity, permission, &endpoint.needs()).await?;
    endpoint.act(&scope, &frame.store.for_request(&scope)).await?.into_answer()
}

/// Handles a request to an endpoint that takes its body as a stream.
pub(crate) async fn serve_upload<E: Upload>(
    frame: FunctionContext<E::Store>,
    permission: Permission,
    incoming: IncomingRequest,
) -> Result<EndpointResponse> {
    let identity = frame.authenticate(permission, &incoming.head).await?;
    let endpoint = E::read(&incoming.request)?;
    let scope = frame.enter(identity, permission, &endpoint.needs()).await?;
    endpoint.act(&scope, &frame.store.for_request(&scope), incoming.stream()?).await?.into_answer()
}

impl<S: DomainStore> FunctionContext<S> {
    /// Authenticates the sender of a request to a route with this permission. Open routes skip
    /// this.
    pub(crate) async fn authenticate(&self, permission: Permission, arrived: &RequestHead) -> Result<Identity> {
        match permission {
            Permission::Open => Ok(Identity::anonymous()),
            _ => self.authorizer.authenticate(arrived).await.inspect(|identity| note_caller(&identity.caller)),
        }
    }

    /// Authorizes a request to a route with a constant response. Such a route has no needs, so its
    /// permission must not name an entity.
    pub(crate) async fn authorize_constant(&self, permission: Permission, arrived: &RequestHead) -> Result<()> {
        let identity = self.authenticate(permission, arrived).await?;
        self.enter(identity, permission, &Needs::nothing()).await.map(drop)
    }

    async fn enter(&self, identity: Identity, permission: Permission, needs: &Needs) -> Result<Scope> {
        if !needs.include(permission) {
            // An endpoint whose needs do not include the permission of its route is a bug. Without
            // this check, the endpoint would be open to callers who lack that permission.
            return Err(Error::internal(format!(
                "the route requires {permission:?}, but the endpoint needs {needs:?}"
            )));
        }
        let scope = Scope::enter(&self.authorizer, identity, self.store.table(), needs).await?;
        self.store.hide_expired(scope).await
    }
}

/// Parses an endpoint from a request, and returns it with the memory reservation.
async fn read<E: Endpoint>(request: Request, room: BodyMemory) -> Result<(E, BodyMemory)> {
    // Compressed bodies are always parsed in the background, because they may expand a
    // thousandfold.
    if request.body.len() < MIN_BACKGROUND_PARSE_BYTES && request.header("content-encoding").is_none() {
        return Ok((E::read(&request)?, room));
    }
    let turn = PARSE_PERMITS.acquire().await.map_err(Error::internal)?;
    let read = move || {
        // The permit and the reservation are held until parsing ends, even if the client
        // disconnects.
        let _turn = turn;
        Ok((E::read(&request)?, room))
    };
    runtime::clock::aside(read).await.map_err(Error::internal)?
}
