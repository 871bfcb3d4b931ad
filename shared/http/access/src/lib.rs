//! What an endpoint needs, who is calling, and what the caller may touch.
//!
//! An endpoint names everything that it will touch ([`Needs`]), from the same parsed message that
//! it acts on. The router resolves the names to stored entities, asks the [`Authorizer`], and hands
//! the endpoint a [`Scope`]. Stores take [`Granted`] entities, and a scope is the only source of
//! them. So a handler cannot act on anything that its needs did not name.
//!
//! Ids made by this server hold their experiment, so resolving them takes no request. Any other id
//! takes one, as does the name of an experiment, and each hundred traces. An authorizer that looks
//! at permissions has all **guards** read with one request more. A guard is the entity that
//! permissions are kept for: an experiment, a scorer, a registered model. An [`Ask`] is an action
//! on a kind of entity under one guard. **Along** is what an authorizer has written together with a
//! creation (`docs/adr/0038-frame-of-access.md`).
//!
//! An entity of another workspace counts as missing. If workspaces are on, a request that writes or
//! lists also reads the item of its workspace. The answer is 404 if there is none, and 409 if it is
//! being deleted.
//!
//! An answer may **show** more than its own entity: the assessments of a trace, or the run that a
//! model version names. Whether the caller may see that is a need of its own ([`Needs::showing`]).
//! If it is refused, the request is not: its scope says what has to be left out ([`Scope::shows`]).
//! What a filter selects by, or an order sorts by, is needed like everything else, because found
//! rows tell of it.
//!
//! [`AdmitEverybody`] is for servers without users: in AWS the gateway's IAM authorizer decides who
//! gets here, on a laptop the loopback address does. The authorizer of users is in the crate
//! `permissions`.

mod along;
mod ask;
mod authorizer;
mod credentials;
mod decisions;
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
pub use needs::{MAX_NAMED, Need, Needs, Target};
pub use restriction::{Only, Restriction};
pub use scope::{Granted, Scope};
pub use workspaces::{Counted, HEADER as WORKSPACE_HEADER, InWorkspaces, day_of};
