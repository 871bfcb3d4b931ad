//! The query planner for searches of runs.
//!
//! `run_index.rs` translates the conditions of a filter into conditions on the columns by which
//! runs are indexed ([`Ask`]), and an order into a [`Sorting`]. Planning takes two steps, both of
//! which are pure functions. [`RunOptions::of`] determines what the index offers. The store then
//! reads the first entries of the lists that [`RunOptions::probes`] returns, and [`choose`] selects
//! the cheapest path.
//!
//! Every path yields candidates, which are checked against the complete filter. The result is
//! therefore correct even if lists contain too many runs or estimates are wrong.

mod choose;
mod column;
mod cost;
mod heads;
mod list;
mod options;
#[allow(clippy::module_inception, reason = "the plan is one of several things about planning")]
mod plan;
mod question;
#[cfg(test)]
mod tests;
mod text;
mod walk;

pub use choose::{by_time, choose};
pub use column::{Metric, RunColumn};
pub use cost::Cost;
pub use heads::{Head, Heads};
pub use list::RunList;
pub use options::RunOptions;
pub use plan::{AccessPath, RunPlan};
pub use question::{Ask, SortBy, Sorting};
pub(crate) use text::range_of;
pub use text::tests_of_keys;
pub use walk::RunWalk;
