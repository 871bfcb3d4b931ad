//! All writes of all functions, while the table throttles, loses responses, disconnects and
//! processes batches only partially.

pub(crate) mod archiving;
pub(crate) mod expiry;
mod model;
pub(crate) mod packing;
pub(crate) mod removal;
mod trace_invariants;
mod workspaces;
pub(crate) mod write_faults;
