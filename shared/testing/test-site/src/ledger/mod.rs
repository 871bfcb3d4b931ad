//! A ledger of costs for tests: a page of the documentation that a test generates and compares with
//! the committed one. A call that exceeds its budget fails the test. Any other change shows in the
//! diff of the page.
//!
//! Each call is metered twice. **Cold** is the first call of a process, which has not leased or
//! cached anything. **Warm** is a further call of the same process. Both have a budget of requests,
//! write units and read units, and no row can be added without one.

mod cost;
mod metered_processes;
mod page;
mod request;

pub use cost::{Budget, CostWithBackgroundWork, budget};
pub use metered_processes::MeteredProcesses;
pub use page::{CostLedger, LedgerSection, Meters};
pub use request::{allowed_scope, json_request};
