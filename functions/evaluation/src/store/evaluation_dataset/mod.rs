//! Evaluation datasets and their records.
//!
//! A dataset is a document; its records are rows in the same partition, in the order of their creation. What finds a record by its
//! inputs, and the parts of big ones, have a partition of their own, so that merging writes to two.

mod dataset;
mod experiments;
mod item;
mod merge;
mod merge_plan;
mod merge_request;
mod page;
mod read;
mod record;
mod records;
mod schema;
mod search;
mod tag;

pub use dataset::NewDataset;
pub use item::AskedDataset;
pub(crate) use record::column;
pub use search::DatasetSearch;
