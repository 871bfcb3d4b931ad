//! The store of the traces domain. The names of its methods begin with a noun.
//!
//! A trace is a document under its id, which contains everything except the spans. The spans are
//! stored next to it, in separate items for each export, which are never rewritten. Small spans of the
//! export that creates a trace are stored in the trace's mark instead. Marks store the
//! time order of an experiment's traces. They are partitioned by day, so that no partition grows
//! without bound (`docs/adr/0033-traces.md`). Traces that have not changed for some minutes are
//! copied into blocks, which searches read (`docs/adr/0034-blocks-of-traces.md`).

mod assessment;
mod delete;
mod deletion_scan;
mod document_change;
mod document_draft;
mod export;
mod export_batches;
mod items;
mod link;
mod mark;
mod marked_spans;
mod read;
mod search;
mod span_items;
mod start;
#[expect(clippy::module_inception, reason = "the store itself, which the other files use")]
mod store;
mod tag;
mod trace_cache;

pub use document_change::MAX_DOCUMENT_BYTES;
pub use export::RejectedSpans;
pub(crate) use export::archived_traces_error;
pub use items::{TraceHead, WholeTraceContent};
pub use mark::{day_row, shards_of_day};
pub use read::{WholeTrace, has_readable_spans};
pub(crate) use search::known_experiments;
pub use search::{Correlation, TraceSearchRequest};
pub use start::{COST_KEYS, EndedTrace, TOKEN_KEYS, normalized_metadata};
pub use store::Store;
pub(crate) use tag::no_tag;
pub(crate) use trace_blocks::day_of;
