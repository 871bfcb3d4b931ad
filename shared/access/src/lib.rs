//! What an endpoint needs, who is calling, and what the caller was allowed.
//!
//! An endpoint names everything that it will touch ([`Needs`]), from the same parsed message that it acts on. The router resolves what is
//! named to what is stored, asks the [`Authorizer`], and hands the endpoint a [`Scope`]. The stores take [`Granted`] entities, and a
//! scope is the only source of them: a handler cannot act on what its needs did not name.
//!
//! [`AdmitEverybody`] is for servers without users: in AWS the gateway's IAM authorizer decides who gets here, on a laptop the loopback
//! address does. The authorizer of users is in the crate `permissions`.

mod along;
mod ask;
mod authorizer;
mod credentials;
mod guard;
mod identity;
mod needs;
mod reach;
mod resolve;
mod restriction;
mod scope;

pub use along::Along;
pub use authorizer::{AdmitEverybody, Authorizer, Event, Sight, Visible};
pub use credentials::{Credentials, Sent};
pub use guard::{Ask, Guarded, Read, Stored};
pub use identity::{Arrived, Caller, Entry, GatewayIdentity, Identity, User, principal_of};
pub use needs::{Action, Need, Needs, Permission, Resource, Target};
pub use restriction::{Only, Restriction};
pub use scope::{Granted, Scope};
