//! The body of `POST /v1/traces`: the OpenTelemetry protocol over HTTP, in protobuf and JSON.

mod decompression;
mod format;
mod grouping;
mod json;
mod resource;
mod size_check;

use std::sync::Arc;

use mlflow_api::json::to_utf8;
use opentelemetry_proto::tonic::trace::v1::{Span, TracesData};
use prost::Message;

use crate::export_error::ExportError;
pub use format::ExportFormat;

/// Tags of traces. The tags from a sender's resource are shared by all its traces in a request.
pub type SharedTags = Arc<[(String, String)]>;

/// One trace's part of an export.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceExport {
    /// OpenTelemetry's ID of the trace.
    pub trace_id: [u8; 16],
    /// Spans of the trace, deduplicated by ID.
    pub spans: Vec<Span>,
    /// Tags for the trace from its sender's resource.
    pub resource: SharedTags,
    /// Approximate size of the spans in their stored form, in bytes.
    pub bytes: usize,
}

/// Reads an export. Its traces are in the order of their first spans. The export is accepted or
/// rejected as a whole. The status is 413 if it is too large, or would become too large in memory
/// or in its stored form.
pub fn read(
    format: ExportFormat,
    content_encoding: Option<&str>,
    body: &[u8],
) -> Result<Vec<TraceExport>, ExportError> {
    let body = decompression::decompressed(content_encoding, body)?;
    let data = match format {
        ExportFormat::Json => {
            let body = to_utf8(&body).map_err(|_| ExportError::format())?;
            size_check::check_json(&body)?;
            json::parse(&body).ok_or_else(ExportError::format)?
        }
        ExportFormat::Protobuf => {
            size_check::check_protobuf(&body)?;
            TracesData::decode(&*body).map_err(|_| ExportError::format())?
        }
    };
    // Frees the body, so that it is not in memory in both forms.
    drop(body);
    if data.resource_spans.is_empty() {
        return Err(ExportError::new(400, "Invalid OpenTelemetry format - no spans found"));
    }
    grouping::by_trace(data)
}
