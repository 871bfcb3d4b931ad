//! What lists and searches of every domain share.
//!
//! A crate of its own, because each function searches its own entities, in the same table and over
//! the same indexes. The crate `search` says what a search means and how it is planned, without
//! I/O. This crate reads the table for it.
//!
//! A page ends by the first of three measures. They are the number of entities, the bytes of the
//! answer ([`Page`]), and the bytes that were read ([`Reading`]). If all entities have to be looked
//! at, [`Top`] keeps those of the page.
//!
//! A kind of entity says where its lists are ([`Lists`]). Everything else is the same for all
//! kinds: a [`Cursor`] reads a list, a [`Join`] several side by side. A [`Walker`] reads lists in
//! the order of a search one after another, and [`in_all`] reads the keys of some lists whole. They
//! yield [`Candidate`]s, which are then read and checked.

mod candidate;
mod candidates;
mod cursor;
mod indexed_fields;
mod join;
mod lists;
mod pace;
mod page;
mod query;
mod reading;
mod source;
mod top;
mod walker;
mod whole;

pub use candidate::Candidate;
pub use candidates::{Candidates, add, add_listed, fill};
pub use cursor::{Cursor, HEAD, LARGEST_PAGE};
pub use indexed_fields::IndexedFieldsCache;
pub use join::Join;
pub use lists::{Entry, Lists, within_numbers, within_time};
pub use pace::Pace;
pub use page::Page;
pub use query::pages;
pub use reading::Reading;
pub use source::Source;
pub use top::{Found, Top};
pub use walker::Walker;
pub use whole::in_all;
