//! The housekeeper of the stack. Once an hour a schedule calls this function. It removes what the
//! policies keep no longer: deleted entities, traces, and histories of metrics. `shared/storage/retention`
//! does the work.
//!
//! It is a function of its own, since it may remove what no other function may: any item of the
//! table, and any file. No request reaches it.

mod declaration;

use std::time::Duration;

pub use declaration::FUNCTION;

/// How long a call goes on at most. The next one continues. The function has a minute more, for
/// requests that are under way.
pub const SLICE: Duration = Duration::from_mins(4);
