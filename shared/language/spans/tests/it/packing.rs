//! Tests of packed spans. They can be unpacked, also by later versions, and neither input from
//! clients nor a corrupt item causes a panic.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, KeyValueList};
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status, TracesData};
use proptest::prelude::*;
use prost::Message;
use serde_json::{json, to_value};
use spans::{ExportFormat, artifact_json, facts, join, json as answered, pack, read, summarize, unpack, unpack_within};

const PROTOBUF: ExportFormat = ExportFormat::Protobuf;
const JSON: ExportFormat = ExportFormat::Json;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// `ten_spans.packed` contains the trace of ten spans that the cost measurements send. It was
/// packed when the format was introduced, so it must remain readable.
#[test]
fn what_was_packed_by_earlier_versions_is_read() {
    let exports = read(JSON, None, &fixture("ten_spans.json")).unwrap();
    assert_eq!(unpack(&fixture("ten_spans.packed")).unwrap(), exports[0].spans);
}

#[test]
fn a_trace_of_ten_spans_fits_into_two_write_units() {
    let exports = read(JSON, None, &fixture("ten_spans.json")).unwrap();
    let packed = pack(&exports[0].spans, 380 << 10);
    let [part] = packed.parts.as_slice() else { panic!("one part") };
    assert!(part.len() < 1_800, "{} bytes", part.len());
    let summary = summarize(&exports[0].spans).unwrap();
    assert_eq!(
        summary.usage.tokens().as_deref(),
        Some("{\"input_tokens\": 639, \"output_tokens\": 95, \"total_tokens\": 734}")
    );
    assert_eq!(summary.spans, 10);
}

#[test]
fn the_deepest_value_that_is_read_comes_back() {
    let mut deepest = 0;
    for depth in 1..120 {
        let value = (0..depth).fold(json!({"stringValue": "x"}), |value, _| json!({"arrayValue": {"values": [value]}}));
        let attributes = json!([{"key": "deep", "value": value}]);
        let span = json!({"traceId": "01", "spanId": "02", "attributes": attributes,
            "events": [{"name": "gen_ai.content.prompt", "attributes": [{"key": "gen_ai.prompt", "value": value}]}]});
        let body = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).to_string();
        let in_json = read(JSON, None, body.as_bytes());

        let value = (0..depth).fold(text("x"), |value, _| array(vec![value]));
        let event = Event { name: "gen_ai.content.prompt".to_owned(), ..Event::default() };
        let event = Event { attributes: vec![attribute("gen_ai.prompt", value.clone())], ..event };
        let span = Span { attributes: vec![attribute("deep", value)], events: vec![event], ..span_of(1, 2) };
        let in_protobuf = read(PROTOBUF, None, &message(vec![span]));
        for exports in [in_json, in_protobuf].into_iter().flatten() {
            deepest = depth;
            let spans = unpack(&pack(&exports[0].spans, 1 << 20).parts.concat()).unwrap();
            assert_eq!(spans, exports[0].spans);
            let _ = (to_value(answered(&spans[0])).unwrap(), artifact_json(&spans[0]), summarize(&spans).unwrap());
        }
    }
    assert!((30..60).contains(&deepest), "{deepest}");
}

#[test]
fn a_small_body_that_becomes_large_is_refused() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::copy(&mut std::io::Read::take(std::io::repeat(b' '), 40 << 20), &mut encoder).unwrap();
    let refusal = read(JSON, Some("gzip"), &encoder.finish().unwrap()).unwrap_err();
    assert_eq!(refusal.status, 413);
}

#[test]
fn spans_that_become_larger_than_can_be_read_are_refused() {
    // MLflow stores a value as JSON, in which each of these characters takes six bytes.
    let attributes = vec![attribute("mlflow.spanInputs", text(&"\u{1}".repeat(11 << 20)))];
    let body = message(vec![Span { attributes, ..span_of(1, 1) }]);
    assert_eq!(read(PROTOBUF, None, &body).unwrap_err().status, 413);
}

#[test]
fn spans_are_unpacked_within_what_is_left() {
    let spans = [span_of(1, 1), span_of(1, 2)];
    let packed = pack(&spans, 1 << 20).parts.concat();
    let mut left = 1_000;
    assert_eq!(unpack_within(&packed, &mut left).unwrap().unwrap(), spans);
    let taken = 1_000 - left;
    assert!((50..500).contains(&taken), "{taken}");
    let mut too_little = taken - 1;
    assert_eq!(unpack_within(&packed, &mut too_little).unwrap(), None);
    assert_eq!(too_little, taken - 1);
}

/// A writer that accepts a limited number of bytes.
struct Room(usize);

impl std::io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the CPU time of this thread, which does not include that of other programs.
fn now() -> std::time::Duration {
    std::time::Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime)).unwrap()
}

/// Eight attributes have a million values each. If the response ends within the first attribute,
/// the other attributes are not parsed.
#[test]
fn an_answer_is_made_as_far_as_there_is_room() {
    let long = format!("[{}0]", "0,".repeat(1_000_000));
    let span = |attributes: usize| Span {
        attributes: (0..attributes).map(|_| attribute("mlflow.spanInputs", text(&long))).collect(),
        ..span_of(1, 1)
    };
    let took = |span: &Span| {
        let began = now();
        let written = serde_json::to_writer(Room(1_000), &answered(span));
        assert!(written.unwrap_err().is_io());
        now().saturating_sub(began)
    };
    let fastest = |span: &Span| (0..5).map(|_| took(span)).min().unwrap();
    let (one, eight) = (fastest(&span(1)), fastest(&span(8)));
    assert!(eight < one * 3, "{one:?}, {eight:?}");
}

/// Eight times as many attributes take about eight times as long. A quadratic algorithm would take
/// 64 times as long.
#[test]
fn a_span_with_many_attributes_is_read_in_linear_time() {
    let shortest = |count: usize| {
        let attributes =
            (0..count).map(|number| attribute(&format!("mlflow.traceTag.{number}"), text("value"))).collect();
        let body = message(vec![Span { attributes, ..span_of(1, 1) }]);
        let read = || {
            let began = now();
            let exports = read(PROTOBUF, None, &body).unwrap();
            assert_eq!(exports[0].spans[0].attributes.len(), count + 1);
            assert_eq!(summarize(&exports[0].spans).unwrap().tags.len(), count);
            now().saturating_sub(began)
        };
        (0..3).map(|_| read()).min().unwrap()
    };
    let (few, many) = (shortest(5_000), shortest(40_000));
    assert!(many < few * 32, "{few:?}, {many:?}");
}

fn text(text: &str) -> AnyValue {
    AnyValue { value: Some(Value::StringValue(text.to_owned())) }
}

fn array(values: Vec<AnyValue>) -> AnyValue {
    AnyValue { value: Some(Value::ArrayValue(ArrayValue { values })) }
}

fn attribute(key: &str, value: AnyValue) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }
}

fn span_of(trace: u8, span: u8) -> Span {
    Span { trace_id: vec![trace; 16], span_id: vec![span; 8], ..Span::default() }
}

fn message(spans: Vec<Span>) -> Vec<u8> {
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    TracesData { resource_spans: vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }] }.encode_to_vec()
}

/// Attribute names, some of which have a meaning for MLflow.
fn key() -> impl Strategy<Value = String> {
    const KNOWN: &[&str] = &[
        "mlflow.spanType",
        "mlflow.spanInputs",
        "mlflow.spanOutputs",
        "mlflow.chat.tokenUsage",
        "mlflow.llm.cost",
        "mlflow.llm.model",
        "mlflow.llm.provider",
        "mlflow.traceRequestId",
        "mlflow.traceTag.x",
        "gen_ai.operation.name",
        "gen_ai.agent.name",
        "gen_ai.input.messages",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "ai.operationId",
        "ai.prompt.tools",
        "ai.prompt.messages",
        "span.type",
        "input_tokens",
        "tool_input",
        "session.id",
        "user.id",
        "lk.user_input",
        "gen_ai.prompt.0.content",
    ];
    prop_oneof![4 => prop::sample::select(KNOWN).prop_map(str::to_owned), 1 => "\\PC{0,6}"]
}

fn words() -> impl Strategy<Value = String> {
    const KNOWN: &[&str] = &[
        "LLM",
        "UNKNOWN",
        "chat",
        "gemini-cli",
        "ai.generateText.doGenerate",
        "llm_request",
        "tool",
        "gpt-4o",
        "openai",
        "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": 1}]}]}",
        "{\"input_tokens\": \"x\", \"total_tokens\": 1e400}",
        "[1, [], {\"parts\": [1]}]",
        "\"7\"",
        "-1",
        "NaN",
        "99999999999999999999999999999999999999999999",
    ];
    prop_oneof![3 => prop::sample::select(KNOWN).prop_map(str::to_owned), 1 => "\\PC{0,30}"]
}

fn value() -> impl Strategy<Value = AnyValue> {
    let leaf = prop_oneof![
        Just(None),
        words().prop_map(|text| Some(Value::StringValue(text))),
        any::<bool>().prop_map(|value| Some(Value::BoolValue(value))),
        any::<i64>().prop_map(|number| Some(Value::IntValue(number))),
        any::<f64>().prop_map(|number| Some(Value::DoubleValue(number))),
        prop::collection::vec(any::<u8>(), 0..6).prop_map(|bytes| Some(Value::BytesValue(bytes))),
        any::<i32>().prop_map(|index| Some(Value::StringValueStrindex(index))),
    ];
    leaf.prop_map(|value| AnyValue { value }).prop_recursive(4, 12, 4, |inner| {
        let entries = prop::collection::vec((key(), inner.clone()), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(array),
            entries.prop_map(|entries| {
                let values = entries.iter().map(|(key, value)| attribute(key, value.clone())).collect();
                AnyValue { value: Some(Value::KvlistValue(KeyValueList { values })) }
            }),
        ]
    })
}

fn attributes() -> impl Strategy<Value = Vec<KeyValue>> {
    let entries = prop::collection::vec((key(), value()), 0..6);
    entries.prop_map(|entries| entries.iter().map(|(key, value)| attribute(key, value.clone())).collect())
}

fn span() -> impl Strategy<Value = Span> {
    const EVENTS: &[&str] = &["gen_ai.content.prompt", "gen_ai.user.message", "gen_ai.choice", "tool.output", "other"];
    let event = (prop::sample::select(EVENTS), any::<u64>(), attributes()).prop_map(|(name, time, attributes)| Event {
        name: name.to_owned(),
        time_unix_nano: time,
        attributes,
        ..Event::default()
    });
    let link = (prop::collection::vec(any::<u8>(), 0..20), attributes()).prop_map(|(id, attributes)| Link {
        trace_id: id.clone(),
        span_id: id,
        attributes,
        ..Link::default()
    });
    let ids = (0_u8..3, 0_u8..6, 0_u8..6);
    let times = (0..=i64::MAX as u64, 0..=i64::MAX as u64);
    let lists = (attributes(), prop::collection::vec(event, 0..3), prop::collection::vec(link, 0..3));
    (ids, times, lists, "\\PC{0,8}", -1..5).prop_map(|((trace, id, parent), times, lists, name, code)| Span {
        parent_span_id: if parent == 0 { Vec::new() } else { vec![parent; 8] },
        name: name.clone(),
        start_time_unix_nano: times.0,
        end_time_unix_nano: times.1,
        attributes: lists.0,
        events: lists.1,
        links: lists.2,
        status: Some(Status { message: name, code }),
        ..span_of(trace, id)
    })
}

proptest! {
    #[test]
    fn spans_come_back(spans in prop::collection::vec(span(), 0..8), limit in 1_usize..2000) {
        let exports = read(PROTOBUF, None, &message(spans)).unwrap();
        for export in exports {
            let packed = pack(&export.spans, limit);
            prop_assert!(packed.parts.iter().all(|part| part.len() <= limit));
            prop_assert_eq!(packed.parts.concat(), pack(&export.spans, 10).parts.concat());
            let back = unpack(&packed.parts.concat()).unwrap();
            // Compares the debug output of the spans, because NaN is not equal to itself.
            prop_assert_eq!(format!("{back:?}"), format!("{:?}", export.spans));
            let mut usage = spans::TraceUsage::default();
            for span in &back {
                prop_assert!(to_value(answered(span)).unwrap().is_object());
                prop_assert!(mlflow_api::Json::parse(&artifact_json(span)).is_some());
                let _ = facts(span);
                if let Ok(summary) = summarize(std::slice::from_ref(span)) {
                    usage.merge(summary.usage);
                }
            }
            if let Ok(summary) = summarize(&back) {
                prop_assert_eq!(usage.tokens(), summary.usage.tokens());
                prop_assert_eq!(usage.cost(), summary.usage.cost());
            }
            prop_assert_eq!(join([back.clone(), back]).len(), export.spans.len());
        }
    }

    /// The tokens of a trace do not depend on the order of its spans.
    #[test]
    fn usage_does_not_depend_on_the_order(mut spans in prop::collection::vec(span(), 1..8), seed in any::<usize>()) {
        for span in &mut spans {
            span.trace_id = vec![7; 16];
        }
        let exports = read(PROTOBUF, None, &message(spans)).unwrap();
        let mut turned = exports[0].spans.clone();
        let by = seed % turned.len();
        turned.rotate_left(by);
        if let (Ok(one), Ok(other)) = (summarize(&exports[0].spans), summarize(&turned)) {
            prop_assert_eq!(one.usage.token_counts(), other.usage.token_counts());
        }
    }

    #[test]
    fn foreign_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(PROTOBUF, None, &bytes);
        let _ = read(JSON, None, &bytes);
        let _ = read(PROTOBUF, Some("gzip"), &bytes);
        let _ = read(PROTOBUF, Some("deflate"), &bytes);
        prop_assert!(unpack(&bytes).is_err() || bytes.starts_with(&[1]));
    }

    #[test]
    fn bytes_that_were_changed_do_no_harm(at in any::<prop::sample::Index>(), to in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let mut body = fixture("ten_spans.json");
        let exports = read(JSON, None, &body).unwrap();
        let mut packed = pack(&exports[0].spans, 1 << 20).parts.concat();
        let mut message = message(exports[0].spans.clone());
        for bytes in [&mut body, &mut packed, &mut message] {
            let place = at.index(bytes.len());
            bytes[place] = to;
        }
        let _ = read(JSON, None, &body);
        let _ = unpack(&packed);
        let _ = unpack(&packed[..cut.index(packed.len())]);
        for export in read(PROTOBUF, None, &message).into_iter().flatten() {
            let _ = summarize(&export.spans);
            let _: Vec<_> = export.spans.iter().map(|span| to_value(answered(span)).unwrap()).collect();
        }
    }
}
