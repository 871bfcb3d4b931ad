//! Searches by clients' request ids read an index instead of blocks, and must return the same
//! results.

use std::time::Duration;

use entities::now_ms;
use fts_indexer::{Indexer, PackingThresholds};
use mlflow_api::proto_json::time_text;
use serde_json::{Value, json};

use crate::blocks::all_searches;
use crate::expiry::{HOUR, set_tag};
use crate::marks::timed;
use crate::server::{ALL, Server, Site, id, info, span};
use crate::stream_consumer::{counted, pack};
use crate::test_packer::{pack_all, pack_some};

/// Start of the trace with number 0, in ms. Each further trace starts half an hour later.
const BEGAN: i64 = 1_700_000_000_000;
const LATER: i64 = 1_800_000;

fn started(number: u32, experiment: &str, request: Option<&str>) -> Value {
    let mut started = info(number, experiment);
    started["request_time"] = time_text(BEGAN + LATER * i64::from(number)).into();
    started["tags"] = json!({ "odd": (number % 2).to_string() });
    if let Some(request) = request {
        started["client_request_id"] = request.into();
    }
    started
}

async fn latest(server: &Server, filter: &str) -> Vec<String> {
    server.found(&["0"], filter, "", 100).await
}

#[tokio::test]
async fn a_request_is_found_in_marks_in_blocks_and_in_both() {
    let site = Site::new().await;
    let server = &site.server;
    let other = server.experiment("other").await;
    // The traces are on three days. Every fifth is in the other experiment, and every seventh has
    // no request id.
    let long = "y".repeat(5_000);
    let request = |number: u32| match number {
        number if number.is_multiple_of(7) => None,
        8 => Some(String::new()),
        9 | 11 => Some(long.clone()),
        number => Some(format!("r# {}", number % 3)),
    };
    for number in 1..=60_u32 {
        let experiment = if number.is_multiple_of(5) { other.as_str() } else { "0" };
        if number.is_multiple_of(4) {
            server.export_to(experiment, &[timed_span(number)]).await.ok();
        }
        server.start(&started(number, experiment, request(number).as_deref())).await.ok();
    }
    let longest = format!("client_request_id = '{long}'");
    let between = format!("timestamp_ms > {} AND client_request_id = 'r# 1'", BEGAN + LATER * 30);
    let filters: [(&str, &dyn Fn(u32) -> bool); 9] = [
        ("client_request_id = 'r# 1'", &|number| request(number).as_deref() == Some("r# 1")),
        ("client_request_id = 'r# 1' AND tag.odd = '1'", &|number| {
            number % 2 == 1 && request(number).as_deref() == Some("r# 1")
        }),
        ("span.name = 'step 1' AND client_request_id = 'r# 2'", &|number| {
            number.is_multiple_of(4) && request(number).as_deref() == Some("r# 2")
        }),
        ("client_request_id IN ('r# 0', 'r# 2', 'nobody')", &|number| {
            matches!(request(number).as_deref(), Some("r# 0" | "r# 2"))
        }),
        ("client_request_id = 'r# 1' AND client_request_id = 'r# 2'", &|_| false),
        ("client_request_id = 'nobody'", &|_| false),
        ("client_request_id = ''", &|number| number == 8),
        (&longest, &|number| matches!(number, 9 | 11)),
        (&between, &|number| number > 30 && request(number).as_deref() == Some("r# 1")),
    ];
    // Combinations of page size and order. If only a sample is tested, each search uses one of the
    // combinations in turn.
    let ways = [(2, "", true), (2, "timestamp_ms ASC", false), (100, "", true), (100, "timestamp_ms ASC", false)];
    let mut turn = 0;
    for round in 0..3 {
        match round {
            0 => {}
            1 => pack_some(&site, 7, |place| place % 3 != 1).await,
            _ => pack_all(&site, 11).await,
        }
        for (filter, passes) in filters {
            for experiments in [vec!["0"], vec![other.as_str()], vec!["0", other.as_str()]] {
                let is_asked = |number: &u32| number.is_multiple_of(5) || experiments.contains(&"0");
                let is_asked = |number: &u32| {
                    is_asked(number) && (!number.is_multiple_of(5) || experiments.contains(&other.as_str()))
                };
                let oldest_first: Vec<_> =
                    (1..=60).filter(|number| is_asked(number) && passes(*number)).map(id).collect();
                let newest_first: Vec<_> = oldest_first.iter().rev().cloned().collect();
                for (place, (page, order, is_newest_first)) in ways.into_iter().enumerate() {
                    if !all_searches() && place != turn % ways.len() {
                        continue;
                    }
                    let said = format!("{filter:.60} of {experiments:?}, {page} a page, {order}, round {round}");
                    let expected = if is_newest_first { &newest_first } else { &oldest_first };
                    assert_eq!(server.found(&experiments, filter, order, page).await, *expected, "{said}");
                }
                turn += 1;
            }
        }
    }
}

/// Returns a span of a trace, at the trace's time.
fn timed_span(number: u32) -> Value {
    let mut span = span(number, 1, None, 0, 5);
    let began = BEGAN + LATER * i64::from(number);
    for (field, ms) in [("startTimeUnixNano", began), ("endTimeUnixNano", began + 5)] {
        span[field] = (ms * 1_000_000).to_string().into();
    }
    span
}

#[tokio::test]
async fn blocks_are_not_read_and_few_requests_are_enough() {
    let site = Site::new().await;
    for number in 1..=90 {
        site.server.start(&started(number, "0", Some(&format!("r{number}")))).await.ok();
    }
    pack_all(&site, 10).await;
    let blocks: Vec<_> =
        site.items().await.iter().map(test_site::key_of).filter(|key| key.sk.starts_with("B#")).collect();
    assert!(blocks.len() > 8);
    // The process has already read the retention policies.
    latest(&site.server, "").await;
    site.table.write_many(Vec::new(), &blocks).await.unwrap();
    site.faults.reset_calls();
    assert_eq!(latest(&site.server, "client_request_id = 'r50'").await, [id(50)]);
    // The five queries are for the days, the marks of each of three days, and the index. After
    // them, the document is read.
    assert_eq!((site.faults.calls("Query"), site.faults.calls("GetItem")), (5, 1));
    assert_eq!(site.faults.calls("BatchGetItem"), 0);
}

#[test]
fn another_id_and_a_deletion_are_seen_at_once_however_late_the_index_is() {
    timed(async {
        let site = Site::new().await;
        let server = &site.server;
        for number in 1..=3 {
            server.start(&started(number, "0", Some("old"))).await.ok();
        }
        pack_all(&site, 3).await;
        // Wait until no process relies on the marks any more.
        runtime::clock::sleep(Duration::from_mins(5)).await;
        assert_eq!(latest(server, "client_request_id = 'old'").await, [3, 2, 1].map(id));
        // From now on, the index is stale.
        site.faults.freeze_global_indexes(&site.engine).unwrap();
        server.start(&started(1, "0", Some("new"))).await.ok();
        server.start(&started(2, "0", None)).await.ok();
        assert_eq!(latest(server, "client_request_id = 'new'").await, [id(1)]);
        assert_eq!(latest(server, "client_request_id = 'old'").await, [id(3)]);
        let named = json!({ "experiment_id": "0", "request_ids": [id(3)] });
        server.call_at("POST", &format!("{ALL}/delete-traces"), named.to_string()).await.ok();
        assert_eq!(latest(server, "client_request_id = 'old'").await, Vec::<String>::new());
        site.faults.catch_up();
        pack_all(&site, 3).await;
        assert_eq!(latest(server, "client_request_id = 'new'").await, [id(1)]);
        assert_eq!(latest(server, "client_request_id = 'old'").await, Vec::<String>::new());
        // The trace that lost its request id must have no index entry any more.
        let items = site.items().await;
        let entry = |number: u32| format!("EXP#0#{}", id(number));
        let entries = |number: u32| items.iter().filter(|item| item["gsi1sk"]["S"] == entry(number)).count();
        assert_eq!([1, 2, 3].map(entries), [1, 0, 0]);
    });
}

#[test]
fn a_trace_that_the_index_does_not_have_yet_is_not_packed() {
    timed(async {
        let site = Site::new().await;
        let sizes = PackingThresholds {
            min_new_marks: 2,
            min_changed_marks: 2,
            max_traces: 8,
            pause: Duration::ZERO,
            ..PackingThresholds::default()
        };
        let indexer = Indexer::new(site.faulty()).with_packing_thresholds(sizes);
        site.server.start(&started(0, "0", Some("before"))).await.ok();
        site.faults.freeze_global_indexes(&site.engine).unwrap();
        // All of these traces are on one day.
        for number in 1..=24 {
            let request = (number % 2 == 0).then(|| format!("r{}", number % 3));
            let mut started = started(number, "0", request.as_deref());
            started["request_time"] = time_text(BEGAN + i64::from(number)).into();
            site.server.start(&started).await.ok();
        }
        pack(&site, &indexer).await;
        let (blocks, marks) = counted(&site).await;
        assert!(blocks > 0 && marks == 12, "{blocks} blocks, {marks} marks");
        let expected: Vec<_> = [22, 16, 10, 4].map(id).into();
        assert_eq!(latest(&site.server, "client_request_id = 'r1'").await, expected);
        assert_eq!(latest(&site.server, "client_request_id = 'before'").await, [id(0)]);
        // A packed trace gets another id.
        let mut changed = started(0, "0", Some("r1"));
        changed["request_time"] = time_text(BEGAN).into();
        site.server.start(&changed).await.ok();
        pack(&site, &indexer).await;
        assert_eq!(latest(&site.server, "client_request_id = 'r1'").await, [expected.clone(), vec![id(0)]].concat());
        assert_eq!(counted(&site).await.1, 13);
        site.faults.catch_up();
        for _ in 0..4 {
            pack(&site, &indexer).await;
        }
        assert!(counted(&site).await.1 < 2, "one is too few to be packed");
        assert_eq!(latest(&site.server, "client_request_id = 'r1'").await, [expected, vec![id(0)]].concat());
    });
}

#[tokio::test]
#[ignore = "makes a thousand traces; part of `make test-slow`"]
async fn more_traces_of_a_request_than_an_index_is_asked_for_are_found() {
    let site = Site::new().await;
    let started = |number| {
        let mut started = started(number, "0", Some("all"));
        started["request_time"] = time_text(BEGAN + i64::from(number)).into();
        started
    };
    for number in 1..=1_000 {
        site.server.start(&started(number)).await.ok();
    }
    pack_all(&site, 128).await;
    for number in 1_000..=1_001 {
        // The maximum is a thousand traces, and this is one more.
        if number > 1_000 {
            site.server.start(&started(number)).await.ok();
            pack_all(&site, 128).await;
        }
        let expected: Vec<_> = (1..=number).rev().map(id).collect();
        assert!(site.server.found(&["0"], "client_request_id = 'all'", "", 400).await == expected);
    }
}

#[tokio::test]
async fn what_is_kept_no_longer_is_not_found_by_its_request() {
    let site = Site::new().await;
    for (number, ago) in [(1, 40 * HOUR), (2, 2 * HOUR), (3, HOUR / 2)] {
        let mut started = started(number, "0", Some("r"));
        started["request_time"] = time_text(now_ms() - ago).into();
        site.server.start(&started).await.ok();
    }
    for round in 0..2 {
        if round == 1 {
            pack_all(&site, 3).await;
        }
        set_tag(&site.server, "0", "1h").await;
        assert_eq!(latest(&site.other().await, "client_request_id = 'r'").await, [id(3)]);
        set_tag(&site.server, "0", "off").await;
        assert_eq!(latest(&site.other().await, "client_request_id = 'r'").await, [3, 2, 1].map(id));
    }
}
