//! The housekeeper of the stack. A schedule invokes this function once per hour. It permanently
//! deletes data that the retention policies no longer keep: deleted entities, traces and metric
//! histories. It also archives traces, completes deletions of MCP servers and skills that were
//! interrupted, and deletes files of uploads that were not completed. The crate
//! `shared/storage/retention` does the work.
//!
//! It is a separate function because its permissions exceed those of every other function: it may
//! delete any item of the table, and any file. It cannot be reached by clients' requests.

mod declaration;

use std::time::Duration;

pub use declaration::FUNCTION;

/// Maximum duration of a call. The next call continues where this one stopped. The function's
/// timeout is a minute longer, so that requests in flight can complete.
pub const MAX_DURATION: Duration = Duration::from_mins(4);
