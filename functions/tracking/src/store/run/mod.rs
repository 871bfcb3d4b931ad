//! Runs: their items, the data that is logged to them except metrics, and their inputs and outputs.

mod dataset;
mod inputs_and_outputs;
mod lifecycle;
mod params_and_tags;
mod read;
mod run_cache;
mod run_datasets;
mod run_document;
mod run_info;

pub(crate) use params_and_tags::add_tag;
pub(crate) use run_cache::{CachedRun, MAX_DOCUMENT_POINT_BYTES, RunCache};
pub(crate) use run_datasets::RunDatasets;
pub(crate) use run_document::RunDocument;
pub use run_info::{NewRun, RunChange};
