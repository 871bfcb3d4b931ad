//! Every write of all functions while the table throttles, loses answers, breaks off and leaves batches half done.

mod expiry;
mod model;
pub(crate) mod packing;
pub(crate) mod removal;
mod sweep;
mod whole;
mod workspaces;
