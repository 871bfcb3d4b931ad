//! All writes of all functions, while the table throttles, loses responses, disconnects and
//! processes batches only partially.

mod expiry;
mod model;
pub(crate) mod packing;
pub(crate) mod removal;
mod sweep;
mod whole;
mod workspaces;
