//! Plans how a search of any kind of entity is carried out.
//!
//! A kind of entity declares its [`Columns`], the conditions of a filter on them ([`Ask`]), and the
//! columns of an order ([`Sorting`]). Planning takes two steps, and both are functions of their
//! arguments. [`Options::of`] says what the index offers. The store then reads the beginnings of
//! the lists that [`Options::probes`] names, and [`choose`] takes the cheapest path.
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

pub use choose::choose;
pub(crate) use column::share_of_text;
pub use column::{Columns, TextColumn};
pub use cost::Cost;
pub use heads::{Head, Heads};
pub use list::List;
pub use options::Options;
pub use plan::{AccessPath, Plan};
pub use question::{Ask, SortBy, Sorting};
pub(crate) use text::range_of;
pub use text::tests_of_keys;
pub use walk::Walk;
