//! Conversion of a span that an exporter sent to the span that is stored.

use mlflow_api::Json;
use mlflow_api::json::JsonObject;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status, span};

use crate::attributes::{REQUEST_ID, dumped, kept, received};
use crate::export_error::ExportError;
use crate::ids::{sized, trace_id_text};
use crate::translate::{SpanEvent, translate};
use crate::values::{dictionary, entry, message};

/// Attribute in which MLflow shows the program that sent a root span.
const SERVICE_NAME: &str = "service.name";

/// Converts a span as MLflow's store does. Attributes become JSON texts, the attributes of some
/// SDKs are translated, and IDs get their full length. Fields that MLflow drops are dropped as
/// well: the kind, the trace state, and the counts of dropped data. If the span is a root,
/// `service` is set on it. Returns the span with the ID of its trace.
pub(crate) fn keep(sent: Span, service: Option<&str>) -> Result<([u8; 16], Span), ExportError> {
    if sent.trace_id.is_empty() || sent.span_id.is_empty() {
        return Err(ExportError::new(422, "Cannot convert OpenTelemetry span to MLflow span"));
    }
    let failed = || ExportError::new(422, "Failed to log OpenTelemetry spans");
    let trace_id: [u8; 16] = sized(&sent.trace_id).ok_or_else(failed)?;
    let span_id: [u8; 8] = sized(&sent.span_id).ok_or_else(failed)?;
    let parent: [u8; 8] = sized(&sent.parent_span_id).ok_or_else(failed)?;
    // Times that do not fit into a signed 64-bit integer are not valid dates, and MLflow's database
    // cannot store them.
    if [sent.start_time_unix_nano, sent.end_time_unix_nano].into_iter().any(|time| i64::try_from(time).is_err()) {
        return Err(failed());
    }
    let root = parent == [0; 8];
    let mut attributes = received(&sent.attributes);
    attributes.insert(REQUEST_ID.to_owned(), dumped(&Json::Text(trace_id_text(&trace_id))));
    if let Some(service) = service.filter(|_| root) {
        attributes.insert(SERVICE_NAME.to_owned(), dumped(&Json::from(service)));
    }
    let seen: Vec<_> = sent.events.iter().map(seen).collect();
    translate(&mut attributes, &seen);
    let whole = Span {
        trace_id: trace_id.to_vec(),
        span_id: span_id.to_vec(),
        parent_span_id: if root { Vec::new() } else { parent.to_vec() },
        name: sent.name,
        start_time_unix_nano: sent.start_time_unix_nano,
        end_time_unix_nano: sent.end_time_unix_nano,
        attributes: kept(attributes),
        events: sent.events.iter().zip(seen).map(|(sent, seen)| event(sent, seen)).collect(),
        links: sent.links.iter().map(link).collect(),
        status: sent.status.and_then(status),
        ..Span::default()
    };
    Ok((trace_id, whole))
}

/// Returns the attributes of an event or a link, which MLflow stores unchanged, except that bytes
/// become text and keys are deduplicated.
fn plain(attributes: JsonObject) -> Vec<KeyValue> {
    attributes.into_iter().map(|(key, value)| entry(key, message(value))).collect()
}

fn seen(sent: &span::Event) -> SpanEvent {
    SpanEvent { name: sent.name.clone(), attributes: dictionary(&sent.attributes) }
}

fn event(sent: &span::Event, seen: SpanEvent) -> span::Event {
    span::Event {
        time_unix_nano: sent.time_unix_nano,
        name: seen.name,
        attributes: plain(seen.attributes),
        ..span::Event::default()
    }
}

fn link(sent: &span::Link) -> span::Link {
    let id = |id: &[u8], length: usize| {
        let significant = &id[id.iter().position(|byte| *byte != 0).unwrap_or(id.len())..];
        let mut whole = vec![0; length.saturating_sub(significant.len())];
        whole.extend_from_slice(significant);
        whole
    };
    span::Link {
        trace_id: id(&sent.trace_id, 16),
        span_id: id(&sent.span_id, 8),
        attributes: plain(dictionary(&sent.attributes)),
        ..span::Link::default()
    }
}

/// Converts a status. Only errors have a message.
pub(crate) fn status(sent: Status) -> Option<Status> {
    match sent.code() {
        StatusCode::Unset => None,
        StatusCode::Ok => Some(Status { message: String::new(), ..sent }),
        StatusCode::Error => Some(sent),
    }
}
