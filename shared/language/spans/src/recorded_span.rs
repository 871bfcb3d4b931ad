//! Spans as MLflow's own server and clients have stored them: in the column `spans.content`, in
//! `traces.json`, and in the archive's `traces.pb`.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::MultiGzDecoder;
use mlflow_api::Json;
use mlflow_api::json::JsonObject;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status, TracesData, span};
use prost::Message;

use crate::attributes::{REQUEST_ID, SpanAttributes, dumped, kept};
use crate::ids::trace_id_text;
use crate::pack::MAX_UNPACKED_BYTES;
use crate::translate::set_type;
use crate::values::{decoded, dictionary, entry, message};

/// First bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads a span from the JSON in which MLflow's server stores it. It also reads the JSON of MLflow
/// 3.5.0, whose ids are in hex, and that of MLflow 2. As MLflow does when it loads a span, the type
/// is derived from attributes of other SDKs if the span has none. Returns `None` for any other JSON.
#[must_use]
pub fn of_recorded_json(text: &str) -> Option<Span> {
    of_json(Json::parse(text)?.object()?)
}

/// Reads the spans of a file `traces.json`. Returns `None` if the content does not have this
/// format.
#[must_use]
pub fn of_artifact(file: &[u8]) -> Option<Vec<Span>> {
    let file = Json::parse(std::str::from_utf8(file).ok()?)?;
    let Json::List(spans) = file.object()?.get("spans")? else { return None };
    spans.iter().map(|span| of_json(span.object()?)).collect()
}

/// Reads the spans of an archived trace, a file `traces.pb` that may be compressed with gzip: roots
/// first, then by start time and id. Returns `None` if the content does not have this format.
#[must_use]
pub fn of_archive(file: &[u8]) -> Option<Vec<Span>> {
    let mut unzipped = Vec::new();
    let file = if file.starts_with(&GZIP) {
        let most = MAX_UNPACKED_BYTES as u64;
        MultiGzDecoder::new(file).take(most).read_to_end(&mut unzipped).ok()?;
        unzipped.as_slice()
    } else {
        file
    };
    let data = TracesData::decode(file).ok()?;
    let spans = data.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    let mut spans: Vec<_> = spans.flat_map(|scope| scope.spans).map(of_archived).collect::<Option<_>>()?;
    crate::archived_spans::sort(&mut spans);
    Some(spans)
}

/// Makes a span belong to another trace.
pub fn move_to_trace(span: &mut Span, trace: [u8; 16]) {
    span.trace_id = trace.to_vec();
    let id = entry(REQUEST_ID.to_owned(), message(dumped(&Json::Text(trace_id_text(&trace)))));
    if let Some(known) = span.attributes.iter_mut().find(|attribute| attribute.key == REQUEST_ID) {
        *known = id;
    }
}

/// Converts a span of the archive, whose attributes have their values instead of JSON texts.
fn of_archived(sent: Span) -> Option<Span> {
    let attributes =
        sent.attributes.iter().map(|attribute| (attribute.key.clone(), dumped(&decoded(attribute.value.as_ref()))));
    let events = sent.events.iter().map(|event| span::Event {
        time_unix_nano: event.time_unix_nano,
        name: event.name.clone(),
        attributes: plain(dictionary(&event.attributes)),
        ..span::Event::default()
    });
    let links = sent.links.iter().map(|link| span::Link {
        trace_id: link.trace_id.clone(),
        span_id: link.span_id.clone(),
        attributes: plain(dictionary(&link.attributes)),
        ..span::Link::default()
    });
    let ids = SpanIds {
        trace: crate::ids::sized(&sent.trace_id)?,
        span: crate::ids::sized(&sent.span_id)?,
        parent: crate::ids::sized(&sent.parent_span_id)?,
    };
    Some(Span {
        start_time_unix_nano: sent.start_time_unix_nano,
        end_time_unix_nano: sent.end_time_unix_nano,
        events: events.collect(),
        links: links.collect(),
        status: sent.status.and_then(crate::stored_span::status),
        ..ids.span(sent.name, attributes.collect())
    })
}

/// The ids of a span. A root has the parent 0.
struct SpanIds {
    trace: [u8; 16],
    span: [u8; 8],
    parent: [u8; 8],
}

impl SpanIds {
    /// Creates a span with these ids.
    fn span(&self, name: String, mut attributes: SpanAttributes) -> Span {
        set_type(&mut attributes);
        Span {
            trace_id: self.trace.to_vec(),
            span_id: self.span.to_vec(),
            parent_span_id: if self.parent == [0; 8] { Vec::new() } else { self.parent.to_vec() },
            name,
            attributes: kept(attributes),
            ..Span::default()
        }
    }
}

fn of_json(span: &JsonObject) -> Option<Span> {
    let empty = JsonObject::default();
    let attributes = span.get("attributes").and_then(Json::object).unwrap_or(&empty);
    let attributes = attributes.iter().map(|(key, value)| (key.to_owned(), value.clone())).collect();
    let context = span.get("context").and_then(Json::object);
    let (trace, own) = context.map_or_else(
        || (span.get("trace_id"), span.get("span_id")),
        |context| (context.get("trace_id"), context.get("span_id")),
    );
    let parent = span.get(if context.is_some() { "parent_id" } else { "parent_span_id" });
    let ids = SpanIds {
        trace: id(trace)?,
        span: id(own)?,
        parent: if parent.is_some_and(Json::is_true) { id(parent)? } else { [0; 8] },
    };
    let (start, end) =
        if context.is_some() { ("start_time", "end_time") } else { ("start_time_unix_nano", "end_time_unix_nano") };
    let list = |name: &str| match span.get(name) {
        Some(Json::List(items)) => items.iter().filter_map(Json::object).collect(),
        _ => Vec::new(),
    };
    Some(Span {
        start_time_unix_nano: time(span.get(start))?,
        end_time_unix_nano: time(span.get(end))?,
        events: list("events").into_iter().map(event).collect::<Option<_>>()?,
        links: list("links").into_iter().filter_map(link).collect(),
        status: crate::stored_span::status(status(span)?),
        ..ids.span(text(span.get("name"))?.to_owned(), attributes)
    })
}

fn text(value: Option<&Json>) -> Option<&str> {
    match value {
        Some(Json::Text(text)) => Some(text),
        None | Some(Json::Null) => Some(""),
        Some(_) => None,
    }
}

/// Reads a time in ns. A missing time, such as the end time of a span that has not ended, is stored
/// as 0.
fn time(value: Option<&Json>) -> Option<u64> {
    let time: i64 = match value {
        None | Some(Json::Null) => 0,
        Some(Json::Integer(digits) | Json::Text(digits)) => digits.parse().ok()?,
        Some(_) => return None,
    };
    u64::try_from(time).ok()
}

/// Reads an id: in base64, or in hex with one of MLflow's prefixes.
fn id<const N: usize>(value: Option<&Json>) -> Option<[u8; N]> {
    let Some(Json::Text(text)) = value else { return None };
    if text.len() == N.div_ceil(3) * 4
        && let Ok(bytes) = STANDARD.decode(text)
        && let Ok(id) = bytes.try_into()
    {
        return Some(id);
    }
    let digits = text.rsplit('/').next().unwrap_or_default();
    let digits = ["tr-", "0x"].iter().find_map(|prefix| digits.strip_prefix(prefix)).unwrap_or(digits);
    let number = u128::from_str_radix(digits, 16).ok()?;
    crate::ids::sized(&number.to_be_bytes())
}

fn event(event: &JsonObject) -> Option<span::Event> {
    let attributes = event.get("attributes").and_then(Json::object).cloned().unwrap_or_default();
    Some(span::Event {
        time_unix_nano: time(event.get("time_unix_nano").or_else(|| event.get("timestamp")))?,
        name: text(event.get("name"))?.to_owned(),
        attributes: plain(attributes),
        ..span::Event::default()
    })
}

fn link(link: &JsonObject) -> Option<span::Link> {
    Some(span::Link {
        trace_id: id::<16>(link.get("trace_id"))?.to_vec(),
        span_id: id::<8>(link.get("span_id"))?.to_vec(),
        attributes: plain(link.get("attributes").and_then(Json::object).cloned().unwrap_or_default()),
        ..span::Link::default()
    })
}

fn plain(attributes: JsonObject) -> Vec<opentelemetry_proto::tonic::common::v1::KeyValue> {
    attributes.into_iter().map(|(key, value)| entry(key, message(value))).collect()
}

/// Reads the status, in the form of MLflow 3, of MLflow 3.5.0, or of MLflow 2.
fn status(span: &JsonObject) -> Option<Status> {
    let (code, message) = match span.get("status").and_then(Json::object) {
        Some(status) => (text(status.get("code"))?, text(status.get("message"))?),
        None => (text(span.get("status_code"))?, text(span.get("status_message"))?),
    };
    let code = match code.strip_prefix("STATUS_CODE_").unwrap_or(code) {
        "OK" => StatusCode::Ok,
        "ERROR" => StatusCode::Error,
        "UNSET" | "" => StatusCode::Unset,
        _ => return None,
    };
    Some(Status { message: message.to_owned(), code: code.into() })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans};

    use super::*;

    const RECORDED: &str = r#"{"trace_id": "AAAAAAAAAAAAAAAAAAABIw==", "span_id": "AAAAAAAAAAE=", "parent_span_id": "AAAAAAAAAAI=", "name": "plan é", "start_time_unix_nano": 5, "end_time_unix_nano": null, "events": [{"name": "e", "time_unix_nano": 6, "attributes": {"n": 1, "f": 0.5}}], "status": {"code": "STATUS_CODE_ERROR", "message": "no"}, "attributes": {"mlflow.traceRequestId": "\"tr-1\"", "mlflow.spanType": "\"LLM\"", "i": "[1, NaN]"}, "links": [{"trace_id": "tr-00000000000000000000000000000009", "span_id": "0000000000000003", "attributes": null}]}"#;

    #[test]
    fn a_recorded_span_is_written_as_it_was() {
        let span = of_recorded_json(RECORDED).unwrap();
        let expected = RECORDED.replace("\"end_time_unix_nano\": null", "\"end_time_unix_nano\": 0");
        assert_eq!(crate::artifact_json(&span), expected);
        let file = format!("{{\"spans\": [{RECORDED}], \"request\": \"x\"}}");
        assert_eq!(of_artifact(file.as_bytes()), Some(vec![span]));
        assert_eq!(of_artifact(b"{}"), None);
    }

    #[test]
    fn spans_of_older_versions_are_read() {
        let two = r#"{"name": "a", "context": {"span_id": "0x1", "trace_id": "0x123"}, "parent_id": null, "start_time": 5,
            "end_time": 7, "status_code": "OK", "status_message": "", "attributes": {"k": "\"v\""},
            "events": [{"name": "e", "timestamp": 6, "attributes": {}}]}"#;
        let span = of_recorded_json(two).unwrap();
        assert_eq!((span.trace_id[14], span.trace_id[15], span.span_id[7]), (1, 0x23, 1));
        assert_eq!((span.parent_span_id.len(), span.end_time_unix_nano, span.events[0].time_unix_nano), (0, 7, 6));
        let three = two.replace(
            r#""context": {"span_id": "0x1", "trace_id": "0x123"}"#,
            r#""trace_id": "tr-00000000000000000000000000000123", "span_id": "0000000000000001", "parent_span_id": null,
            "start_time_unix_nano": "5", "end_time_unix_nano": "7", "status": {"code": "OK"}"#,
        );
        assert_eq!(of_recorded_json(&three).unwrap(), span);
        assert_eq!(of_recorded_json("[]"), None);
        assert_eq!(of_recorded_json("{\"trace_id\": 3}"), None);
    }

    #[test]
    fn archives_are_read_with_their_values_as_json() {
        let mut span = of_recorded_json(RECORDED).unwrap();
        span.attributes = vec![entry("i".to_owned(), message(Json::List(vec![Json::Float(0.5)])))];
        let scope = ScopeSpans { spans: vec![span], ..ScopeSpans::default() };
        let resource = ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() };
        let plain = TracesData { resource_spans: vec![resource] }.encode_to_vec();
        let read = of_archive(&plain).unwrap();
        assert!(crate::artifact_json(&read[0]).contains(r#""attributes": {"i": "[0.5]"}"#));
        let mut zipped = GzEncoder::new(Vec::new(), Compression::default());
        zipped.write_all(&plain).unwrap();
        assert_eq!(of_archive(&zipped.finish().unwrap()), Some(read));
        assert_eq!(of_archive(b"\xff"), None);
    }
}
