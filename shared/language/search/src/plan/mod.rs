//! Plans how a search of runs is carried out.
//!
//! `run_index.rs` says what the conditions of a filter ask of the columns by which runs are indexed
//! ([`Ask`]). It also says what an order sorts by ([`Sorting`]). Planning takes two steps, and both
//! are functions of their arguments. [`RunOptions::of`] says what the index offers. The store then
//! reads the beginnings of the lists that [`RunOptions::probes`] names, and [`choose`] takes the
//! cheapest path.
//!
//! Every path brings candidates, which are checked against the whole filter. So lists may hold too
//! much, and estimates may be wrong, but the answer is right.

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
