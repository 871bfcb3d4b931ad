//! Evaluation datasets and their records.
//!
//! A dataset is a document. Its records are rows in the same partition, in the order of their
//! creation. The rows that find a record by its inputs, and the parts of large records, are in a
//! separate partition. So merging writes to two partitions.

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
