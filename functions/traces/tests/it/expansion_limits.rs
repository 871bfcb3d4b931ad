//! Requests that are small when they are sent but could expand to a large amount of data.

use std::time::Duration;

use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::Event;
use serde_json::json;

use crate::collector::{program, send, span};
use crate::server::{Site, id};

fn text(key: String, value: String) -> KeyValue {
    KeyValue { key, value: Some(AnyValue { value: Some(Any::StringValue(value)) }), ..KeyValue::default() }
}

#[tokio::test]
async fn attributes_of_a_sender_that_thousand_traces_want_are_refused() {
    let site = Site::new().await;
    let before = site.items().await.len();
    // The attributes have 28 MB. They are compressed to 100 KB in the request, and would expand to
    // 28 GB in the tags of the traces.
    let attributes = (0..3_500).map(|number| text(format!("k{number}"), "x".repeat(8_000))).collect();
    let spans = (1..=1_000).map(|trace| span(trace, 1, None, vec![])).collect();
    let answer = send(&site.server, vec![program(attributes, vec![spans])]).await;
    let detail = "The spans and the tags of the traces in the request are larger than 100663296 bytes";
    assert_eq!((answer.status, answer.body), (413, json!({ "detail": detail })));
    assert_eq!(site.items().await.len(), before);
}

#[tokio::test]
async fn more_traces_than_a_request_takes_are_refused() {
    let site = Site::new().await;
    let before = site.items().await.len();
    let spans = (1..=10_001).map(|trace| span(trace, 1, None, vec![])).collect();
    let answer = send(&site.server, vec![program(vec![], vec![spans])]).await;
    let detail = json!({ "detail": "A request takes spans of at most 10000 traces." });
    assert_eq!((answer.status, answer.body), (413, detail));
    assert_eq!(site.items().await.len(), before);
}

#[tokio::test]
async fn spans_that_would_be_too_long_an_answer_are_refused() {
    let site = Site::new().await;
    // In JSON, each of these characters takes six bytes.
    let attributes = vec![text("a".to_owned(), "\u{1}".repeat(12 << 20))];
    let events = vec![Event { attributes, ..Event::default() }];
    let long = Span { events, ..span(1, 1, None, vec![]) };
    assert_eq!(send(&site.server, vec![program(vec![], vec![vec![long]])]).await.status, 200);
    for (path, name, what) in [
        ("/api/3.0/mlflow/traces/get", "trace_id", "The answer"),
        ("/ajax-api/3.0/mlflow/get-trace-artifact", "request_id", "The file with the spans"),
    ] {
        let answer = site.server.get_at(path, &[(name, &id(1)), ("allow_partial", "true")]).await;
        let refused = answer.refused(400, "INVALID_PARAMETER_VALUE");
        let expected = "is longer than 64 MB, which is more than this server can answer. Ask for less at once.";
        assert_eq!(refused, format!("{what} {expected}"));
    }
}

/// Returns the CPU time of this process. It is not affected by other processes, and this process
/// runs only this test.
fn now() -> Duration {
    Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime)).unwrap()
}

/// Exports a new trace with `many` roots, tags of a root, and tags of the sender. Returns the CPU
/// time that this takes.
async fn export_of(many: u32) -> (Site, Duration) {
    let site = Site::new().await;
    let tags: Vec<_> = (0..many).map(|number| text(format!("mlflow.traceTag.t{number}"), "v".to_owned())).collect();
    let mut spans = vec![span(1, 1, None, tags)];
    spans.extend((2..=u64::from(many)).map(|number| span(1, number, None, vec![])));
    let attributes = (0..many).map(|number| text(format!("r{number}"), "v".to_owned())).collect();
    let began = now();
    assert_eq!(send(&site.server, vec![program(attributes, vec![spans])]).await.status, 200);
    (site, now().saturating_sub(began))
}

/// The time must grow linearly with the size of the input. A quadratic algorithm, which would merge
/// each root's tags into all others and measure the document for each tag, would take sixteen times
/// as long for four times the input.
#[tokio::test]
async fn roots_and_tags_take_as_long_as_they_are_many() {
    let ((_, few), (site, many)) = (export_of(15_000).await, export_of(60_000).await);
    assert!(many < few * 8, "{few:?}, {many:?}");
    let trace = site.server.info(1).await;
    let tags = trace["tags"].as_object().unwrap();
    // Only the tags that fit into a document are kept.
    assert!((20_000..60_000).contains(&tags.len()), "{}", tags.len());
    let bytes: usize = tags.iter().map(|(key, value)| key.len() + value.as_str().unwrap().len()).sum();
    assert!((200 << 10..320 << 10).contains(&bytes), "{bytes}");
    assert_eq!(trace["tags"]["r0"], "v");
}
