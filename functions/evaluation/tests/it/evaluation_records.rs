//! Records of evaluation datasets whose contents may be larger than an item, and merges that are
//! rejected or interrupted.

use key_schema::Key;
use mlflow_api::response_size::{MAX_BODY_BYTES, ResponseSize};
use serde_json::{Value, json};

use crate::evaluation_datasets::{call, clear_up, counts, dataset, id, merge, noise, page, profile, records, rows};
use crate::server::{Site, TABLE};

#[tokio::test]
async fn records_larger_than_an_item_are_merged_and_paged() {
    let site = Site::new().await;
    site.faults.lose_answer_every(5);
    let server = &site.server;
    let dataset = dataset(server, "big").await;
    // Each of the first two records has 3 MB, so that a page has room for only one of them. The
    // other records together do not fit into one transaction.
    let sent: Vec<_> = (0..2_u64).map(|seed| json!({ "inputs": { "text": noise(seed, 3 << 20) } })).collect();
    for record in &sent {
        assert_eq!(counts(&merge(server, &dataset, &json!([record])).await.ok()), (1, 0));
    }
    let medium: Vec<_> = (10..34).map(|seed| json!({ "inputs": { "text": noise(seed, 200 << 10) } })).collect();
    assert_eq!(counts(&merge(server, &dataset, &json!(medium)).await.ok()), (24, 0));
    let (first, token) = page(server, &dataset, 1_000, None).await;
    assert!(first.len() == 1 && token.is_some());
    let found = records(server, &dataset, 1_000).await;
    let expected: Vec<_> = sent.iter().chain(&medium).map(|record| &record["inputs"]).collect();
    assert_eq!(found.iter().map(|record| &record["inputs"]).collect::<Vec<_>>(), expected);

    // Merging writes new parts, and deleting the records leaves no parts.
    let more = json!([{ "inputs": sent[0]["inputs"], "outputs": noise(99, 1 << 20) }]);
    assert_eq!(counts(&merge(server, &dataset, &more).await.ok()), (0, 1));
    let (first, _) = page(server, &dataset, 1, None).await;
    assert_eq!((&first[0]["inputs"], &first[0]["outputs"]), (&sent[0]["inputs"], &more[0]["outputs"]));
    let parts = || async { rows(&site).await.into_iter().filter(|key| key.contains("ED#PART#")).count() };
    let before = parts().await;
    assert_eq!(counts(&merge(server, &dataset, &more).await.ok()), (0, 1));
    assert_eq!(parts().await, before);
    let ids: Vec<_> = found.iter().map(id).collect();
    let deletion = json!({ "dataset_record_ids": ids });
    let deleted = call(server, "DELETE", &format!("datasets/{dataset}/records"), &deletion).await.ok();
    assert_eq!((deleted["deleted_count"].as_u64(), parts().await), (Some(26), 0));
    assert_eq!(profile(server, &dataset).await, Value::Null);
}

#[tokio::test]
async fn a_page_of_records_ends_by_what_the_answer_has() {
    let site = Site::new().await;
    let server = &site.server;
    let dataset = dataset(server, "quotes").await;
    // In the stored record, each quote is escaped by one backslash. In the response, it is escaped
    // by three, because all records are one JSON string.
    let quotes = "\"".repeat(100_000);
    let sent: Vec<_> = (0..40).map(|number| json!({ "inputs": { "n": number }, "outputs": quotes })).collect();
    merge(server, &dataset, &json!(sent)).await.ok();
    let (mut found, mut token, mut pages) = (Vec::new(), None, 0);
    loop {
        let arguments: Vec<_> = token.iter().map(|token: &String| ("page_token", token.as_str())).collect();
        let path = format!("/api/3.0/mlflow/datasets/{dataset}/records");
        let answer = server.get_at(&path, &arguments).await.ok();
        let bytes = ResponseSize::of(answer.to_string().as_bytes()).bytes_in_response();
        assert!(bytes < MAX_BODY_BYTES, "{bytes} bytes");
        let records: Vec<Value> = serde_json::from_str(answer["records"].as_str().unwrap()).unwrap();
        assert!(!records.is_empty());
        found.extend(records);
        pages += 1;
        match answer["next_page_token"].as_str() {
            Some(next) => token = Some(next.to_owned()),
            None => break,
        }
    }
    assert!(pages > 3, "{pages}");
    assert_eq!(found.iter().map(|record| &record["inputs"]["n"]).collect::<Vec<_>>(), (0..40).collect::<Vec<_>>());
    assert!(found.iter().all(|record| record["outputs"] == quotes));
}

/// Returns the keys of the parts of records and schemas.
async fn parts(site: &Site) -> Vec<Key> {
    let items = site.engine.items(TABLE).await.unwrap();
    let keys = items.iter().map(|item| ["PK", "SK"].map(|part| item[part]["S"].as_str().unwrap().to_owned()));
    keys.filter(|[_, sk]| sk.starts_with("ED#PART#")).map(|[pk, sk]| Key { pk, sk }).collect()
}

#[tokio::test]
async fn parts_of_a_content_that_comes_back_are_others() {
    let site = Site::new().await;
    let server = &site.server;
    let dataset = dataset(server, "again").await;
    let record = |seed: u64| json!([{ "inputs": { "q": 1 }, "outputs": noise(seed, 600 << 10) }]);
    merge(server, &dataset, &record(1)).await.ok();
    let first = parts(&site).await;
    assert!(!first.is_empty());
    merge(server, &dataset, &record(2)).await.ok();
    merge(server, &dataset, &record(1)).await.ok();
    // The old parts may be deleted late and twice, which must not affect the new content.
    site.table.write_many(Vec::new(), &first).await.unwrap();
    assert_eq!(records(server, &dataset, 10).await[0]["outputs"], record(1)[0]["outputs"]);
    // Setting the same content again must not delete its parts.
    let before = parts(&site).await;
    merge(server, &dataset, &record(1)).await.ok();
    let after = parts(&site).await;
    assert!(after.len() == before.len() && !after.iter().any(|key| before.contains(key)));
    assert_eq!(records(server, &dataset, 10).await[0]["outputs"], record(1)[0]["outputs"]);
}

#[tokio::test]
async fn refused_merges_leave_no_parts() {
    let site = Site::new().await;
    let server = &site.server;
    let dataset = dataset(server, "race").await;
    let record = |seed: u64| json!([{ "inputs": { "q": 1 }, "outputs": noise(seed, 600 << 10) }]);
    merge(server, &dataset, &record(0)).await.ok();
    let count = parts(&site).await.len();
    let mut gate = site.faults.pause_before("TransactWriteItems", 1);
    let other = site.other().await;
    let slow = async { merge(server, &dataset, &record(1)).await };
    let fast = async {
        gate.reached().await;
        merge(&other, &dataset, &record(2)).await.ok();
        gate.open();
    };
    let (merged, ()) = futures::future::join(slow, fast).await;
    assert_eq!(counts(&merged.ok()), (0, 1));
    assert_eq!(records(server, &dataset, 10).await[0]["outputs"], record(1)[0]["outputs"]);
    assert_eq!(parts(&site).await.len(), count);

    // If a record is deleted while it is merged, none of its parts are left, either.
    let ids: Vec<_> = records(server, &dataset, 10).await.iter().map(|record| id(record).to_owned()).collect();
    let mut gate = site.faults.pause_before("TransactWriteItems", 1);
    let deletion = json!({ "dataset_record_ids": ids });
    let slow = async { call(server, "DELETE", &format!("datasets/{dataset}/records"), &deletion).await };
    let fast = async {
        gate.reached().await;
        merge(&other, &dataset, &record(4)).await.ok();
        gate.open();
    };
    let (deleted, ()) = futures::future::join(slow, fast).await;
    assert_eq!((deleted.ok()["deleted_count"].as_u64(), parts(&site).await.len()), (Some(1), 0));

    // The dataset is deleted while its records are being merged.
    let mut gate = site.faults.pause_before("TransactWriteItems", 1);
    let slow = async { merge(server, &dataset, &record(3)).await };
    let fast = async {
        gate.reached().await;
        call(&other, "DELETE", &format!("datasets/{dataset}"), &json!({})).await.ok();
        clear_up(&site, &dataset).await;
        gate.open();
    };
    let (merged, ()) = futures::future::join(slow, fast).await;
    merged.refused(400, "BAD_REQUEST");
    assert_eq!(rows(&site).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_record_that_is_merged_all_the_time_can_always_be_read() {
    let site = Site::new().await;
    let (server, reader) = (&site.server, site.other().await);
    let dataset = dataset(server, "busy").await;
    let record = |round: u64| json!([{ "inputs": { "q": 1 }, "outputs": noise(round, 600 << 10) }]);
    merge(server, &dataset, &record(0)).await.ok();
    let writing = async {
        for round in 1..12 {
            merge(server, &dataset, &record(round)).await.ok();
        }
    };
    let reading = async {
        for _ in 0..12 {
            assert_eq!(records(&reader, &dataset, 10).await.len(), 1);
        }
    };
    futures::future::join(writing, reading).await;
    assert_eq!(records(server, &dataset, 10).await[0]["outputs"], record(11)[0]["outputs"]);
}

#[tokio::test]
async fn a_merge_that_is_cut_off_goes_on_with_what_is_new() {
    let site = Site::new().await;
    let server = &site.server;
    let dataset = dataset(server, "long").await;
    let sent = |last: u64| (0..last).map(|number| json!({ "inputs": { "n": number } })).collect::<Value>();
    merge(server, &dataset, &sent(150)).await.ok();
    for expected in [199, 248] {
        // The first seven requests succeed: those for claims, dataset and records, and a
        // transaction with 49 new records.
        site.faults.cut_off_at(7);
        assert_eq!(merge(server, &dataset, &sent(260)).await.status, 429);
        site.faults.work_again();
        assert_eq!(profile(server, &dataset).await, json!({ "num_records": expected }));
    }
    assert_eq!(counts(&merge(server, &dataset, &sent(260)).await.ok()), (12, 248));
    let found = records(server, &dataset, 1_000).await;
    assert!(found.iter().enumerate().all(|(place, record)| record["inputs"]["n"] == json!(place)));
}

#[tokio::test]
#[ignore = "takes five seconds of a core; part of `make test-slow`"]
async fn contents_are_merged_as_many_at_a_time_as_there_is_room_for() {
    let site = Site::new().await;
    let server = &site.server;
    let dataset = dataset(server, "wide").await;
    let long = "x".repeat(3 << 20);
    for number in 0..23 {
        let record = json!([{ "inputs": { "n": number }, "outputs": long }]);
        assert_eq!(counts(&merge(server, &dataset, &record).await.ok()), (1, 0));
    }
    site.faults.reset_calls();
    let sent: Value = (0..23).map(|number| json!({ "inputs": { "n": number }, "tags": { "t": number } })).collect();
    assert_eq!(counts(&merge(server, &dataset, &sent).await.ok()), (0, 23));
    // The claims are read once. The records take two requests, because the 21 of them have 63 MB
    // together.
    assert_eq!((site.faults.calls("BatchGetItem"), site.faults.calls("TransactWriteItems")), (3, 2));
    let found = records(server, &dataset, 1_000).await;
    assert_eq!(found.len(), 23);
    assert!(found.iter().all(|record| record["tags"]["t"] == record["inputs"]["n"] && record["outputs"] == long));
}

#[tokio::test]
async fn records_may_be_deep_and_hold_half_a_surrogate_pair() {
    let site = Site::new().await;
    let server = &site.server;
    let dataset = dataset(server, "deep").await;
    let path = format!("datasets/{dataset}/records");
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let send = async |inputs: &str| {
        let records = format!(r#"[{{"inputs": {{"a": {inputs}}}}}]"#);
        call(server, "POST", &path, &json!({ "records": records })).await
    };
    // The depth includes the list of records, the record and its inputs.
    for inputs in [r#""x\ud83e""#, &nested(200), &nested(997)] {
        assert_eq!(counts(&send(inputs).await.ok()), (1, 0));
        assert_eq!(counts(&send(inputs).await.ok()), (0, 1));
    }
    for depth in [998, 100_000] {
        let refused = send(&nested(depth)).await.refused(400, "INVALID_PARAMETER_VALUE");
        assert_eq!(refused, "The value of 'records' has more than 1000 levels of nested arrays and objects.");
    }
    let kept = server.get_at(&format!("/api/3.0/mlflow/{path}"), &[]).await.ok();
    let kept = kept["records"].as_str().unwrap();
    assert!(kept.contains(r#"{"a": "x\ufffd"}"#) && kept.contains(&nested(200)) && kept.contains(&nested(997)));
}
