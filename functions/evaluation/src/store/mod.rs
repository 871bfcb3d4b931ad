//! Access to the evaluation domain's data in the table. There is one folder per resource, and the
//! names of methods start with the resource.

mod evaluation_dataset;
mod issue;
mod label_schema;
mod review_queue;
mod scorer;
#[expect(clippy::module_inception, reason = "the store itself, which the other files use")]
mod store;

pub(crate) use evaluation_dataset::column;
pub use evaluation_dataset::{
    DatasetItems, DatasetReference, DatasetSearch, NewDataset, RecordFields, StoredDataset, StoredRecord,
    experiments_with_times, inputs_hash, part_key as dataset_part_key,
};
pub use issue::{IssueChange, IssueSearch, NewIssue};
pub use label_schema::{LabelSchemaChange, NewLabelSchema};
pub use review_queue::{ReviewQueueChange, ReviewQueueConditions};
pub(crate) use scorer::check_scorer;
pub use scorer::{
    ScorerName, StoredScorerItems, header_key as scorer_key, online_config_item, part_key as scorer_part_key,
};
pub use store::Store;
