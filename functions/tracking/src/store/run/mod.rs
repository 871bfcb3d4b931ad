//! Runs: their items, the data that is logged to them except metrics, and their inputs and outputs.

mod dataset;
mod datasets_read;
mod document;
mod info;
mod lifecycle;
mod links;
mod logged;
mod read;
mod tag;

pub(crate) use datasets_read::RunDatasets;
pub(crate) use document::RunDocument;
pub use info::{NewRun, RunChange};
pub(crate) use logged::{LoggedRun, LoggedRuns, POINTS_IN_DOCUMENT};
pub(crate) use tag::add_tag;
