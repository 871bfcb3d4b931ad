//! A simulated receiver of events.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use deliver::{Message, SendFailure, Sender, SenderResponse};
use futures::future::BoxFuture;
use runtime::clock::{now_ms, sleep};
use tokio::sync::Notify;

/// How a receiver behaves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Behaviour {
    /// Responds with 200.
    #[default]
    Accepts,
    /// Responds with a status, and with `Retry-After` in seconds.
    Responds(u16, Option<u64>),
    /// Sends no response, so that the attempt times out.
    IsSilent,
    /// Sends no response. The attempt fails when the test calls `World::end_hanging`.
    Hangs,
}

/// A request that a receiver has received.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) url: String,
    pub(crate) body: String,
    pub(crate) headers: HashMap<&'static str, String>,
    pub(crate) at: i64,
}

/// All receivers, by URL.
#[derive(Debug, Default)]
pub(crate) struct Receivers {
    behaviours: Mutex<HashMap<String, Behaviour>>,
    received: Mutex<Vec<Received>>,
    pub(crate) end_hanging: Notify,
}

impl Receivers {
    pub(crate) fn set(&self, url: &str, behaviour: Behaviour) {
        self.behaviours.lock().unwrap().insert(url.to_owned(), behaviour);
    }

    /// Returns all requests to a URL, including those that were not accepted.
    pub(crate) fn received(&self, url: &str) -> Vec<Received> {
        self.received.lock().unwrap().iter().filter(|received| received.url == url).cloned().collect()
    }

    pub(crate) fn bodies(&self, url: &str) -> Vec<String> {
        self.received(url).into_iter().map(|received| received.body).collect()
    }
}

impl Sender for Receivers {
    fn send<'a>(&'a self, message: Message<'a>) -> BoxFuture<'a, Result<SenderResponse, SendFailure>> {
        Box::pin(async move {
            let behaviour = self.behaviours.lock().unwrap().get(message.url).copied().unwrap_or_default();
            self.received.lock().unwrap().push(Received {
                url: message.url.to_owned(),
                body: message.body.to_owned(),
                headers: message.headers.into_iter().collect(),
                at: now_ms(),
            });
            let (status, retry_after) = match behaviour {
                Behaviour::Accepts => (200, None),
                Behaviour::Responds(status, retry_after) => (status, retry_after.map(Duration::from_secs)),
                Behaviour::Hangs => {
                    self.end_hanging.notified().await;
                    return Err(SendFailure::Unresponsive("timed out".to_owned()));
                }
                Behaviour::IsSilent => {
                    sleep(message.timeout).await;
                    return Err(SendFailure::Unresponsive("timed out".to_owned()));
                }
            };
            Ok(SenderResponse { status, retry_after, body: "é".repeat(5_000).into_bytes() })
        })
    }

    fn shows_responses(&self) -> bool {
        true
    }
}
