//! The traces function: traces, their spans and assessments.
//!
//! [`routes`] is its whole API on one page. A handler parses its request and makes one or two calls
//! to the [`store`], which accesses the table and contains no HTTP. `docs/design/traces-at-rest.md`
//! explains how traces are stored, searched, packed and removed.
//!
//! | file | contents |
//! |---|---|
//! | `otlp.rs`, `store/export.rs`, `store/export_batches.rs`, `store/span_items.rs` | ingestion of spans |
//! | `start.rs`, `store/start.rs`, `store/document_draft.rs` | fields of a trace that clients send |
//! | `assessments.rs`, `tags.rs`, `link.rs`, `delete.rs` and the files with these names in `store` | changes to a trace |
//! | `search.rs`, `trace_metrics.rs`, `store/search` | searches, metrics and charts |
//! | `store/mark.rs` | marks, which store the time order of traces |
//! | `store/document_change.rs` | conditional updates of documents |
//! | `store/search/partition_reader.rs`, `store/search/time_merge.rs` | reading the marks and blocks of a partition, and merging partitions |
//! | `store/items.rs`, `store/search/listing.rs` | whole traces, for importing and exporting them |
//! | `store/deletion_scan.rs` | reading partitions from the oldest trace on, for deletion by time |
//!
//! Every change to a document writes the trace's mark first, unless the mark is less than a minute
//! old. `trace_change` does so for changes that are computed from the whole document, and
//! `trace_update` for changes to one entry of a map or a set. `trace_start_v2` and `trace_remove`
//! write the mark themselves.

mod assessments;
mod declaration;
mod delete;
mod link;
mod otlp;
mod read;
mod response_visibility;
mod routes;
mod search;
mod start;
pub mod store;
mod tags;
mod trace_artifact;
mod trace_metrics;
mod trace_path;

pub use declaration::DOMAIN;
pub use routes::routes;

/// Returns the router of the domain over the given store. For tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    service::router(routes(), &service::FunctionContext::new(store.clone(), authorizer))
}
