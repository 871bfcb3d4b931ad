//! What a domain is: one function of the stack, its routes, and how a process mounts them.
//!
//! Each function crate says so once, in a constant [`Domain`]. The crate `domains` has the list of all of them; the
//! local server, the template, the pages of the documentation and the walks of the tests follow from that list.
//! A Lambda mounts one domain ([`lambda::run`]), the local server mounts all ([`mount`]); the code of a domain
//! cannot tell which.

mod api;
mod function;
pub mod lambda;
mod mount;
mod surroundings;

pub use api::{Api, Domain, Endpoint, Mounted, endpoints};
pub use function::{BucketRight, Function, Indexes, Setting, TableActions, TableRights};
pub use mount::mount;
pub use surroundings::{Surroundings, UiFiles};

/// Why a domain cannot be mounted.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
