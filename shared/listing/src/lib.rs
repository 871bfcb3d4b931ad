//! What lists and searches of every domain share.
//!
//! A crate of its own, because each function searches its own entities, in the same table and over the same indexes. What a search
//! means and how it is planned is `search`'s matter, which does no I/O; here is what reads the table for it.
//!
//! Every page ends by three measures, whichever comes first: the entities that were asked for, the bytes of the answer ([`Page`]), and
//! the bytes that were read for it ([`Reading`]). Where all entities have to be looked at, [`Top`] keeps those of the page.

mod candidates;
mod indexed_fields;
mod page;
mod query;
mod reading;
mod top;

pub use candidates::{Candidates, add, fill};
pub use indexed_fields::IndexedFieldsCache;
pub use page::Page;
pub use query::pages;
pub use reading::Reading;
pub use top::{Found, Top};
