//! The data of the traces domain in the table. Methods are named noun first.
//!
//! A trace is a document under its id, which holds all but the spans. Spans are in items of their
//! own next to it, one per export, and are never rewritten. Marks are the time order of an
//! experiment's traces. They are in partitions by day, so that no partition grows without bound
//! (`docs/adr/0033-traces.md`). Traces that have not changed for some minutes are in blocks, which
//! searches read (`docs/adr/0034-blocks-of-traces.md`).

mod assessment;
mod change;
mod delete;
mod draft;
mod export;
mod known;
mod link;
mod mark;
mod oldest;
mod portion;
mod read;
mod search;
mod spans;
mod start;
#[expect(clippy::module_inception, reason = "the store itself, which the other files use")]
mod store;
mod tag;

pub use export::Rejected;
pub use read::{WholeTrace, has_spans_here};
pub(crate) use search::known_experiments;
pub use search::{Correlation, TraceSearch};
pub use start::EndedTrace;
pub use store::Store;
pub(crate) use tag::no_tag;
pub(crate) use trace_blocks::day_of;
