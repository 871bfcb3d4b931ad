//! The traces function: traces, their spans and assessments.
//!
//! [`routes`] is its whole API on one page. A handler reads its request and makes one or two calls
//! of the [`store`]. The store knows the table and nothing of HTTP. `docs/design/traces-at-rest.md` tells
//! how traces are stored, searched, packed and removed.
//!
//! | file | what it has |
//! |---|---|
//! | `otlp.rs`, `store/export.rs`, `store/portion.rs`, `store/spans.rs` | spans arrive |
//! | `start.rs`, `store/start.rs`, `store/draft.rs` | what clients say about a trace |
//! | `assessments.rs`, `tags.rs`, `link.rs`, `delete.rs` and their files in `store` | changes of a trace |
//! | `search.rs`, `figures.rs`, `store/search` | searches, counts and charts |
//! | `store/mark.rs` | the time order of traces |
//! | `store/change.rs` | how documents are changed |
//! | `store/search/partition.rs`, `store/search/walk.rs` | reading marks and blocks of a partition, and merging partitions |
//! | `store/oldest.rs` | the same from the oldest trace on, for deletions by time |
//!
//! Whatever changes a document puts its mark first, unless the mark is younger than a minute.
//! `trace_change` does so for a change that is planned from the whole document. `trace_update` does
//! so for one entry of a map or a set. `trace_start_v2` and `trace_remove` do it themselves.

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

/// The router of the domain over a store of one's own: for tests.
pub fn router(store: &store::Store, authorizer: std::sync::Arc<dyn access::Authorizer>) -> axum::Router {
    service::router(routes(), &service::Frame::guarded(store.clone(), authorizer))
}
