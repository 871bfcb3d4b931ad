//! The ledger of what calls cost: a page of the documents that a test writes, and that it compares with what was committed. A call
//! that got dearer than its budget fails the test; any other change shows in the page's diff. For tests only.
//!
//! Each call is metered twice: **cold**, as the first call of a process, which has leased and cached nothing, and **warm**, as another
//! one of the same process. Both have a budget of requests, write units and read units; no row can be added without.

mod bench;
mod cost;
mod page;

pub use bench::Bench;
pub use cost::{AllIn, Budget, budget};
pub use page::{Ledger, Meters, Section};
