//! The housekeeper of the stack. A schedule invokes this function once per hour. It deletes what
//! the policies no longer keep: deleted entities, traces and metric histories. The work is done by
//! `shared/storage/retention`.
//!
//! It is a function of its own because its permissions exceed those of every other function: it may
//! delete any item of the table, and any file. It cannot be reached by requests.

mod declaration;

use std::time::Duration;

pub use declaration::FUNCTION;

/// Maximum duration of a call. The next call continues. The function's timeout is a minute longer,
/// for requests that are in flight.
pub const MAX_DURATION: Duration = Duration::from_mins(4);
