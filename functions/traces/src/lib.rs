//! The traces function: traces, their spans and assessments.
//!
//! [`routes`] is its whole API on one page. A handler parses its request and makes one or two calls
//! to the [`store`]. The store knows the table but nothing of HTTP. `docs/design/traces-at-rest.md`
//! explains how traces are stored, searched, packed and removed.
//!
//! | file | contents |
//! |---|---|
//! | `otlp.rs`, `store/export.rs`, `store/portion.rs`, `store/spans.rs` | ingestion of spans |
//! | `start.rs`, `store/start.rs`, `store/draft.rs` | fields of a trace that clients send |
//! | `assessments.rs`, `tags.rs`, `link.rs`, `delete.rs` and their files in `store` | changes to a trace |
//! | `search.rs`, `figures.rs`, `store/search` | searches, metrics and charts |
//! | `store/mark.rs` | marks, the time order of traces |
//! | `store/change.rs` | conditional updates of documents |
//! | `store/search/partition.rs`, `store/search/walk.rs` | reading the marks and blocks of a partition, and merging partitions |
//! | `store/oldest.rs` | reading partitions from the oldest trace on, for deletion by time |
//!
//! Every change to a document writes the trace's mark first, unless the mark is less than a minute
//! old. `trace_change` does so for changes that are computed from the whole document, and
//! `trace_update` for changes to one entry of a map or a set. `trace_start_v2` and `trace_remove`
//! do it themselves.

mod artifact;
mod assessments;
mod declaration;
mod delete;
mod figures;
mod link;
mod named;
mod otlp;
mod read;
mod routes;
mod search;
mod shown;
mod start;
pub mod store;
mod tags;

pub use declaration::DOMAIN;
pub use routes::routes;

/// Returns the router of the domain over the given store. For tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    service::router(routes(), &service::FunctionContext::new(store.clone(), authorizer))
}
