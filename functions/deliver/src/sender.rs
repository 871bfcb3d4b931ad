//! Sends requests to receivers.

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use outbound::{OutboundClient, OutboundRequest, OutboundTimeouts, OutboundUrl};

/// Timeout for resolving a name and connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A request to a receiver.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// The webhook's URL.
    pub url: &'a str,
    /// Names and values of the headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: &'a str,
    /// Timeout of the whole attempt.
    pub timeout: Duration,
}

/// A receiver's response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderResponse {
    /// The status.
    pub status: u16,
    /// The delay that the receiver requests before the next attempt.
    pub retry_after: Option<Duration>,
    /// The beginning of the body.
    pub body: Vec<u8>,
}

/// The reason why there was no response. The texts contain no part of the URL or the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendFailure {
    /// The receiver could not be reached, or did not respond in time.
    Unresponsive(String),
    /// The address is not allowed, so no attempt can succeed.
    Refused(String),
    /// The exchange failed for another reason. Another attempt may succeed.
    Broken(String),
}

/// An interface for sending requests to receivers.
pub trait Sender: Debug + Send + Sync {
    /// Sends a request once.
    ///
    /// # Errors
    /// Returns an error if there is no response.
    fn send<'a>(&'a self, message: Message<'a>) -> BoxFuture<'a, Result<SenderResponse, SendFailure>>;

    /// Checks whether responses may be shown to the administrator who tests a webhook. Responses of
    /// private addresses may not.
    fn shows_responses(&self) -> bool;
}

/// A sender that sends requests over the network.
#[derive(Clone, Debug)]
pub struct OutboundSender(pub OutboundClient);

impl Sender for OutboundSender {
    fn send<'a>(&'a self, message: Message<'a>) -> BoxFuture<'a, Result<SenderResponse, SendFailure>> {
        Box::pin(async move {
            let url = OutboundUrl::parse(message.url, self.0.policy())
                .map_err(|error| SendFailure::Refused(error.to_string()))?;
            let mut headers = HeaderMap::new();
            for (name, value) in message.headers {
                let value = HeaderValue::from_str(&value).map_err(|error| SendFailure::Broken(error.to_string()))?;
                headers.insert(HeaderName::from_static(name), value);
            }
            let request = OutboundRequest {
                method: Method::POST,
                url: &url,
                headers,
                body: Bytes::copy_from_slice(message.body.as_bytes()),
                timeouts: OutboundTimeouts { connect: CONNECT_TIMEOUT.min(message.timeout), total: message.timeout },
            };
            let response = self.0.send(request).await.map_err(|error| {
                let cause = error.to_string();
                if error.is_refusal() {
                    SendFailure::Refused(cause)
                } else if error.is_unresponsive() {
                    SendFailure::Unresponsive(cause)
                } else {
                    SendFailure::Broken(cause)
                }
            })?;
            Ok(SenderResponse {
                status: response.status,
                retry_after: response.retry_after(SystemTime::now()),
                body: response.body.to_vec(),
            })
        })
    }

    fn shows_responses(&self) -> bool {
        !self.0.policy().allow_private_peers
    }
}
