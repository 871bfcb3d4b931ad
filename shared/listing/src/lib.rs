//! What lists and searches of every domain share.
//!
//! A crate of its own, because each function searches its own entities, in the same table and over the same indexes. What a search
//! means and how it is planned is `search`'s matter, which does no I/O; here is what reads the table for it.

mod indexed_fields;

pub use indexed_fields::IndexedFieldsCache;
