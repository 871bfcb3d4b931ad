//! Archived spans: the file `traces.pb`, which MLflow's own server and other programs read, and what
//! remains of a span in the table.

use std::fmt;

use mlflow_api::Json;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status, TracesData, span};
use prost::Message;

use crate::translate::{keys, parsed};
use crate::values::{decoded, entry, message};

/// Maximum depth of nested messages in the file. Parsers of protobuf refuse messages that are nested
/// more than 100 levels deep.
const MAX_DEPTH: usize = 90;
/// Depth of an attribute's value: below the file, a resource, a scope, a span, and the attribute.
const VALUE_DEPTH: usize = 5;

/// Attributes that remain in the table, because filters and charts use them. MLflow's database has
/// columns for them.
const REMAINING: [&str; 4] = [keys::SPAN_TYPE, keys::MODEL, keys::PROVIDER, keys::COST];

/// The reason why the spans of a trace cannot be archived. MLflow marks such traces with
/// `MALFORMED_TRACE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MalformedSpans {
    /// There are no spans.
    Empty,
    /// The spans have different trace ids.
    SeveralTraces,
    /// An integer does not fit into 64 bits.
    LargeInteger,
    /// A value is nested too deeply to be parsed.
    NestedTooDeeply,
}

impl fmt::Display for MalformedSpans {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str(match self {
            Self::Empty => "the trace has no spans",
            Self::SeveralTraces => "the spans have different trace ids",
            Self::LargeInteger => "an attribute contains an integer of more than 64 bits",
            Self::NestedTooDeeply => "an attribute is nested too deeply",
        })
    }
}

impl std::error::Error for MalformedSpans {}

/// Encodes the spans of a trace as the content of a file `traces.pb` (`spans_to_traces_data_pb`):
/// roots first, then by start time and id. Attributes have their values instead of JSON texts.
///
/// # Errors
/// Fails if MLflow would not write the spans, or could not read the file.
pub fn to_archive(spans: &[Span]) -> Result<Vec<u8>, MalformedSpans> {
    let first = spans.first().ok_or(MalformedSpans::Empty)?;
    if spans.iter().any(|span| span.trace_id != first.trace_id) {
        return Err(MalformedSpans::SeveralTraces);
    }
    let mut archived: Vec<_> = spans.iter().map(archived).collect::<Result<_, _>>()?;
    sort(&mut archived);
    let scope_spans = ScopeSpans { spans: archived, ..ScopeSpans::default() };
    let resource_spans = ResourceSpans {
        resource: Some(Resource::default()),
        scope_spans: vec![scope_spans],
        ..ResourceSpans::default()
    };
    Ok(TracesData { resource_spans: vec![resource_spans] }.encode_to_vec())
}

/// Sorts the spans of an archived trace as MLflow returns them: roots first, then by start time and
/// id.
pub(crate) fn sort(spans: &mut [Span]) {
    spans.sort_by(|a, b| {
        let key = |span: &Span| (!span.parent_span_id.is_empty(), span.start_time_unix_nano);
        key(a).cmp(&key(b)).then_with(|| a.span_id.cmp(&b.span_id))
    });
}

/// Returns what remains of a span in the table after its trace was archived: the fields for which
/// MLflow's database has columns. [`is_archived`] recognizes the result.
#[must_use]
pub fn without_content(span: &Span) -> Span {
    let remains = |attribute: &&KeyValue| REMAINING.contains(&attribute.key.as_str());
    let attributes: Vec<_> = span.attributes.iter().filter(remains).cloned().collect();
    let dropped = span.attributes.len().saturating_sub(attributes.len()).max(1);
    Span {
        trace_id: span.trace_id.clone(),
        span_id: span.span_id.clone(),
        parent_span_id: span.parent_span_id.clone(),
        name: span.name.clone(),
        start_time_unix_nano: span.start_time_unix_nano,
        end_time_unix_nano: span.end_time_unix_nano,
        attributes,
        status: span.status.as_ref().map(|status| Status { code: status.code, ..Status::default() }),
        dropped_attributes_count: u32::try_from(dropped).unwrap_or(u32::MAX),
        ..Span::default()
    }
}

/// Checks whether a span was returned by [`without_content`]. No other stored span has a count of
/// dropped attributes.
#[must_use]
pub fn is_archived(span: &Span) -> bool {
    span.dropped_attributes_count > 0
}

fn archived(span: &Span) -> Result<Span, MalformedSpans> {
    let attributes = span.attributes.iter().map(|attribute| {
        // An attribute whose text is not JSON is archived as a text, and an empty text as no value.
        let value = match decoded(attribute.value.as_ref()) {
            Json::Text(text) if text.is_empty() => Json::Null,
            stored => parsed(&stored),
        };
        Ok(entry(attribute.key.clone(), checked(value)?))
    });
    let events = span.events.iter().map(|event| {
        let attributes = plain(&event.attributes)?;
        Ok(span::Event {
            attributes,
            name: event.name.clone(),
            ..span::Event { time_unix_nano: event.time_unix_nano, ..span::Event::default() }
        })
    });
    // MLflow leaves out links whose trace or span ID is invalid.
    let links = span.links.iter().filter(|link| link.trace_id.len() == 16 && link.span_id.len() == 8).map(|link| {
        let (trace_id, span_id) = (link.trace_id.clone(), link.span_id.clone());
        Ok(span::Link { trace_id, span_id, attributes: plain(&link.attributes)?, ..span::Link::default() })
    });
    Ok(Span {
        trace_id: span.trace_id.clone(),
        span_id: span.span_id.clone(),
        parent_span_id: span.parent_span_id.clone(),
        name: span.name.clone(),
        start_time_unix_nano: span.start_time_unix_nano,
        end_time_unix_nano: span.end_time_unix_nano,
        attributes: attributes.collect::<Result<_, _>>()?,
        events: events.collect::<Result<_, _>>()?,
        links: links.collect::<Result<_, _>>()?,
        status: Some(span.status.clone().unwrap_or_default()),
        ..Span::default()
    })
}

fn plain(attributes: &[KeyValue]) -> Result<Vec<KeyValue>, MalformedSpans> {
    // The values of events and links are one level deeper than those of spans.
    let is_deep = |attribute: &&KeyValue| attribute.value.as_ref().is_some_and(|value| !fits(value, VALUE_DEPTH + 1));
    if attributes.iter().any(|attribute| is_deep(&attribute)) {
        return Err(MalformedSpans::NestedTooDeeply);
    }
    Ok(attributes.to_vec())
}

/// Converts a value to a message, unless the message would differ or could not be parsed.
fn checked(value: Json) -> Result<AnyValue, MalformedSpans> {
    if has_large_integer(&value) {
        return Err(MalformedSpans::LargeInteger);
    }
    let message = message(value);
    if fits(&message, VALUE_DEPTH) { Ok(message) } else { Err(MalformedSpans::NestedTooDeeply) }
}

fn has_large_integer(value: &Json) -> bool {
    match value {
        Json::Integer(digits) => digits.parse::<i64>().is_err(),
        Json::List(items) => items.iter().any(has_large_integer),
        Json::Object(object) => object.iter().any(|(_, value)| has_large_integer(value)),
        _ => false,
    }
}

/// Checks whether a value at this depth of the file can be parsed.
fn fits(value: &AnyValue, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    match &value.value {
        Some(Value::ArrayValue(array)) => array.values.iter().all(|item| fits(item, depth + 2)),
        Some(Value::KvlistValue(list)) => {
            list.values.iter().filter_map(|entry| entry.value.as_ref()).all(|value| fits(value, depth + 3))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &str = r#"{"trace_id": "AAAAAAAAAAAAAAAAAAABIw==", "span_id": "AAAAAAAAAAE=", "parent_span_id": null, "name": "plan é", "start_time_unix_nano": 5, "end_time_unix_nano": 9, "events": [{"name": "e", "time_unix_nano": 6, "attributes": {"n": 1, "f": 0.5}}], "status": {"code": "STATUS_CODE_ERROR", "message": "no"}, "attributes": {"mlflow.traceRequestId": "\"tr-00000000000000000000000000000123\"", "mlflow.spanType": "\"LLM\"", "i": "[1, true, null, \"x\", {\"a\": 1.5}]"}, "links": []}"#;

    fn recorded() -> Span {
        crate::of_recorded_json(RECORDED).unwrap()
    }

    fn with_attribute(json: String) -> Span {
        let mut span = recorded();
        span.attributes.push(entry("k".to_owned(), message(Json::Text(json))));
        span
    }

    #[test]
    fn an_archive_is_read_as_it_was_written() {
        let root = recorded();
        let mut child =
            Span { span_id: vec![0, 0, 0, 0, 0, 0, 0, 2], parent_span_id: root.span_id.clone(), ..root.clone() };
        child.start_time_unix_nano = 1;
        let file = to_archive(&[child.clone(), root.clone()]).unwrap();
        assert_eq!(crate::of_archive(&file), Some(vec![root, child]));
    }

    #[test]
    fn spans_that_no_program_could_read_are_not_archived() {
        let nested = |levels: usize| with_attribute(format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels)));
        let deepest = to_archive(&[nested(28)]).unwrap();
        assert_eq!(crate::of_archive(&deepest).unwrap().len(), 1);
        let other = Span { trace_id: vec![1; 16], ..recorded() };
        for (spans, expected) in [
            (vec![], MalformedSpans::Empty),
            (vec![recorded(), other], MalformedSpans::SeveralTraces),
            (vec![with_attribute("[9223372036854775808]".to_owned())], MalformedSpans::LargeInteger),
            (vec![nested(29)], MalformedSpans::NestedTooDeeply),
        ] {
            assert_eq!(to_archive(&spans), Err(expected));
        }
    }

    #[test]
    fn what_remains_of_a_span_has_the_fields_of_columns() {
        let (whole, remains) = (recorded(), without_content(&recorded()));
        assert_eq!(crate::facts(&remains), crate::facts(&whole));
        assert!(is_archived(&remains) && !is_archived(&whole));
        assert_eq!((remains.attributes.len(), remains.events.len()), (1, 0));
        let packed = crate::pack(std::slice::from_ref(&remains), 1 << 20);
        assert_eq!(crate::unpack(&packed.parts.concat()), Ok(vec![remains]));
    }
}
