//! Requests to addresses that users choose, such as those of webhooks.
//!
//! A user who chooses an address must not reach servers that only this process can reach: other
//! services of the machine, servers of the private network, and the servers at which a cloud
//! provides credentials to its machines. Checking the URL alone is not sufficient, because its name
//! may resolve to another address when the request is sent. [`OutboundClient`] therefore resolves
//! the name itself, once per attempt, checks every address, and connects to one that it has
//! checked. It follows no redirect, uses no proxy, and bounds the time of an attempt and the size
//! of a response.
//!
//! Begin reading with `address_rules.rs`, which lists the refused addresses, and `client.rs`.
//!
//! This is a crate of its own because functions that send such requests share no other code, and
//! because its dependencies are needed by no other function.

mod address_rules;
mod client;
mod error;
mod exchange;
mod message;
mod resolver;
mod tls;
mod url;

pub use address_rules::RefusedAddress;
pub use client::OutboundClient;
pub use error::OutboundError;
pub use message::{MAX_BODY_BYTES, OutboundRequest, OutboundResponse, OutboundTimeouts};
pub use resolver::{Resolver, SystemResolver};
pub use url::{MAX_URL_BYTES, OutboundPolicy, OutboundUrl, Schemes, UrlError};
