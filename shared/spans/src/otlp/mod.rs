//! The body of `POST /v1/traces`: the OpenTelemetry protocol over HTTP, in protobuf and JSON.

mod body;
mod count;
mod json;
mod resource;

use indexmap::IndexMap;
use mlflow_api::Json;
use opentelemetry_proto::tonic::trace::v1::{Span, TracesData};
use prost::Message;

use crate::keep::keep;
use crate::refusal::Refusal;
use crate::values::decoded;

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

/// Bytes of the spans of one trace in a request, as they are kept. [`unpack`](crate::unpack) takes no more.
const LONGEST_EXPORT: usize = crate::pack::LARGEST - (1 << 20);

/// Programs whose name MLflow shows on the roots of their traces. It shows no others, as anybody may send any text.
const SERVICES: [&str; 5] = ["claude-code", "codex_cli_rs", "codex_vscode", "gemini-cli", "qwen-code"];

/// One trace's part of an export.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// OpenTelemetry's id of the trace.
    pub trace_id: [u8; 16],
    /// Its spans, each id once.
    pub spans: Vec<Span>,
    /// Tags for the trace, of what its sender says about itself.
    pub resource: Vec<(String, String)>,
}

/// Reads an export; its traces are in the order in which they come first. Refused is all of it or nothing, with 413 where it is, or would become,
/// too large.
pub fn read(content_type: Option<&str>, content_encoding: Option<&str>, body: &[u8]) -> Result<Vec<Export>, Refusal> {
    let media_type = content_type.map(|text| text.split(';').next().unwrap_or_default().trim());
    if !matches!(media_type, Some(PROTOBUF | JSON)) {
        let given = content_type.unwrap_or("None");
        let detail = format!("Invalid Content-Type: {given}. Expected: {PROTOBUF} or {JSON}");
        return Err(Refusal::new(400, detail));
    }
    let body = body::decompressed(content_encoding, body)?;
    let data = if media_type == Some(JSON) {
        count::check_json(&body)?;
        json::parse(&body).ok_or_else(Refusal::format)?
    } else {
        count::check_protobuf(&body)?;
        TracesData::decode(&*body).map_err(|_| Refusal::format())?
    };
    if data.resource_spans.is_empty() {
        return Err(Refusal::new(400, "Invalid OpenTelemetry format - no spans found"));
    }
    by_trace(data)
}

/// The content type and the body of the answer to an export that was stored: an empty message, whatever the export was written in.
#[must_use]
pub fn answer() -> (&'static str, Vec<u8>) {
    (PROTOBUF, Vec::new())
}

/// What is known of one trace so far.
#[derive(Default)]
struct Part {
    spans: IndexMap<Vec<u8>, Span>,
    /// Bytes of its spans: translating attributes may make more of them.
    bytes: usize,
    resource: Option<Vec<(String, String)>>,
}

fn by_trace(data: TracesData) -> Result<Vec<Export>, Refusal> {
    let mut traces: IndexMap<Vec<u8>, Part> = IndexMap::new();
    for group in data.resource_spans {
        let resource = group.resource.unwrap_or_default();
        let service = resource.attributes.iter().find(|attribute| attribute.key == "service.name");
        let service = service.and_then(|attribute| match decoded(attribute.value.as_ref()) {
            Json::Text(name) => SERVICES.into_iter().find(|known| *known == name),
            _ => None,
        });
        let tags = resource::tags(&resource.attributes);
        for sent in group.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            let span = keep(sent, service)?;
            let part = traces.entry(span.trace_id.clone()).or_default();
            // With what stands before it in a list.
            part.bytes += span.encoded_len() + 6;
            if part.bytes > LONGEST_EXPORT {
                let detail = format!("The spans of a trace in the request are larger than {LONGEST_EXPORT} bytes");
                return Err(Refusal::new(413, detail));
            }
            if part.resource.is_none() {
                part.resource.clone_from(&tags);
            }
            part.spans.insert(span.span_id.clone(), span);
        }
    }
    let export = |(trace_id, part): (Vec<u8>, Part)| {
        let trace_id = trace_id.try_into().unwrap_or_default();
        Export { trace_id, spans: part.spans.into_values().collect(), resource: part.resource.unwrap_or_default() }
    };
    Ok(traces.into_iter().map(export).collect())
}
