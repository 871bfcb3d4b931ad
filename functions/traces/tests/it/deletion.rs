//! Tests the deletion of traces.

use serde_json::{Value, json};

use crate::server::{ALL, Site, id, info, span};

#[tokio::test]
async fn traces_are_deleted_by_time_oldest_first() {
    let site = Site::new().await;
    let other = site.server.experiment("other").await;
    for number in 1..=5 {
        let mut started = info(number, "0");
        // The traces are on three different days.
        started["request_time"] = format!("2023-11-1{}T00:00:0{number}.000Z", number / 2).into();
        site.server.start(&started).await.ok();
    }
    site.server.start(&info(6, &other)).await.ok();
    let delete = async |asked: Value| {
        let answer = site.server.post("traces/delete-traces", asked).await.ok();
        answer["traces_deleted"].as_u64().unwrap()
    };
    let until = 1_700_000_000_000_i64;
    assert_eq!(delete(json!({ "experiment_id": "0", "max_timestamp_millis": until, "max_traces": 2 })).await, 2);
    let left = json!({ "trace_ids": (1..=6).map(id).collect::<Vec<_>>() });
    let left = site.server.call_at("POST", &format!("{ALL}/batchGetInfos"), left.to_string()).await.ok();
    let left: Vec<_> = left["trace_infos"].as_array().unwrap().iter().map(|info| info["trace_id"].clone()).collect();
    assert_eq!(left, [id(3), id(4), id(5), id(6)]);
    assert_eq!(delete(json!({ "experiment_id": "0", "request_ids": [id(3), id(6), id(1)] })).await, 1);
    assert_eq!(delete(json!({ "experiment_id": "0", "max_timestamp_millis": until })).await, 2);
    assert_eq!(delete(json!({ "experiment_id": "0", "max_timestamp_millis": until })).await, 0);
    assert_eq!(site.server.info(6).await["trace_id"], id(6));
}

#[tokio::test]
async fn nothing_but_days_and_young_marks_is_left() {
    let site = Site::new().await;
    let before = site.items().await.len();
    // There are more items than fit into one transaction.
    let spans: Vec<_> = (1..=130).map(|number| span(1, number, None, number, number)).collect();
    for span in &spans {
        site.server.export(std::slice::from_ref(span)).await.ok();
    }
    let named = json!({ "experiment_id": "0", "request_ids": [id(1)] });
    site.server.post("traces/delete-traces", named).await.ok();
    let left: Vec<_> =
        site.items().await.iter().map(|item| item["SK"]["S"].as_str().unwrap()[..2].to_owned()).collect();
    // The mark with the first span is left to the packer.
    assert_eq!(left.len(), before + 3, "{left:?}");
    assert!(left.contains(&"TR".to_owned()) && left.contains(&"M#".to_owned()));
}

#[tokio::test]
async fn requests_say_one_way() {
    let site = Site::new().await;
    for (asked, message) in [
        (json!({}), "Either `max_timestamp_millis` or `trace_ids` must be specified."),
        (
            json!({ "max_timestamp_millis": 1, "request_ids": ["a"] }),
            "Only one of `max_timestamp_millis` and `trace_ids` can be specified.",
        ),
        (
            json!({ "max_traces": 1, "request_ids": ["a"] }),
            "`max_traces` can't be specified if `trace_ids` is specified.",
        ),
        (json!({ "max_traces": 0, "max_timestamp_millis": 1 }), "`max_traces` must be a positive integer, received 0."),
    ] {
        let mut asked = asked;
        asked["experiment_id"] = "0".into();
        let answer = site.server.post("traces/delete-traces", asked).await;
        assert_eq!(answer.refused(400, "INVALID_PARAMETER_VALUE"), message);
    }
}
