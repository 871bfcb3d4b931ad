//! Runs: their items, the data that is logged to them except metrics, and their inputs and outputs.

mod dataset;
mod inputs_and_outputs;
mod items;
mod lifecycle;
mod params_and_tags;
mod read;
mod run_cache;
mod run_datasets;
mod run_document;
mod run_info;

pub use dataset::{DatasetItems, contexts as dataset_contexts, dataset_items, read_dataset};
pub use items::{NewRunItems, RunStage, StoredRun};
pub(crate) use params_and_tags::add_tag;
pub use run_cache::MAX_DOCUMENT_POINT_BYTES;
pub(crate) use run_cache::{CachedRun, RunCache};
pub(crate) use run_datasets::RunDatasets;
pub(crate) use run_document::RunDocument;
pub use run_info::{NewRun, RunChange};
