//! The evaluation function: evaluation datasets with their records, scorers, label schemas, review
//! queues and issues.
//!
//! [`routes`] lists the whole API on one page. A handler parses its request and calls one method of
//! the [`store`], which accesses the table and contains no HTTP. `datasets/`, `scorers/`,
//! `label_schemas/`, `review_queues/` and `issues/` have the endpoints.
//!
//! An **evaluation dataset** is a collection of records to evaluate with. A *dataset*, in contrast,
//! is data that a run read, and is stored by the tracking function.
//!
//! # How records are merged into an evaluation dataset
//!
//! `POST datasets/{dataset_id}/records` → `datasets::MergeRecords` → `Store::dataset_merge_records`
//! (`store/evaluation_dataset/record_merge.rs`).
//!
//! 1. `record_content.rs` parses the records and rejects what MLflow rejects. JSON is parsed like
//!    in Python (`shared/language/mlflow-api/src/json`), because integers of any length and NaN
//!    have to be returned unchanged. Records with equal inputs are merged into one.
//! 2. Each record has a row, its *claim*, whose key is the hash of the record's inputs. The claims
//!    of the inputs are read, a hundred per request. Then the dataset is read for its schema, and
//!    after it the records that the claims refer to.
//! 3. Transactions follow, each with up to 49 new records and their claims, or up to 99 known
//!    records. A known record is written on condition that it has not changed since it was read.
//! 4. Each transaction also updates the dataset: count, digest, time and schema. If a transaction
//!    fails, the remaining records are planned again, based on the current state.
//! 5. Content that exceeds 256 KB when compressed is written to parts before the transaction. The
//!    parts that it replaces are deleted afterwards.
//!
//! A record's id starts with its creation time. A page of records is therefore a range of the
//! partition, in MLflow's order. A record's content is stored compressed, in the form of the
//! response, so that reading a page does not require parsing it.
//!
//! Deleting a dataset deletes its item and its rows in the lists. The indexer then receives the
//! deletion from the stream, and removes the records.

mod datasets;
mod declaration;
mod disabled_features;
mod issues;
mod label_schemas;
mod request_targets;
mod review_queues;
mod routes;
mod scorers;
pub mod store;

pub use declaration::DOMAIN;
pub use routes::routes;

/// Returns the domain's router over a given store. For tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    service::router(routes(), &service::FunctionContext::new(store.clone(), authorizer))
}
