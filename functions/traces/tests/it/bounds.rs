//! Requests that are small as they are sent and would become large.

use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use serde_json::json;

use crate::collector::{program, send, span};
use crate::server::Site;

fn text(key: String, value: String) -> KeyValue {
    KeyValue { key, value: Some(AnyValue { value: Some(Any::StringValue(value)) }), ..KeyValue::default() }
}

#[tokio::test]
async fn attributes_of_a_sender_that_thousand_traces_want_are_refused() {
    let site = Site::new().await;
    let before = site.items().await.len();
    // 28 MB, which are a hundred KB as they are sent, and 28 GB in the tags of the traces.
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
    let spans = (1..=10_001).map(|trace| span(trace, 1, None, vec![])).collect();
    let answer = send(&site.server, vec![program(vec![], vec![spans])]).await;
    let detail = json!({ "detail": "A request takes spans of at most 10000 traces." });
    assert_eq!((answer.status, answer.body), (413, detail));
}

/// Each root was added to all tags so far, and the document measured for each tag: hours of computing, where it is seconds now.
#[tokio::test]
async fn roots_and_tags_by_the_ten_thousand_take_no_time() {
    let site = Site::new().await;
    let tags: Vec<_> =
        (0..60_000_u32).map(|number| text(format!("mlflow.traceTag.t{number}"), "v".to_owned())).collect();
    let mut spans = vec![span(1, 1, None, tags)];
    spans.extend((2..=60_000).map(|number| span(1, number, None, vec![])));
    let attributes = (0..60_000_u32).map(|number| text(format!("r{number}"), "v".to_owned())).collect();
    assert_eq!(send(&site.server, vec![program(attributes, vec![spans])]).await.status, 200);
    let trace = site.server.info(1).await;
    let tags = trace["tags"].as_object().unwrap();
    // Those for which there is room in a document.
    assert!((20_000..60_000).contains(&tags.len()), "{}", tags.len());
    let bytes: usize = tags.iter().map(|(key, value)| key.len() + value.as_str().unwrap().len()).sum();
    assert!((200 << 10..320 << 10).contains(&bytes), "{bytes}");
    assert_eq!(trace["tags"]["r0"], "v");
}
