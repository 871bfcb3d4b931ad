//! `--check-artifacts`: checks that the files which imported entities refer to exist where this server
//! serves them.
//!
//! | file | what it is for |
//! |---|---|
//! | `candidates.rs` | reads the locations of runs, logged models and traces with attachments from the source |
//! | `requirement.rs` | which files must exist at a location |
//! | `checker.rs` | checks whether these files exist |
//!
//! MLflow does not record whether a run has artifacts. A run whose directory is empty is therefore only
//! counted, unless its tags name files. Files with the spans of traces are read by the import itself.

mod candidates;
mod checker;
mod requirement;

pub(crate) use checker::check;
