//! Spans of traces: what exporters send, how spans are kept, and what MLflow makes of them.
//!
//! Pure: no I/O, no table. [`read`] splits the body of an OTLP request by trace (`otlp/`). It makes
//! [`Span`]s as MLflow's store keeps them (`keep.rs`): each attribute is a JSON text. MLflow adds
//! attributes for the conventions of other SDKs, and so does `translate/`. [`pack`] makes bytes of
//! them for an item of the table; packing traces into blocks is the indexer's. [`json`] and
//! [`artifact_json`] make MLflow's answers. [`summarize`] makes what spans say about their trace,
//! with tokens and their cost (`summary.rs`, `usage.rs`).
//!
//! The size of a body after decompression bounds what clients send, and the parsers bound nesting.
//! Nothing here recurses deeper.

mod answers;
mod attributes;
mod facts;
mod ids;
mod keep;
mod otlp;
mod pack;
mod preview;
mod prices;
mod refusal;
mod summary;
mod text;
mod translate;
mod usage;
mod values;

pub use answers::{artifact_json, json};
pub use facts::{Facts, facts};
pub use ids::{trace_id, trace_id_text};
pub use opentelemetry_proto::tonic::trace::v1::Span;
pub use otlp::{Export, Format, Tags, read};
pub use pack::{Packed, Unreadable, join, message, of_message, pack, size, unpack, unpack_within};
pub use refusal::Refusal;
pub use summary::{Root, State, Summary, summarize};
pub use usage::Usage;
