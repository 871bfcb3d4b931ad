//! Spans of traces: the formats that exporters send, the stored format, and the values that MLflow
//! derives from spans.
//!
//! The crate does no I/O and does not use the table. Its main functions are:
//!
//! - [`read`] splits the body of an OTLP request by trace (`otlp/`). It creates [`Span`]s in the
//!   form that MLflow stores (`stored_span.rs`), with each attribute as a JSON text. Like MLflow,
//!   it adds attributes for the conventions of other SDKs (`translate/`).
//! - [`pack`] encodes spans as bytes for an item of the table. Packing traces into blocks is the
//!   indexer's task.
//! - [`json`] and [`artifact_json`] produce MLflow's responses.
//! - `recorded_span.rs` reads spans that MLflow's own server has stored, and [`to_archive`] writes the
//!   file `traces.pb` of an archived trace.
//! - [`summarize`] derives a trace's facts from its spans, including tokens and their cost
//!   (`summary.rs`, `usage.rs`).
//!
//! The maximum size of a decompressed body limits the spans that clients can send. The parsers
//! limit nesting, and no function here recurses deeper than that limit.

mod archived_spans;
mod attributes;
mod export_error;
mod ids;
mod json_text;
mod otlp;
mod pack;
mod preview;
mod prices;
mod recorded_span;
mod response;
mod span_columns;
mod stored_span;
mod summary;
mod translate;
mod usage;
mod values;

pub use archived_spans::{MalformedSpans, is_archived, to_archive, without_content};
pub use export_error::ExportError;
pub use ids::{trace_id, trace_id_text};
pub use opentelemetry_proto::tonic::trace::v1::Span;
pub use otlp::{ExportFormat, SharedTags, TraceExport, read};
pub use pack::{PackedExport, UnpackError, join, message, of_message, pack, size, unpack, unpack_within};
pub use recorded_span::{move_to_trace, of_archive, of_artifact, of_recorded_json};
pub use response::{artifact_json, json};
pub use span_columns::{SpanColumns, facts};
pub use summary::{RootSpan, TraceOutcome, TraceSummary, summarize};
pub use usage::TraceUsage;
