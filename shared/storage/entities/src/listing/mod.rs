//! Pagination that the lists and searches of every domain share.
//!
//! The crate `search` defines what a search means and how it is planned, without I/O. This module
//! reads the table for it. The lists of the index of runs are in `run-index`.
//!
//! A page ends when it reaches one of three limits: the number of entities, the bytes of the
//! response ([`Page`]), or the bytes that were read ([`Reading`]). If all entities have to be read,
//! [`Top`] keeps those that belong to the page. [`Candidates`] reads lists that requests write.

mod candidates;
mod pace;
mod page;
mod query;
mod reading;
mod top;

pub use candidates::{Candidates, add, add_listed, fill};
pub use pace::Pace;
pub use page::Page;
pub use query::{pages, within_time};
pub use reading::Reading;
pub use top::{Found, Top};
