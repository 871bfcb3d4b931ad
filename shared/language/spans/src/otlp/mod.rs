//! The body of `POST /v1/traces`: the OpenTelemetry protocol over HTTP, in protobuf and JSON.

mod answer;
mod body;
mod count;
mod group;
mod json;
mod resource;

use std::sync::Arc;

use mlflow_api::json::in_utf8;
use opentelemetry_proto::tonic::trace::v1::{Span, TracesData};
use prost::Message;

use crate::refusal::Refusal;
pub use answer::Format;

/// Tags of traces. The tags from a sender's resource are shared by all its traces in a request.
pub type Tags = Arc<[(String, String)]>;

/// One trace's part of an export.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// OpenTelemetry's ID of the trace.
    pub trace_id: [u8; 16],
    /// Spans of the trace, deduplicated by ID.
    pub spans: Vec<Span>,
    /// Tags for the trace from its sender's resource.
    pub resource: Tags,
    /// Approximate size of the spans in their stored form, in bytes.
    pub bytes: usize,
}

/// Reads an export. Its traces are in the order of their first spans. The export is accepted or
/// rejected as a whole, with status 413 if it is too large or would become so.
pub fn read(format: Format, content_encoding: Option<&str>, body: &[u8]) -> Result<Vec<Export>, Refusal> {
    let body = body::decompressed(content_encoding, body)?;
    let data = match format {
        Format::Json => {
            let body = in_utf8(&body).map_err(|_| Refusal::format())?;
            count::check_json(&body)?;
            json::parse(&body).ok_or_else(Refusal::format)?
        }
        Format::Protobuf => {
            count::check_protobuf(&body)?;
            TracesData::decode(&*body).map_err(|_| Refusal::format())?
        }
    };
    // Frees the body, so that it is not in memory in both forms.
    drop(body);
    if data.resource_spans.is_empty() {
        return Err(Refusal::new(400, "Invalid OpenTelemetry format - no spans found"));
    }
    group::by_trace(data)
}
