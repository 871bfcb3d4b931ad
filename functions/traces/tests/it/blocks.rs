//! Responses must not depend on which traces are packed.

use std::time::Duration;

use proptest::prelude::*;
use rand::prelude::IndexedRandom;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::marks::timed;
use crate::server::{ALL, Server, Site, id, info, span};
use crate::test_packer::{pack_all, pack_some};

/// Start of the first trace of these tests, in ms.
const BEGAN: i64 = 1_700_000_000_000;
const HOUR: u64 = 3_600_000;
/// Number of traces per test.
pub(crate) const TRACES: u32 = 45;

/// Returns whether tests run all searches, as in `make test-slow`, or only a sample of them.
pub(crate) fn all_searches() -> bool {
    std::env::var_os("ALL_SEARCHES").is_some()
}

/// Creates traces on three days, some of them at the same time, with and without tags, sessions,
/// tokens and spans.
pub(crate) async fn make(server: &Server, seed: u64) {
    for number in 1..=TRACES {
        let mut state = seed ^ (u64::from(number) << 32);
        let mut draw = |kinds: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % kinds
        };
        let from = HOUR * draw(50) + draw(3);
        if draw(4) > 0 {
            let call = span(number, 2, Some(1), from + 1, from + 20 + draw(30));
            server.export(&[span(number, 1, None, from, from + 100 + draw(900)), call]).await.ok();
        }
        if draw(3) > 0 {
            let mut started = info(number, "0");
            started["request_time"] = mlflow_api::proto_json::time_text(BEGAN + i64::try_from(from).unwrap()).into();
            started["state"] = ["OK", "ERROR", "IN_PROGRESS"][usize::try_from(draw(3)).unwrap()].into();
            started["client_request_id"] = format!("c{}", number % 6).into();
            started["tags"] = json!({ "team": format!("t{}", draw(3)), "mlflow.traceName": format!("n{}", draw(2)) });
            started["trace_metadata"] = json!({
                "mlflow.trace.session": format!("s{}", draw(5)),
                "mlflow.trace.tokenUsage": json!({ "total_tokens": draw(100) }).to_string(),
            });
            server.start(&started).await.ok();
        }
        if draw(5) == 0 {
            let feedback =
                json!({ "assessment": { "assessment_name": "good", "feedback": { "value": draw(2) == 0 } } });
            server.call_at("POST", &format!("{ALL}/{}/assessments", id(number)), feedback.to_string()).await;
        }
    }
}

/// Returns the searches that are sent to both servers in a turn, with different filters, orders and page
/// sizes. If only a sample is tested, each of two turns sends half of them. Otherwise, as many
/// searches follow whose filters combine two conditions, drawn anew in each turn.
fn searches(turn: u64) -> Vec<Value> {
    let between = format!("timestamp_ms > {} AND timestamp_ms < {}", BEGAN + 5_000_000, BEGAN + 90_000_000);
    let filters = [
        "",
        "tag.team = 't1'",
        "status = 'ERROR'",
        "span.name = 'step 2'",
        "trace.text LIKE '%step 1%' AND tag.team != 't2'",
        "feedback.good = 'true'",
        "metadata.`mlflow.trace.session` = 's1'",
        &between,
        "execution_time > 600",
        "client_request_id = 'c1'",
        "client_request_id IN ('c2', 'c3') AND status != 'ERROR' AND span.name != 'step 7'",
    ];
    let orders = [json!([]), json!(["execution_time DESC"]), json!(["timestamp_ms ASC"])];
    let search = |filter: &str, order: &Value, most: u32| {
        json!({
            "locations": [{ "mlflow_experiment": { "experiment_id": "0" } }],
            "filter": filter, "order_by": order, "max_results": most,
        })
    };
    let sizes = [5, 11, 100];
    let all = filters.iter().flat_map(|filter| orders.iter().map(move |order| (filter, order))).enumerate();
    let is_sent = |place: usize| all_searches() || (place / orders.len() + place % orders.len()).is_multiple_of(3);
    let all = all.filter(|(place, _)| is_sent(*place));
    let mut all: Vec<_> = all.map(|(place, (filter, order))| search(filter, order, sizes[place % 3])).collect();
    if all_searches() {
        let mut random = StdRng::seed_from_u64(turn);
        let combined = (0..all.len()).map(|_| {
            let pair: Vec<&str> = filters[1..].sample(&mut random, 2).copied().collect();
            search(&pair.join(" AND "), &orders[random.random_range(0..3)], sizes[random.random_range(0..3)])
        });
        all.extend(combined.collect::<Vec<_>>());
    }
    all
}

/// Returns the requests for metrics that are sent to both servers.
fn figures() -> Vec<Value> {
    let count = json!([{ "aggregation_type": "COUNT" }]);
    let median = json!([{ "aggregation_type": "PERCENTILE", "percentile_value": 50.0 }, { "aggregation_type": "AVG" }]);
    let sum = json!([{ "aggregation_type": "SUM" }]);
    let ask = |view: &str, metric: &str, aggregations: &Value, more: Value| {
        let mut asked =
            json!({ "experiment_ids": ["0"], "view_type": view, "metric_name": metric, "aggregations": aggregations });
        asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        asked
    };
    let hours = json!({ "time_interval_seconds": 3_600, "start_time_ms": BEGAN, "end_time_ms": BEGAN + 150_000_000 });
    vec![
        ask("TRACES", "trace_count", &count, json!({ "dimensions": ["trace_name", "trace_status"] })),
        ask("TRACES", "trace_count", &count, json!({ "filters": ["trace.status = 'OK'", "trace.tag.team = 't1'"] })),
        ask("TRACES", "trace_count", &count, json!({ "filters": ["trace.metadata.`mlflow.trace.session` = 's1'"] })),
        ask("TRACES", "session_count", &count, hours.clone()),
        ask("TRACES", "latency", &median, hours.clone()),
        ask("TRACES", "total_tokens", &sum, hours.clone()),
        ask("SPANS", "span_count", &count, json!({ "dimensions": ["span_name"] })),
        ask("SPANS", "latency", &median, hours),
        ask(
            "ASSESSMENTS",
            "assessment_count",
            &count,
            json!({ "dimensions": ["assessment_name", "assessment_value"] }),
        ),
    ]
}

/// Returns the requests that are sent in a turn. If only a sample is tested, a turn sends every
/// second request, and the next turn sends the others.
fn asked_of<T>(questions: Vec<T>, turn: u64) -> impl Iterator<Item = T> {
    let is_asked = move |place: u64| all_searches() || (place + turn).is_multiple_of(2);
    (0..).zip(questions).filter(move |(place, _)| is_asked(*place)).map(|(_, question)| question)
}

/// Returns all responses of a server in this turn.
pub(crate) async fn answers(server: &Server, turn: u64) -> Vec<Value> {
    let mut all = Vec::new();
    for search in asked_of(searches(turn), turn) {
        let mut body = search;
        for _ in 0..TRACES {
            let answer = server.call_at("POST", &format!("{ALL}/search"), body.to_string()).await.ok();
            all.push(json!([body["filter"], body["order_by"], answer["traces"]]));
            match answer["next_page_token"].as_str() {
                Some(token) => body["page_token"] = token.into(),
                None => break,
            }
        }
    }
    for asked in asked_of(figures(), turn) {
        all.push(server.call_at("POST", &format!("{ALL}/metrics"), asked.to_string()).await.ok());
    }
    let two = json!({ "experiment_ids": ["0"], "filter_string1": "tag.team = 't1'", "filter_string2": "span.name = 'step 2'" });
    let path = format!("{ALL}/calculate-filter-correlation");
    all.push(server.call_at("POST", &path, two.to_string()).await.ok());
    all
}

/// Changes and deletes some traces. The selection depends only on the seed, so it is equal on every
/// server.
pub(crate) async fn change(server: &Server, seed: u64) {
    for number in 1..=TRACES {
        match (u64::from(number) * 31 + seed) % 9 {
            0 => {
                let tag = json!({ "key": "team", "value": "t1" });
                server.call("PATCH", &format!("traces/{}/tags", id(number)), tag).await;
            }
            1 => {
                let mut moved = info(number, "0");
                moved["request_time"] = mlflow_api::proto_json::time_text(BEGAN + i64::from(number) * 3_000_000).into();
                server.start(&moved).await.ok();
            }
            2 => {
                server.export(&[span(number, 7, Some(1), HOUR, HOUR + 7)]).await.ok();
            }
            3 => {
                let named = json!({ "experiment_id": "0", "request_ids": [id(number)] });
                server.post("traces/delete-traces", named).await.ok();
            }
            _ => {}
        }
    }
}

/// Deletes the oldest traces and returns their number.
async fn delete_oldest(server: &Server, until: i64, most: Option<u32>) -> Value {
    let asked = json!({ "experiment_id": "0", "max_timestamp_millis": until, "max_traces": most });
    server.post("traces/delete-traces", asked).await.ok()
}

pub(crate) fn same(unpacked: &[Value], packed: &[Value], what: &str) {
    for (one, other) in unpacked.iter().zip(packed) {
        let ids = |answer: &Value| -> Vec<Value> {
            answer[2].as_array().into_iter().flatten().map(|trace| trace["trace_id"].clone()).collect()
        };
        assert_eq!(ids(one), ids(other), "{what}: {} {}", one[0], one[1]);
        assert_eq!(one, other, "{what}");
    }
    assert_eq!(unpacked.len(), packed.len(), "{what}");
}

async fn packed_and_not(seed: u64, of_block: usize, kept: usize) {
    let site = Site::new().await;
    make(&site.server, seed).await;
    let other = site.copy().await;
    // The packer packs only traces that have not changed for two minutes.
    runtime::clock::sleep(Duration::from_mins(2)).await;
    pack_some(&other, of_block, |place| kept == 0 || place % (kept + 1) != 0).await;
    let (first, second) = (seed, seed + 1);
    let before = answers(&site.server, first).await;
    assert!(before.len() > if all_searches() { 50 } else { 9 });
    same(&before, &answers(&other.server, first).await, "packed");
    change(&site.server, seed).await;
    change(&other.server, seed).await;
    let changed = answers(&site.server, second).await;
    same(&changed, &answers(&other.server, second).await, "changed");
    // All traces are packed again, and then deleted from the oldest on.
    runtime::clock::sleep(Duration::from_mins(2)).await;
    pack_all(&other, of_block).await;
    same(&changed, &answers(&other.server, second).await, "packed again");
    let deletions = [(BEGAN + 100_000_000, Some(7)), (BEGAN + 40_000_000, None), (BEGAN + 170_000_000, Some(20))];
    for (turn, (until, most)) in (first..).zip(deletions) {
        let deleted = delete_oldest(&site.server, until, most).await;
        assert_eq!(delete_oldest(&other.server, until, most).await, deleted);
        same(&answers(&site.server, turn).await, &answers(&other.server, turn).await, "deleted");
    }
    let end = BEGAN + 1_000_000_000;
    assert_eq!(delete_oldest(&other.server, end, None).await, delete_oldest(&site.server, end, None).await);
    assert_eq!(delete_oldest(&other.server, end, None).await["traces_deleted"], 0);
}

/// Returns the number of random tables per test. Set `RANDOM_TABLES` for more, as `make test-slow`
/// does.
fn tables() -> u32 {
    std::env::var("RANDOM_TABLES").ok().and_then(|count| count.parse().ok()).unwrap_or(1)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: tables(), max_shrink_iters: 4, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn answers_are_the_same_packed_and_not(seed in 0..1_000_000_u64, of_block in 1..40_usize, kept in 0..4_usize) {
        timed(packed_and_not(seed, of_block, kept));
    }
}
