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
pub(crate) use issue::invalid_issue_token;
pub use issue::{IssueChange, IssueItems, IssueSearch, NewIssue, part_key as issue_part_key, read_issue};
pub use label_schema::{
    LabelSchemaChange, NewLabelSchema, name_key as label_schema_name_key, name_row as label_schema_name_row,
    schema_key as label_schema_key, schema_of as label_schema_of,
};
pub use review_queue::{
    ReviewItemState, ReviewQueueChange, ReviewQueueConditions, item_of as review_item_of,
    name_key as review_queue_name_key, name_row as review_queue_name_row, queue_item as review_queue_item,
    queue_key as review_queue_key, queue_of as review_queue_of, review_item, reviewed_trace, unreviewed_trace,
};
pub(crate) use scorer::check_scorer;
pub use scorer::{
    ScorerName, StoredScorerItems, header_key as scorer_key, online_config_item, part_key as scorer_part_key,
};
pub use store::Store;
