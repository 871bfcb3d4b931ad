//! The uploaded content of skills: where its files are, and how they are deleted.
//!
//! The files of each upload are in a directory of their own ([`ContentDirectory`]), which the row of
//! the version records. Before its first file is written, an upload has a row in the table
//! ([`SkillUpload`]). The transaction that registers the version marks this row as completed. A row
//! without this mark therefore means that no version refers to the files. [`ContentRemoval`] deletes
//! the content of deleted skills, and that of uploads whose version has not been registered, for
//! example because the client disconnected or the server crashed.
//!
//! The function `skills` uses this module. `registry_removals.rs` completes what the function leaves
//! unfinished.

mod directory;
mod removal;
mod upload;

pub use directory::{ContentDirectory, uploaded_path, uploaded_uri};
pub use removal::ContentRemoval;
pub use upload::{MAX_UPLOAD_AGE, SkillUpload};
