//! Endpoints: each reads its input from a request, names its needs, and acts.

use std::num::NonZero;
use std::sync::{Arc, LazyLock};

use access::{Arrived, Authorizer, Identity, Needs, Permission, Scope};
use mlflow_api::{Error, Request, Result};
use table::Table;
use tokio::sync::Semaphore;

use crate::answer::{Answer, IntoAnswer};
use crate::incoming::{BodyStream, Incoming};
use crate::request_line::note_caller;
use crate::room::BodyRoom;

/// Bodies from this size on, in bytes, are read where that holds nobody up: an async worker has others to serve.
const READ_ASIDE: usize = 256 << 10;

/// Bodies that are read there at a time. One may take some hundred MB while it is read, and keeps a processor busy.
static TURNS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(0, NonZero::get).max(4)));

/// The store of a function.
pub trait Store: Clone + Send + Sync + 'static {
    /// The table, in which the router looks up the entities that a request names.
    fn table(&self) -> &Table;

    /// Returns the store for one request. A store whose transactions create, rename or delete guarded
    /// entities takes the writes that the authorizer adds to them from the scope
    /// ([`Scope::along`]), such as the creator's grant. Endpoints only ever get this store.
    #[must_use]
    fn for_request(&self, scope: &Scope) -> Self;

    /// Leaves out of a scope the expired entities, although they are still in the table. All
    /// requests go through this.
    fn only_shown(&self, scope: Scope) -> impl Future<Output = Result<Scope>> + Send {
        std::future::ready(Ok(scope))
    }
}

/// One request to an endpoint. The router authenticates the caller, reads the endpoint from the
/// request, authorizes its needs, and lets it act.
pub trait Endpoint: Sized + Send + 'static {
    /// The store of the function.
    type Store: Store;
    /// Its answer.
    type Answer: IntoAnswer;

    /// Reads the request: fields and checks in MLflow's order. From here on, ids are types.
    ///
    /// # Errors
    /// MLflow's, for a request that it refuses without looking at what is stored.
    fn read(request: &Request) -> Result<Self>;

    /// Everything that [`Endpoint::act`] touches.
    fn needs(&self) -> Needs;

    /// Does it. The scope hands out the entities that the needs named, and no others.
    fn act(self, scope: &Scope, store: &Self::Store) -> impl Future<Output = Result<Self::Answer>> + Send;
}

/// One request whose body may be longer than memory. It is an [`Endpoint`] that gets the body as a
/// stream, once the caller is known and allowed to send it.
pub trait Upload: Sized + Send + 'static {
    /// The store of the function.
    type Store: Store;
    /// Its answer.
    type Answer: IntoAnswer;

    /// Reads the request without its body.
    ///
    /// # Errors
    /// As [`Endpoint::read`].
    fn read(request: &Request) -> Result<Self>;

    /// Everything that [`Upload::act`] touches.
    fn needs(&self) -> Needs;

    /// Does it. A body that ends too early is an error in the stream.
    fn act(
        self,
        scope: &Scope,
        store: &Self::Store,
        body: BodyStream,
    ) -> impl Future<Output = Result<Self::Answer>> + Send;
}

/// The parts that all requests to a function share.
#[derive(Clone)]
pub struct Frame<S> {
    pub(crate) store: S,
    pub(crate) authorizer: Arc<dyn Authorizer>,
}

impl<S: Store> Frame<S> {
    /// A frame in which this authorizer decides what callers may do. There is no frame without one.
    pub fn guarded(store: S, authorizer: Arc<dyn Authorizer>) -> Self {
        Self { store, authorizer }
    }
}

/// The way of a request through an endpoint, from its headers and its body on.
pub(crate) async fn serve<E: Endpoint>(
    frame: Frame<E::Store>,
    permission: Permission,
    incoming: Incoming,
) -> Result<Answer> {
    let identity = frame.authenticate(permission, &incoming.arrived).await?;
    let (request, room) = incoming.whole().await?;
    answer::<E>(frame, permission, identity, request, room).await
}

/// The way from a caller who is known, and the whole of the request.
pub(crate) async fn call<E: Endpoint>(
    frame: Frame<E::Store>,
    permission: Permission,
    identity: Identity,
    request: Request,
) -> Result<Answer> {
    answer::<E>(frame, permission, identity, request, BodyRoom::none()).await
}

async fn answer<E: Endpoint>(
    frame: Frame<E::Store>,
    permission: Permission,
    identity: Identity,
    request: Request,
    room: BodyRoom,
) -> Result<Answer> {
    let (endpoint, _room) = read::<E>(request, room).await?;
    let scope = frame.enter(identity, permission, &endpoint.needs()).await?;
    endpoint.act(&scope, &frame.store.for_request(&scope)).await?.into_answer()
}

/// The same for an endpoint that takes its body as a stream.
pub(crate) async fn serve_upload<E: Upload>(
    frame: Frame<E::Store>,
    permission: Permission,
    incoming: Incoming,
) -> Result<Answer> {
    let identity = frame.authenticate(permission, &incoming.arrived).await?;
    let endpoint = E::read(&incoming.request)?;
    let scope = frame.enter(identity, permission, &endpoint.needs()).await?;
    endpoint.act(&scope, &frame.store.for_request(&scope), incoming.stream()?).await?.into_answer()
}

impl<S: Store> Frame<S> {
    /// The sender of a request to a route with this permission. An open route does not ask for one.
    pub(crate) async fn authenticate(&self, permission: Permission, arrived: &Arrived) -> Result<Identity> {
        match permission {
            Permission::Open => Ok(Identity::somebody()),
            _ => self.authorizer.authenticate(arrived).await.inspect(|identity| note_caller(&identity.caller)),
        }
    }

    /// Whether a route with this permission, which reads nothing, may answer.
    pub(crate) async fn constant(&self, permission: Permission, arrived: &Arrived) -> Result<()> {
        let identity = self.authenticate(permission, arrived).await?;
        self.enter(identity, permission, &Needs::nothing()).await.map(drop)
    }

    async fn enter(&self, identity: Identity, permission: Permission, needs: &Needs) -> Result<Scope> {
        if !needs.include(permission) {
            // A defect: an endpoint that nothing guards would be open to everybody.
            return Err(Error::internal(format!("the route says {permission:?}, the endpoint {needs:?}")));
        }
        let scope = Scope::enter(&self.authorizer, identity, self.store.table(), needs).await?;
        self.store.only_shown(scope).await
    }
}

/// Reads an endpoint from a request, and hands its room back.
async fn read<E: Endpoint>(request: Request, room: BodyRoom) -> Result<(E, BodyRoom)> {
    // A compressed body may become a thousand times as long.
    if request.body.len() < READ_ASIDE && request.header("content-encoding").is_none() {
        return Ok((E::read(&request)?, room));
    }
    let turn = TURNS.acquire().await.map_err(Error::internal)?;
    let read = move || {
        // It has its turn and its room until it is read, though its client be gone.
        let _turn = turn;
        Ok((E::read(&request)?, room))
    };
    clock::aside(read).await.map_err(Error::internal)?
}
