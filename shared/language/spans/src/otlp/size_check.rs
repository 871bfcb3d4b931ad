//! Counts the parts of a body before it is parsed, to reject bodies that would need too much
//! memory. A span of two bytes takes hundreds of bytes in memory, and repeated text compresses to
//! almost nothing. Counting itself takes no memory per part.

use mlflow_api::json::marks;
use prost::bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint};

use crate::export_error::ExportError;

/// Maximum number of messages in an export. Messages are spans, events, links, attributes with
/// their values, values in lists, and names of attributes. Each takes up to 300 bytes in memory.
/// JSON has about four punctuation marks (`{`, `[`, `,`) per message.
const MAX_MESSAGES: usize = 300_000;
const MAX_JSON_MARKS: usize = 4 * MAX_MESSAGES;
/// Maximum nesting depth, which is also the limit of prost.
const MAX_DEPTH: usize = 100;

/// The parts that are counted, identified by their message and field number.
#[derive(Clone, Copy)]
enum CountedPart {
    Traces,
    ResourceSpans,
    ScopeSpans,
    Resource,
    Entity,
    Name,
    Scope,
    Span,
    Event,
    Link,
    KeyValue,
    AnyValue,
    List,
    KeyValues,
}

impl CountedPart {
    /// Returns the part that the content of a field is, or `None` if it is not counted.
    fn field(self, number: u32) -> Option<Self> {
        Some(match (self, number) {
            (Self::Traces, 1) => Self::ResourceSpans,
            (Self::ResourceSpans, 1) => Self::Resource,
            (Self::ResourceSpans, 2) => Self::ScopeSpans,
            (Self::ScopeSpans, 1) => Self::Scope,
            (Self::ScopeSpans, 2) => Self::Span,
            (Self::Span, 11) => Self::Event,
            (Self::Span, 13) => Self::Link,
            (Self::Resource | Self::KeyValues, 1)
            | (Self::Scope | Self::Event, 3)
            | (Self::Link, 4)
            | (Self::Span, 9) => Self::KeyValue,
            // An entity refers to attributes by name. Each name takes 24 bytes, no matter how short
            // it is.
            (Self::Resource, 3) => Self::Entity,
            (Self::Entity, 3 | 4) => Self::Name,
            (Self::KeyValue, 2) | (Self::List, 1) => Self::AnyValue,
            (Self::AnyValue, 5) => Self::List,
            (Self::AnyValue, 6) => Self::KeyValues,
            _ => return None,
        })
    }
}

/// Rejects a protobuf message that would take too much memory. An unreadable message passes,
/// because reading it reports the error.
pub(super) fn check_protobuf(body: &[u8]) -> Result<(), ExportError> {
    let mut count = 0;
    walk(body, CountedPart::Traces, &mut count, 0);
    check(count, MAX_MESSAGES)
}

/// Rejects a JSON message that would take too much memory. Only the punctuation marks between
/// values are counted.
pub(super) fn check_json(body: &[u8]) -> Result<(), ExportError> {
    check(marks(body, |byte| matches!(byte, b'{' | b'[' | b',')), MAX_JSON_MARKS)
}

fn check(count: usize, most: usize) -> Result<(), ExportError> {
    if count <= most {
        return Ok(());
    }
    Err(ExportError::new(413, format!("The request has more than {MAX_MESSAGES} spans, attributes and other values")))
}

/// Counts the messages within a message, as far as it can be read, and stops at the limit.
fn walk(mut rest: &[u8], kind: CountedPart, count: &mut usize, depth: usize) {
    while rest.has_remaining() && *count <= MAX_MESSAGES {
        let Ok((number, wire)) = decode_key(&mut rest) else { return };
        let skipped = match wire {
            WireType::Varint => decode_varint(&mut rest).map(|_| 0),
            WireType::SixtyFourBit => Ok(8),
            WireType::ThirtyTwoBit => Ok(4),
            WireType::LengthDelimited => decode_varint(&mut rest),
            // The fields of a group follow its start, and are read like fields of the message that
            // contains the group.
            WireType::StartGroup | WireType::EndGroup => Ok(0),
        };
        let Ok(Some((field, after))) =
            skipped.map(|length| rest.split_at_checked(usize::try_from(length).unwrap_or(usize::MAX)))
        else {
            return;
        };
        rest = after;
        if wire == WireType::LengthDelimited
            && let Some(inner) = kind.field(number)
        {
            // An attribute and its value are one object in memory.
            *count += usize::from(!matches!(kind, CountedPart::KeyValue));
            if depth < MAX_DEPTH {
                walk(field, inner, count, depth + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
    use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
    use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, TracesData};
    use prost::Message;
    use prost::encoding::{encode_key, encode_varint};

    use super::*;

    fn traces(spans: Vec<Span>) -> TracesData {
        let scope = ScopeSpans { spans, ..ScopeSpans::default() };
        TracesData { resource_spans: vec![ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() }] }
    }

    #[test]
    fn messages_are_counted_where_they_are() {
        let number = AnyValue { value: Some(Value::IntValue(1)) };
        let list = AnyValue { value: Some(Value::ArrayValue(ArrayValue { values: vec![number.clone(), number] })) };
        let attribute = KeyValue { key: "k".to_owned(), value: Some(list), ..KeyValue::default() };
        let span = Span {
            attributes: vec![attribute.clone()],
            events: vec![Event { attributes: vec![attribute.clone()], ..Event::default() }],
            links: vec![Link { attributes: vec![attribute], ..Link::default() }],
            name: "\u{a}\u{2}\u{a}\u{2}".to_owned(),
            start_time_unix_nano: 1,
            ..Span::default()
        };
        let mut count = 0;
        walk(&traces(vec![span]).encode_to_vec(), CountedPart::Traces, &mut count, 0);
        // One resource, scope, span, event and link, and three attributes, each of which has a
        // value, a list and two numbers.
        assert_eq!(count, 5 + 3 * 4);
    }

    /// Nests content in fields with these numbers, the outermost first.
    fn nested(path: &[u32], content: Vec<u8>) -> Vec<u8> {
        path.iter().rev().fold(content, |content, number| {
            let mut field = Vec::new();
            encode_key(*number, WireType::LengthDelimited, &mut field);
            encode_varint(content.len() as u64, &mut field);
            [field, content].concat()
        })
    }

    /// Decodes a message and encodes it again.
    fn kept(message: &[u8]) -> Option<Vec<u8>> {
        TracesData::decode(message).ok().map(|read| read.encode_to_vec())
    }

    /// Checks all fields of the message at the end of this path. If every repetition of a field is
    /// kept in memory, the repetitions must also be counted. Adds the paths of such fields to
    /// `repeated`.
    fn look(path: &[u32], repeated: &mut Vec<Vec<u32>>) {
        const TIMES: usize = 100;
        for number in 1..=20 {
            let below = [path, &[number]].concat();
            for wire in [WireType::LengthDelimited, WireType::Varint, WireType::ThirtyTwoBit, WireType::SixtyFourBit] {
                let mut field = Vec::new();
                encode_key(number, wire, &mut field);
                // An empty text, message or list, or a zero.
                let zeros = match wire {
                    WireType::ThirtyTwoBit => 4,
                    WireType::SixtyFourBit => 8,
                    _ => 1,
                };
                field.resize(field.len() + zeros, 0);
                let body = nested(path, field.repeat(TIMES));
                if kept(&body).is_some_and(|kept| kept.len() > TIMES) {
                    let mut count = 0;
                    walk(&body, CountedPart::Traces, &mut count, 0);
                    assert!(count >= TIMES, "{below:?} comes {TIMES} times, and {count} is counted");
                    repeated.push(below.clone());
                }
            }
            // An empty message can be distinguished from a text or bytes, because unknown fields in
            // it are lost.
            let empty = nested(&below, Vec::new());
            let is_message = kept(&empty).as_ref() == Some(&empty)
                && kept(&nested(&below, nested(&[2_000], Vec::new()))) == Some(empty);
            if is_message && below.len() < 9 {
                look(&below, repeated);
            }
        }
    }

    #[test]
    fn all_that_repeats_is_counted() {
        let mut repeated = Vec::new();
        look(&[], &mut repeated);
        // These paths cover all levels, from the traces to values in lists in the attributes of
        // events.
        for path in [&[1][..], &[1, 2, 2, 9], &[1, 1, 3, 4], &[1, 2, 1, 3], &[1, 2, 2, 11, 3, 2, 5, 1]] {
            assert!(repeated.iter().any(|found| found == path), "{path:?} of {repeated:?}");
        }
    }

    #[test]
    fn what_would_become_too_much_is_refused_unread() {
        let many = nested(&[1, 2], [0x12, 0x00].repeat(MAX_MESSAGES));
        assert_eq!(check_protobuf(&many).unwrap_err().status, 413);
        // Names of attributes in an entity of a resource, and the same number of bytes in the name
        // of a scope.
        let names = [0x1a, 0x00].repeat(MAX_MESSAGES + 1);
        assert_eq!(check_protobuf(&nested(&[1, 1, 3], names.clone())).unwrap_err().status, 413);
        assert!(check_protobuf(&nested(&[1, 2, 1, 1], names)).is_ok());
        let body = format!(
            "{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{}{{}}]}}]}}]}}",
            "{},".repeat(MAX_JSON_MARKS)
        );
        assert_eq!(check_json(body.as_bytes()).unwrap_err().status, 413);
        let text = format!("{{\"resourceSpans\":[{{\"x\":\"{}\\\"{{\"}}]}}", "{,[".repeat(MAX_MESSAGES));
        assert!(check_json(text.as_bytes()).is_ok());
    }

    #[test]
    fn what_cannot_be_read_passes() {
        for body in [[0x0a, 0xff, 0xff].as_slice(), &[0x0b], &[0xff; 30], &[0x0a, 0x02, 0x12]] {
            assert!(check_protobuf(body).is_ok());
        }
    }
}
