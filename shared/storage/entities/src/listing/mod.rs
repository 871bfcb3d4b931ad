//! Pagination that the lists and searches of every domain share.
//!
//! The crate `search` defines what a search means and how it is planned, without I/O. This module
//! reads the table for it. The lists of the index of runs are in `run-index`.
//!
//! A page ends when it reaches one of three limits: the number of entities, the bytes of the
//! response ([`ResponsePage`]), or the bytes that were read ([`ReadBudget`]). If all entities have
//! to be read, [`FirstEntities`] keeps those that belong to the page. [`Candidates`] reads
//! the entities of a list that is written by requests. The lists of the index are written by the
//! indexer. [`DocumentSearch`] reads documents that are stored in the default order of a search.

mod candidates;
mod cooperative_yield;
mod document_search;
mod first_entities;
mod query;
mod read_budget;
mod response_page;

pub use candidates::{Candidates, add, add_listed, fill};
pub use cooperative_yield::CooperativeYield;
pub use document_search::{DocumentSearch, SearchedDocuments};
pub use first_entities::{FirstEntities, SelectedEntities};
pub use query::{pages, within_time};
pub use read_budget::ReadBudget;
pub use response_page::ResponsePage;
