//! All writes of all functions, while the table throttles, loses responses, disconnects and
//! processes batches only partially.

mod archiving;
mod expiry;
mod model;
pub(crate) mod packing;
pub(crate) mod removal;
mod trace_invariants;
mod workspaces;
mod write_faults;
