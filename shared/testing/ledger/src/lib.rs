//! The ledger of costs: a page of the documents that a test writes and compares with the committed
//! one. A call that got more expensive than its budget fails the test. Any other change shows in
//! the page's diff. For tests only.
//!
//! Each call is metered twice. **Cold** is the first call of a process, which has leased and cached
//! nothing. **Warm** is a further call of the same process. Both have a budget of requests, write
//! units and read units. No row can be added without.

mod bench;
mod cost;
mod page;

pub use bench::Bench;
pub use cost::{AllIn, Budget, budget};
pub use page::{Ledger, Meters, Section};
