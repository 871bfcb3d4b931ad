//! Every write of all functions while the table throttles, loses answers, breaks off and leaves batches half done.

mod expiry;
mod model;
mod packing;
mod removal;
mod sweep;
mod whole;
mod workspaces;
