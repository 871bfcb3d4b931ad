use std::io;
use std::net::SocketAddr;

use aws_sdk_dynamodb::Client;
use dynoxide::Database;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::{Error, client_for_endpoint};

/// The engine on a loopback port. Dropped, it stops as well, but nobody waits for it.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), String>>,
}

impl Server {
    pub(crate) async fn start(database: Database, address: SocketAddr) -> Result<Self, Error> {
        // The engine checks no signatures: whoever reaches the port owns the data.
        if !address.ip().is_loopback() {
            let refusal = format!("{address} is not a loopback address");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, refusal).into());
        }
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(dynoxide::server::serve_with_shutdown(listener, database, async {
            // An error means that the handle was dropped, which stops the server too.
            let _ = stopped.await;
        }));
        Ok(Self { address, stop, task })
    }

    /// The address it listens on, with the port that was chosen if port 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address as an endpoint of the AWS SDK.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A client of this server.
    #[must_use]
    pub fn client(&self) -> Client {
        client_for_endpoint(&self.url())
    }

    /// Accepts no more connections and returns when the requests under way are answered.
    pub async fn shutdown(self) -> Result<(), Error> {
        // An error means that it has stopped already; why, the task says.
        let _ = self.stop.send(());
        self.task.await?.map_err(Error::Server)
    }
}
