//! The query planner for searches of runs.
//!
//! `conditions.rs` translates the conditions of a filter into conditions on the columns by which
//! runs are indexed ([`PlanCondition`]), and an order into a [`PlanOrder`]. Planning then takes two
//! steps, both of which are pure functions:
//!
//! 1. [`RunOptions::of`] determines what the index offers. The store then reads the first entries
//!    of the lists that [`RunOptions::probes`] returns.
//! 2. [`choose`] selects the cheapest path.
//!
//! Every path yields candidates, which are checked against the complete filter. The result is
//! therefore correct even if lists contain too many runs or estimates are wrong.

mod column;
mod conditions;
mod cost;
mod list_heads;
mod options;
mod path_selection;
#[allow(clippy::module_inception, reason = "the plan is one of several things about planning")]
mod plan;
mod run_list;
mod run_walk;
#[cfg(test)]
mod tests;
mod text_lists;

pub use column::{MetricColumn, RunColumn};
pub use conditions::{PlanCondition, PlanOrder, PlanSortBy};
pub use cost::PlanCost;
pub use list_heads::{ListHead, ListHeads};
pub use options::RunOptions;
pub use path_selection::{by_time, choose};
pub use plan::{AccessPath, RunPlan};
pub use run_list::RunList;
pub use run_walk::RunWalk;
pub(crate) use text_lists::range_of;
pub use text_lists::tests_of_keys;
