//! Resolves host names.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::Semaphore;

/// Maximum number of names that are resolved at the same time. The system's resolver blocks a
/// thread, which cannot be cancelled, until a name server responds.
const MAX_LOOKUPS: usize = 16;

/// A resolver of host names. Tests replace the system's resolver.
pub trait Resolver: Send + Sync + 'static {
    /// Returns all addresses of a host name.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the operating system.
#[derive(Debug)]
pub struct SystemResolver {
    lookups: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self { lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)) }
    }
}

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let permit = Arc::clone(&self.lookups).acquire_owned().await.map_err(io::Error::other)?;
            let host = host.to_owned();
            let lookup = tokio::task::spawn_blocking(move || {
                let addresses =
                    (host.as_str(), 0).to_socket_addrs().map(|found| found.map(|found| found.ip()).collect());
                drop(permit);
                addresses
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}
