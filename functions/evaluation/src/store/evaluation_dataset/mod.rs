//! Evaluation datasets and their records.
//!
//! A dataset is a document. Its records are rows in the same partition, in the order of their
//! creation. A second partition has the claims, which are rows that map the inputs of a record to
//! the record, and the parts of large records. Merging therefore writes to two partitions.

mod dataset_item;
mod dataset_reads;
mod experiments;
mod items;
mod lifecycle;
mod merge_plan;
mod merge_request;
mod record_content;
mod record_deletion;
mod record_merge;
mod record_page;
mod schema;
mod search;
mod tag;

pub use dataset_item::{DatasetReference, experiments_with_times, part_key};
pub use items::{DatasetItems, StoredDataset, StoredRecord};
pub use lifecycle::NewDataset;
pub(crate) use record_content::column;
pub use record_content::{RecordFields, inputs_hash};
pub use search::DatasetSearch;
