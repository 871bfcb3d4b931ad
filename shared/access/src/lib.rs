//! What an endpoint needs, who is calling, and what the caller was allowed.
//!
//! An endpoint names everything that it will touch ([`Needs`]), from the same parsed message that it acts on. The router resolves what is
//! named to what is stored, asks the [`Authorizer`], and hands the endpoint a [`Scope`]. The stores take [`Granted`] entities, and a
//! scope is the only source of them: a handler cannot act on what its needs did not name.
//!
//! An answer may hold more than what it is about: the assessments of a trace, or the run that a model version names. Whether the caller may
//! see that, too, is a need of its own ([`Needs::showing`]), which is asked along with the others. Where it is refused, the request is not: its
//! scope says what has to be left out ([`Scope::shows`]). What a filter selects by, or an order sorts by, is needed like everything else,
//! since rows that are found tell of it.
//!
//! [`AdmitEverybody`] is for servers without users: in AWS the gateway's IAM authorizer decides who gets here, on a laptop the loopback
//! address does. The authorizer of users is in the crate `permissions`.

mod along;
mod ask;
mod authorizer;
mod credentials;
mod guard;
mod identity;
mod kind;
mod needs;
mod reach;
mod resolve;
mod restriction;
mod scope;
mod workspaces;

pub use along::Along;
pub use authorizer::{AdmitEverybody, Authorizer, Event, Sight, Visible};
pub use credentials::{Credentials, Sent};
pub use guard::{Ask, Guarded, Read, Stored};
pub use identity::{Arrived, Caller, Entry, GatewayIdentity, Identity, User, principal_of};
pub use kind::{Action, Permission, Resource};
pub use needs::{Need, Needs, Target};
pub use restriction::{Only, Restriction};
pub use scope::{Granted, Scope};
pub use workspaces::{Counted, HEADER as WORKSPACE_HEADER, InWorkspaces, day_of};
