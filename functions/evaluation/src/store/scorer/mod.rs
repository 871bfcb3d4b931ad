//! Scorers and their versions.
//!
//! A scorer's row holds its id and a copy of its latest version, so that lists and the most frequent read are one request. The
//! versions are rows named by the id: those of a scorer that was deleted are not those of another of its name.

mod delete;
mod latest;
mod list_size;
mod online;
mod payload;
mod read;
mod register;
mod row;

pub(crate) use register::check_scorer;
pub use row::ScorerName;
