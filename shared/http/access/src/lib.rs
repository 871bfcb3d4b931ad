//! Access control for endpoints: what a request needs, who the caller is, and which entities the
//! caller may touch.
//!
//! An endpoint names every entity that it will touch ([`Needs`]). The needs are derived from the
//! same parsed message that the endpoint acts on. The router resolves the needs to stored entities,
//! consults the [`Authorizer`], and passes the endpoint a [`Scope`]. Stores accept only [`Granted`]
//! entities, and a scope is the only source of them. A handler therefore cannot act on an entity
//! that its needs did not name.
//!
//! Ids that this server generates contain the id of their experiment, so resolving them takes no
//! request. Every other run or logged model id takes one request, and so does every experiment
//! name. Traces take one request per 100. An authorizer that checks permissions reads all
//! **guards** with one more request. A guard is the entity that permissions are stored for: an
//! experiment, a scorer or a registered model. An [`AccessCheck`] is an action on a kind of entity
//! under one guard. [`AuthorizerWrites`] holds the writes that the authorizer adds to the request's
//! transaction (`docs/adr/0038-frame-of-access.md`).
//!
//! An entity of another workspace counts as missing. If workspaces are enabled, a request that
//! writes or lists also reads the item of its workspace. The response is 404 if the workspace does
//! not exist, and 409 if it is being deleted.
//!
//! A response may **show** more than the entity it is about, for example the assessments of a
//! trace, or the run that a model version refers to. Whether the caller may see these is a separate
//! need ([`Needs::showing`]). If it is refused, the request still succeeds, and the scope reports
//! what has to be left out ([`Scope::shows`]). Entities that a filter selects by, or that a search
//! sorts by, are ordinary needs, because the rows that are found reveal something about them.
//!
//! [`AllowAll`] is for servers without users. In AWS, the gateway's IAM authorizer decides
//! which callers are admitted. On a laptop, the server accepts connections from the loopback
//! address only. The authorizer for users is in the crate `permissions`.

mod action;
mod authorizer;
mod authorizer_writes;
mod credentials;
mod decisions;
mod guard;
mod guard_lookup;
mod identity;
mod needs;
mod restriction;
mod restriction_rules;
mod scope;
mod target_resolution;
mod workspaces;

pub use action::{Action, Permission, Resource};
pub use authorizer::{AllowAll, Authorizer, EntityEvent, Visibility, VisibilityRules};
pub use authorizer_writes::AuthorizerWrites;
pub use credentials::{Credentials, RequestCredentials};
pub use guard::{AccessCheck, AuthorizerItems, Guard, StoredGuard};
pub use identity::{Caller, ConnectionInfo, GatewayIdentity, Identity, RequestHead, User, principal_of};
pub use needs::{MAX_NAMED_ENTITIES, Need, Needs, Target};
pub use restriction::{AllowedActions, Restriction};
pub use scope::{Granted, Scope};
pub use workspaces::{HEADER as WORKSPACE_HEADER, WorkspaceAuthorizer};
