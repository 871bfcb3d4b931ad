//! What lists and searches of every domain share.
//!
//! A crate of its own, because each function searches its own entities, in the same table and over the same indexes. What a search
//! means and how it is planned is `search`'s matter, which does no I/O; here is what reads the table for it.
//!
//! Every page ends by three measures, whichever comes first: the entities that were asked for, the bytes of the answer ([`Page`]), and
//! the bytes that were read for it ([`Reading`]). Where all entities have to be looked at, [`Top`] keeps those of the page.
//!
//! A kind of entity says where its lists are ([`Lists`]). Everything else is the same for all kinds: a [`Cursor`] reads a list,
//! a [`Join`] several at once, a [`Walker`] those that are in the order of a search one after another, [`in_all`] the keys of
//! some whole. What they yield are [`Candidate`]s, which are then read and checked.

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
