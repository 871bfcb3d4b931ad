//! Groups the spans of a request by trace. The size of the spans is counted during grouping, so
//! that a request that is too large is rejected early.

use indexmap::IndexMap;
use mlflow_api::Json;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{Span, TracesData};
use prost::Message;

use super::{SharedTags, TraceExport, resource};
use crate::export_error::ExportError;
use crate::stored_span::keep;
use crate::values::decoded;

/// Maximum size, in bytes, of one trace's spans in a request, measured in their stored form.
/// [`unpack`](crate::unpack) rejects larger ones.
const MAX_TRACE_BYTES: usize = crate::pack::MAX_UNPACKED_BYTES - (1 << 20);

/// Maximum size, in bytes, of all spans in a request, measured in their stored form, plus the tags
/// of their traces, which are counted once per trace. It is three times the maximum size of a body,
/// because translation adds attributes, and one attribute of a resource can become a tag of ten
/// thousand traces.
const MAX_REQUEST_BYTES: usize = 96 << 20;

/// Maximum number of traces in a request. Collectors send thousands of spans at a time, each of
/// which may belong to another trace.
const MAX_TRACES: usize = 10_000;

/// Approximate number of bytes that a tag or a trace takes in addition to its texts.
const ENTRY_OVERHEAD_BYTES: usize = 64;

/// Programs whose name MLflow shows on the roots of their traces. Other names are not shown,
/// because clients can send any text.
const SHOWN_SERVICES: [&str; 5] = ["claude-code", "codex_cli_rs", "codex_vscode", "gemini-cli", "qwen-code"];

/// The data of one trace, collected from the part of the request that has been parsed.
#[derive(Default)]
struct TraceData {
    spans: IndexMap<Vec<u8>, Span>,
    /// Size of the trace's spans in bytes. It may grow during translation.
    bytes: usize,
    resource: Option<SharedTags>,
}

/// The number of bytes of memory that a request can still use while it is parsed.
struct MemoryBudget(usize);

impl MemoryBudget {
    fn take(&mut self, bytes: usize) -> Result<(), ExportError> {
        let left = self.0.checked_sub(bytes);
        self.0 = left.ok_or_else(|| {
            let detail = format!(
                "The spans and the tags of the traces in the request are larger than {MAX_REQUEST_BYTES} bytes"
            );
            ExportError::new(413, detail)
        })?;
        Ok(())
    }
}

/// Returns the traces of a request, in the order of their first spans.
pub(super) fn by_trace(data: TracesData) -> Result<Vec<TraceExport>, ExportError> {
    let mut traces: IndexMap<[u8; 16], TraceData> = IndexMap::new();
    let mut room = MemoryBudget(MAX_REQUEST_BYTES);
    for group in data.resource_spans {
        let sender = group.resource.unwrap_or_default();
        let service = service(&sender);
        let tags: Option<SharedTags> = resource::tags(&sender.attributes).map(Into::into);
        let size_of_tags = size(tags.as_deref().unwrap_or_default());
        for sent in group.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            let (trace_id, span) = keep(sent, service)?;
            if !traces.contains_key(&trace_id) {
                if traces.len() >= MAX_TRACES {
                    let detail = format!("A request takes spans of at most {MAX_TRACES} traces.");
                    return Err(ExportError::new(413, detail));
                }
                room.take(ENTRY_OVERHEAD_BYTES)?;
            }
            let part = traces.entry(trace_id).or_default();
            // Six bytes are added for the tag and the length that precede the span in a list.
            let bytes = span.encoded_len() + 6;
            part.bytes += bytes;
            if part.bytes > MAX_TRACE_BYTES {
                let detail = format!("The spans of a trace in the request are larger than {MAX_TRACE_BYTES} bytes");
                return Err(ExportError::new(413, detail));
            }
            room.take(bytes)?;
            if part.resource.is_none() && tags.is_some() {
                part.resource.clone_from(&tags);
                room.take(size_of_tags)?;
            }
            part.spans.insert(span.span_id.clone(), span);
        }
    }
    let export = |(trace_id, part): ([u8; 16], TraceData)| TraceExport {
        trace_id,
        spans: part.spans.into_values().collect(),
        resource: part.resource.unwrap_or_default(),
        bytes: part.bytes,
    };
    Ok(traces.into_iter().map(export).collect())
}

/// Returns the sender's name, if it is one of those that are shown.
fn service(sender: &Resource) -> Option<&'static str> {
    let name = sender.attributes.iter().find(|attribute| attribute.key == "service.name")?;
    match decoded(name.value.as_ref()) {
        Json::Text(name) => SHOWN_SERVICES.into_iter().find(|known| *known == name),
        _ => None,
    }
}

fn size(tags: &[(String, String)]) -> usize {
    tags.iter().map(|(key, value)| key.len() + value.len() + ENTRY_OVERHEAD_BYTES).sum()
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
    use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans};

    use super::*;

    fn attribute(key: String, value: String) -> KeyValue {
        KeyValue { key, value: Some(AnyValue { value: Some(Value::StringValue(value)) }), ..KeyValue::default() }
    }

    /// Traces with one span each, from a sender with `attributes` attributes of `characters`
    /// characters.
    fn traces(count: u32, attributes: u32, characters: usize) -> TracesData {
        let attributes = (0..attributes).map(|number| attribute(format!("k{number}"), "x".repeat(characters)));
        let spans = (1..=count).map(|number| Span {
            trace_id: u128::from(number).to_be_bytes().to_vec(),
            span_id: vec![1; 8],
            ..Span::default()
        });
        TracesData {
            resource_spans: vec![ResourceSpans {
                resource: Some(Resource { attributes: attributes.collect(), ..Resource::default() }),
                scope_spans: vec![ScopeSpans { spans: spans.collect(), ..ScopeSpans::default() }],
                ..ResourceSpans::default()
            }],
        }
    }

    #[test]
    fn tags_of_a_sender_are_there_once_and_count_for_each_trace() {
        let exports = by_trace(traces(1_000, 20, 100)).unwrap();
        assert_eq!(exports.len(), 1_000);
        let shared = &exports[0].resource;
        assert_eq!(shared.len(), 20);
        assert!(exports.iter().all(|export| std::sync::Arc::ptr_eq(&export.resource, shared)));
        // A thousand traces with these attributes need 28 MB.
        let refused = by_trace(traces(1_000, 3_500, 8_000)).unwrap_err();
        assert_eq!(refused.status, 413, "{}", refused.detail);
        assert!(refused.detail.starts_with("The spans and the tags of the traces"), "{}", refused.detail);
        // Tags with empty values count as well, because each tag takes memory besides its texts.
        assert_eq!(by_trace(traces(1_000, 100_000, 0)).unwrap_err().status, 413);
    }

    #[test]
    fn traces_are_counted_while_they_are_read() {
        let most = u32::try_from(MAX_TRACES).unwrap();
        assert_eq!(by_trace(traces(most, 0, 0)).unwrap().len(), MAX_TRACES);
        let refused = by_trace(traces(most + 1, 0, 0)).unwrap_err();
        assert_eq!((refused.status, refused.detail.as_str()), (413, "A request takes spans of at most 10000 traces."));
    }

    #[test]
    fn spans_of_all_traces_are_counted_together() {
        // A quotation mark takes two bytes in its stored form.
        let long = |number: u8| Span {
            trace_id: vec![number; 16],
            span_id: vec![1; 8],
            attributes: vec![attribute("a".to_owned(), "\"".repeat(13 << 20))],
            ..Span::default()
        };
        let data = |spans: Vec<Span>| TracesData {
            resource_spans: vec![ResourceSpans {
                scope_spans: vec![ScopeSpans { spans, ..ScopeSpans::default() }],
                ..ResourceSpans::default()
            }],
        };
        let exports = by_trace(data((1..=3).map(long).collect())).unwrap();
        assert!(exports.iter().all(|export| export.bytes > 26 << 20));
        assert_eq!(by_trace(data((1..=4).map(long).collect())).unwrap_err().status, 413);
    }
}
