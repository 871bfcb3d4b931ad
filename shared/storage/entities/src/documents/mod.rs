//! Documents: items that store their params and tags in maps, except for values that are too big,
//! which are in rows.
//!
//! A value of more than [`MAX_INLINE_VALUE_BYTES`] bytes gets a row of its own. So does every new
//! key once the document is **full**, a state that it never leaves. An entry in the document takes
//! precedence over a row with the same key. A document records whether it may have rows, so that no
//! request for rows is sent if it has none.
//!
//! Runs, experiments, logged models, registered models, their versions and evaluation datasets are
//! such documents. The documents of traces and of a run's metrics are not, and are written by other
//! code.
//!
//! Long texts are compressed, and split into parts if they are too big for an item ([`content`]).
//!
//! Writes are optimistic: an update is sent with conditions, without reading the document. If it is
//! refused, the response contains the current document, and the next attempt is planned from it.

mod change;
pub mod content;
mod creation;
mod document;
mod entries;
mod list_tag;
mod logged_model;
mod plan;
mod removal;

pub use change::{change, change_with};
pub use creation::{new_document, new_document_with, new_document_with_params};
pub use document::{Document, DocumentChange, MAX_INLINE_VALUE_BYTES, ParamConflict, print_conflicts};
pub use entries::{MAX_MAPS_BYTES, check_sizes, repeated_key, row, take_all_rows, take_all_rows_but, take_rows};
pub use list_tag::{append_to_tag, appended_to_tag};
pub use logged_model::LoggedModelDocument;
pub use removal::{remove_tag, remove_tag_with};
