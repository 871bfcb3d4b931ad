//! The evaluation function: evaluation datasets with their records, and scorers.
//!
//! [`routes`] is its whole API on one page. A handler reads its request and makes one call of the
//! [`store`]. The store knows the table and nothing of HTTP. `datasets/` and `scorers/` have the
//! endpoints.
//!
//! An **evaluation dataset** is a collection of records to evaluate with. A *dataset* is what a run
//! read, and belongs to the tracking function.
//!
//! # Records are merged into an evaluation dataset
//!
//! `POST datasets/{dataset_id}/records` → `datasets::MergeRecords` → `Store::dataset_merge_records`
//! (`store/evaluation_dataset/merge.rs`).
//!
//! 1. `record.rs` reads the records and refuses what MLflow refuses. JSON is read as Python reads
//!    it (`shared/language/mlflow-api/src/json`), because integers of any length and NaN have to come back.
//!    Records with the same inputs are one.
//! 2. The rows that claim inputs by their hash are read, a hundred per request. Then the dataset is
//!    read for its schema, and then the records that the claims name.
//! 3. Transactions follow, of up to 49 new records with a claim each, or 99 known records. Each
//!    known record is written on condition that it is what was read.
//! 4. Each transaction also changes the dataset: count, digest, time, schema. If one is refused,
//!    the rest is planned again from what is there then.
//! 5. A content of more than 256 KB compressed goes into parts before that. The parts that it
//!    replaces are deleted afterwards.
//!
//! A record's id begins with the time of its creation. So a page of records is a range of the
//! partition, in MLflow's order. Its content is stored in the form of the answer, compressed, and
//! is not parsed for a page.
//!
//! Deleting a dataset deletes its item and its rows in the lists. The indexer removes the records
//! when the stream tells it.

mod asked;
mod datasets;
mod declaration;
mod routes;
mod scorers;
pub mod store;

pub use declaration::DOMAIN;
pub use routes::routes;

/// The router of the domain over a store of one's own: for tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    service::router(routes(), &service::Frame::guarded(store.clone(), authorizer))
}
