//! Spans of traces: what exporters send, how they are kept, and what MLflow makes of them.
//!
//! Pure: no I/O, no table. [`read`] takes the body of an OTLP request apart by trace. A [`Span`] that it makes is as MLflow's store keeps
//! it: each attribute is a JSON text, with what MLflow adds for the conventions of other SDKs (`translate/`). [`pack`] makes bytes of
//! them for an item of the table, [`json`] and [`artifact_json`] MLflow's answers, [`summarize`] what spans say about their trace.
//!
//! What clients send is bounded by the size of a body after decompression, and nesting by the parsers; nothing here recurses deeper.

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
