//! Evaluation datasets and their records. Records may be large or numerous, and are merged
//! concurrently over a table that throttles requests and loses responses.

use std::collections::{BTreeMap, BTreeSet};

use axum::body::Body;
use futures::future::join_all;
use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::server::{Server, Site, TestResponse};

/// Sends a request to a path below `/api/3.0/mlflow/`.
pub(crate) async fn call(server: &Server, method: &str, path: &str, body: &Value) -> TestResponse {
    let request = Request::builder().method(method).uri(format!("/api/3.0/mlflow/{path}"));
    let request = request.header(CONTENT_TYPE, "application/json").body(Body::from(body.to_string()));
    server.send(request.unwrap()).await
}

/// Returns a text that is hardly compressible.
pub(crate) fn noise(seed: u64, length: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + 1 + u8::try_from(state % 90).unwrap())
    };
    (0..length).map(|_| next()).collect()
}

pub(crate) async fn dataset(server: &Server, name: &str) -> String {
    let created = call(server, "POST", "datasets/create", &json!({ "name": name })).await.ok();
    created["dataset"]["dataset_id"].as_str().unwrap().to_owned()
}

pub(crate) async fn merge(server: &Server, dataset: &str, records: &Value) -> TestResponse {
    let body = json!({ "records": records.to_string() });
    call(server, "POST", &format!("datasets/{dataset}/records"), &body).await
}

/// Returns the numbers of inserted and updated records in a response.
pub(crate) fn counts(answer: &Value) -> (u64, u64) {
    (answer["inserted_count"].as_u64().unwrap(), answer["updated_count"].as_u64().unwrap())
}

pub(crate) async fn page(
    server: &Server,
    dataset: &str,
    size: usize,
    token: Option<&str>,
) -> (Vec<Value>, Option<String>) {
    let size = size.to_string();
    let mut arguments = vec![("max_results", size.as_str())];
    arguments.extend(token.map(|token| ("page_token", token)));
    let answer = server.get_at(&format!("/api/3.0/mlflow/datasets/{dataset}/records"), &arguments).await.ok();
    let records = serde_json::from_str::<Vec<Value>>(answer["records"].as_str().unwrap()).unwrap();
    (records, answer["next_page_token"].as_str().map(str::to_owned))
}

pub(crate) async fn records(server: &Server, dataset: &str, size: usize) -> Vec<Value> {
    let (mut found, mut token) = page(server, dataset, size, None).await;
    while let Some(next) = token {
        let more;
        (more, token) = page(server, dataset, size, Some(&next)).await;
        assert!(more.len() <= size);
        found.extend(more);
    }
    found
}

pub(crate) async fn profile(server: &Server, dataset: &str) -> Value {
    let found = call(server, "GET", &format!("datasets/{dataset}"), &json!({})).await.ok();
    found["dataset"]["profile"].as_str().map_or(Value::Null, |profile| serde_json::from_str(profile).unwrap())
}

pub(crate) fn id(record: &Value) -> &str {
    record["dataset_record_id"].as_str().unwrap()
}

/// Returns the keys of all rows of evaluation datasets and their records.
pub(crate) async fn rows(site: &Site) -> Vec<String> {
    site.dump().await.into_keys().filter(|key| key.contains("EVAL") || key.contains("EDS#")).collect()
}

/// Passes the stream record of a dataset's removal to the indexer.
pub(crate) async fn clear_up(site: &Site, dataset: &str) {
    let keys = json!({ "PK": { "S": format!("EVAL#{dataset}") }, "SK": { "S": "ED#META" } });
    let change = json!({ "Keys": keys, "OldImage": { "rev": { "N": "1" } }, "SequenceNumber": "1" });
    site.index(vec![json!({ "eventName": "REMOVE", "dynamodb": change })]).await;
}

#[tokio::test]
async fn many_clients_merge_each_record_once() {
    for (refuse, lose) in [(10, 0), (0, 7)] {
        let site = Site::new().await;
        let dataset = dataset(&site.server, "shared").await;
        site.faults.refuse_every(refuse);
        site.faults.lose_answer_every(lose);
        let (server, dataset) = (&site.server, dataset.as_str());
        // Each client sends 60 records, of which half are also sent by the other clients.
        let merged = join_all((0..6).map(|task: i64| async move {
            let sent: Vec<_> = (0..60)
                .map(|number| {
                    let input = if number < 30 { number } else { 1_000 * task + number };
                    json!({ "inputs": { "n": input }, "expectations": { format!("by{task}"): number } })
                })
                .collect();
            let mut sum = (0, 0);
            for part in sent.chunks(20) {
                let (inserted, updated) = counts(&merge(server, dataset, &part.into()).await.ok());
                sum = (sum.0 + inserted, sum.1 + updated);
            }
            sum
        }))
        .await;
        site.faults.refuse_every(0);
        site.faults.lose_answer_every(0);
        let expected = 30 + 6 * 30;
        assert_eq!(merged.iter().map(|sum| sum.0).sum::<u64>(), expected);
        assert_eq!(merged.iter().map(|sum| sum.1).sum::<u64>(), 360 - expected);
        assert_eq!(profile(server, dataset).await, json!({ "num_records": expected }));
        let found = records(server, dataset, 50).await;
        let inputs: BTreeSet<_> = found.iter().map(|record| record["inputs"]["n"].as_i64().unwrap()).collect();
        assert_eq!((inputs.len(), found.len()), (210, 210));
        for record in found.iter().filter(|record| record["inputs"]["n"].as_i64().unwrap() < 30) {
            assert_eq!(record["expectations"].as_object().unwrap().len(), 6, "{record}");
        }
        let claims = rows(&site).await.into_iter().filter(|key| key.contains("ED#HASH#")).count();
        assert_eq!(claims, 210);
        let whole = call(server, "GET", &format!("datasets/{dataset}"), &json!({})).await.ok();
        let schema: Value = serde_json::from_str(whole["dataset"]["schema"].as_str().unwrap()).unwrap();
        assert_eq!(schema["expectations"].as_object().unwrap().len(), 6);
    }
}

#[tokio::test]
async fn a_dataset_lives_and_dies_once_whatever_is_lost() {
    for (refuse, lose) in [(3, 0), (0, 2)] {
        let site = Site::new().await;
        let server = &site.server;
        let experiment = server.experiment("e").await;
        site.faults.refuse_every(refuse);
        site.faults.lose_answer_every(lose);
        let dataset = dataset(server, "d").await;
        let path = |rest: &str| format!("datasets/{dataset}{rest}");
        // The leases on the experiments expire before this request, which names one experiment
        // twice.
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        let experiments = json!({ "experiment_ids": [experiment, "0", "0"] });
        call(server, "POST", &path("/add-experiments"), &experiments).await.ok();
        call(server, "PATCH", &path("/tags"), &json!({ "tags": r#"{"a": 1, "b": null}"# })).await.ok();
        call(server, "DELETE", &path("/tags/a"), &json!({})).await.ok();
        let sent: Value = (0..120).map(|number| json!({ "inputs": { "n": number } })).collect();
        assert_eq!(counts(&merge(server, &dataset, &sent).await.ok()), (120, 0));
        assert_eq!(counts(&merge(server, &dataset, &sent).await.ok()), (0, 120));
        let found = records(server, &dataset, 1_000).await;
        // The records of a request are stored in the order of the request.
        assert!(found.iter().enumerate().all(|(place, record)| record["inputs"]["n"] == json!(place)));
        let half: Vec<_> = found.iter().step_by(2).map(id).collect();
        let deletion = json!({ "dataset_record_ids": half });
        assert_eq!(call(server, "DELETE", &path("/records"), &deletion).await.ok()["deleted_count"], 60);
        assert_eq!(call(server, "DELETE", &path("/records"), &deletion).await.ok()["deleted_count"], 0);
        assert_eq!(profile(server, &dataset).await, json!({ "num_records": 60 }));
        assert_eq!(counts(&merge(server, &dataset, &sent).await.ok()), (60, 60));
        call(server, "POST", &path("/remove-experiments"), &json!({ "experiment_ids": ["0"] })).await.ok();
        let ids = call(server, "GET", &path("/experiment-ids"), &json!({})).await.ok();
        assert_eq!(ids, json!({ "experiment_ids": [experiment] }));
        let search = json!({ "experiment_ids": [experiment] });
        let found = call(server, "POST", "datasets/search", &search).await.ok();
        assert_eq!(found["datasets"][0]["dataset_id"], dataset.as_str());
        call(server, "DELETE", &path(""), &json!({})).await.ok();
        call(server, "DELETE", &path(""), &json!({})).await.ok();
        assert_eq!(call(server, "POST", "datasets/search", &json!({})).await.ok(), json!({}));
        assert_eq!(records(server, &dataset, 10).await, Vec::<Value>::new());
        clear_up(&site, &dataset).await;
        assert_eq!(rows(&site).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn what_changes_while_it_is_read_is_of_one_moment() {
    let site = Site::new().await;
    let (server, other) = (&site.server, site.other().await);
    let dataset = dataset(server, "moving").await;
    let path = format!("datasets/{dataset}");
    let record = |seed: u64| {
        let fields: BTreeMap<_, _> = (0..3_000).map(|number| (noise(seed * 3_000 + number, 150), number)).collect();
        json!([{ "inputs": { "q": 1 }, "outputs": noise(seed, 600 << 10), "expectations": fields }])
    };
    merge(server, &dataset, &record(1)).await.ok();
    for (seed, path) in [(2, path.clone()), (3, format!("{path}/records"))] {
        // The test waits, because times have a resolution of one ms.
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
        let mut gate = site.faults.pause_before("BatchGetItem", 1);
        let slow = async { call(server, "GET", &path, &json!({})).await.ok() };
        let fast = async {
            gate.reached().await;
            merge(&other, &dataset, &record(seed)).await.ok();
            gate.open();
        };
        let (found, ()) = futures::future::join(slow, fast).await;
        assert!(found == call(server, "GET", &path, &json!({})).await.ok(), "{path}");
    }
}

#[tokio::test]
async fn many_records_are_deleted_in_portions() {
    for (refuse, lose) in [(0, 0), (4, 0), (0, 4)] {
        let site = Site::new().await;
        let server = &site.server;
        let dataset = dataset(server, "many").await;
        let sent: Value = (0..450).map(|number| json!({ "inputs": { "n": number } })).collect();
        merge(server, &dataset, &sent).await.ok();
        let found = records(server, &dataset, 1_000).await;
        let mut ids: Vec<_> = found.iter().skip(30).map(id).collect();
        ids.extend_from_within(..100);
        ids.extend(["dr-1", "dr-00000000000000000000000000000000", "#"]);
        let deletion = json!({ "dataset_record_ids": ids });
        site.faults.reset_calls();
        site.faults.refuse_every(refuse);
        site.faults.lose_answer_every(lose);
        let deleted = call(server, "DELETE", &format!("datasets/{dataset}/records"), &deletion).await.ok();
        assert_eq!(deleted["deleted_count"], 420);
        if refuse + lose == 0 {
            // 420 records are processed in portions of 196, which take 4 + 4 + 1 transactions.
            assert_eq!(site.faults.calls("TransactWriteItems"), 9);
        }
        let left = records(server, &dataset, 1_000).await;
        assert!(left.iter().map(id).eq(found.iter().take(30).map(id)));
        assert_eq!(profile(server, &dataset).await, json!({ "num_records": 30 }));
        let claims = rows(&site).await.into_iter().filter(|key| key.contains("ED#HASH#")).count();
        assert_eq!(claims, 30);
    }
}

#[tokio::test]
async fn pages_go_on_where_they_ended() {
    let site = Site::new().await;
    let server = &site.server;
    let (dataset, other) = (dataset(server, "paged").await, dataset(server, "other").await);
    for part in 0..5 {
        let sent: Value = (0..50).map(|number| json!({ "inputs": { "n": part * 50 + number } })).collect();
        merge(server, &dataset, &sent).await.ok();
    }
    for size in [1, 7, 49, 50, 249, 250, 251] {
        let found = records(server, &dataset, size).await;
        assert!(found.iter().map(|record| record["inputs"]["n"].as_i64().unwrap()).eq(0..250), "{size}");
    }
    // The last record of a page is deleted, and another one is added at the end.
    let (first, token) = page(server, &dataset, 100, None).await;
    let deletion = json!({ "dataset_record_ids": [id(&first[99])] });
    call(server, "DELETE", &format!("datasets/{dataset}/records"), &deletion).await.ok();
    merge(server, &dataset, &json!([{ "inputs": { "n": 250 } }])).await.ok();
    let (second, _) = page(server, &dataset, 1_000, token.as_deref()).await;
    assert!(second.iter().map(|record| record["inputs"]["n"].as_i64().unwrap()).eq(100..251));
    let path = format!("/api/3.0/mlflow/datasets/{other}/records");
    let foreign = server.get_at(&path, &[("page_token", token.as_deref().unwrap())]).await;
    foreign.refused(400, "INVALID_PARAMETER_VALUE");
}

#[tokio::test]
async fn what_is_refused_changes_nothing() {
    let site = Site::new().await;
    let server = &site.server;
    let dataset = dataset(server, "d").await;
    merge(server, &dataset, &json!([{ "inputs": { "n": 1 } }])).await.ok();
    let before = site.dump().await;
    let good = json!({ "inputs": { "n": 2 } });
    for bad in [
        json!(5),
        json!({ "inputs": null }),
        json!({ "inputs": {}, "tags": [] }),
        json!({ "source": { "source_type": "x" } }),
    ] {
        merge(server, &dataset, &json!([good, bad])).await.refused(400, "INVALID_PARAMETER_VALUE");
    }
    let deep = format!("[{{\"inputs\": {{\"a\": {}{}}}}}]", "[".repeat(5_000), "]".repeat(5_000));
    let path = format!("datasets/{dataset}/records");
    for records in ["x", "[{]", &deep] {
        let answer = call(server, "POST", &path, &json!({ "records": records })).await;
        answer.refused(400, "INVALID_PARAMETER_VALUE");
    }
    for missing in ["d-00000000000000000000000000000000", "nothing", "%23", "EVAL%23x"] {
        merge(server, missing, &json!([good])).await.refused(400, "BAD_REQUEST");
        let deletion = json!({ "dataset_record_ids": ["dr-1"] });
        let none = call(server, "DELETE", &format!("datasets/{missing}/records"), &deletion).await.ok();
        assert_eq!(none["deleted_count"], 0);
    }
    let experiments = json!({ "experiment_ids": ["0", "987654"] });
    let answer = call(server, "POST", &format!("datasets/{dataset}/add-experiments"), &experiments).await;
    answer.refused(404, "RESOURCE_DOES_NOT_EXIST");
    for tags in [r#"{"t": []}"#, "[1]", "{"] {
        let answer = call(server, "POST", "datasets/create", &json!({ "name": "x", "tags": tags })).await;
        assert_eq!(answer.status, 400, "{answer:?}");
    }
    let twice = json!({ "name": "x", "experiment_ids": ["0", "0"] });
    call(server, "POST", "datasets/create", &twice).await.refused(400, "BAD_REQUEST");
    // The dataset has more than a hundred experiments, which do not fit into one transaction.
    let many: Vec<_> = (0..150).map(|number| number.to_string()).collect();
    for long in [1_001, 70_000] {
        let experiments = [many.clone(), vec!["é".repeat(long)]].concat();
        let new = json!({ "name": "x", "experiment_ids": experiments });
        call(server, "POST", "datasets/create", &new).await.refused(400, "INVALID_PARAMETER_VALUE");
        // No experiment can have such an id.
        let path = format!("datasets/{dataset}/add-experiments");
        let answer = call(server, "POST", &path, &json!({ "experiment_ids": ["0", "é".repeat(long)] })).await;
        answer.refused(404, "RESOURCE_DOES_NOT_EXIST");
    }
    let mut tags: BTreeMap<_, _> = (0..150).map(|number| (format!("t{number}"), noise(number, 5_000))).collect();
    tags.insert("u".to_owned(), "x".repeat(390 << 10));
    let tags = json!(tags).to_string();
    let new = json!({ "name": "x", "experiment_ids": many, "tags": tags });
    assert_eq!(call(server, "POST", "datasets/create", &new).await.status, 400);
    let set = call(server, "PATCH", &format!("datasets/{dataset}/tags"), &json!({ "tags": tags })).await;
    assert_eq!(set.status, 400);
    assert_eq!(site.dump().await, before);
}

#[tokio::test]
async fn hundreds_of_experiments_and_tags() {
    let site = Site::new().await;
    let server = &site.server;
    // MLflow does not check whether experiments exist when a dataset is created.
    let names: BTreeSet<_> =
        (0..250).map(|number| format!("{number}#")).chain([String::new(), "x".repeat(1_000)]).collect();
    let tags: BTreeMap<_, _> = (0..300).map(|number| (format!("t{number}"), noise(number, 1_200))).collect();
    let new = json!({ "name": "n".repeat(3_000), "experiment_ids": names, "tags": json!(tags).to_string() });
    let created = call(server, "POST", "datasets/create", &new).await.ok()["dataset"].clone();
    let dataset = created["dataset_id"].as_str().unwrap();
    let path = |rest: &str| format!("datasets/{dataset}{rest}");
    let found = call(server, "GET", &path(""), &json!({})).await.ok()["dataset"].clone();
    assert_eq!((&found["tags"], &found["name"]), (&created["tags"], &new["name"]));
    let found: BTreeMap<String, String> = serde_json::from_str(found["tags"].as_str().unwrap()).unwrap();
    assert_eq!(found, tags);
    let found = call(server, "GET", &path("/experiment-ids"), &json!({})).await.ok();
    assert_eq!(found["experiment_ids"], json!(names));
    for experiment in ["7#", "", &"x".repeat(1_000)] {
        let search = json!({ "experiment_ids": [experiment], "filter_string": "name LIKE 'nn%' AND tags.t7 LIKE '%'" });
        let found = call(server, "POST", "datasets/search", &search).await.ok();
        assert_eq!(found["datasets"].as_array().unwrap().len(), 1, "{experiment}");
    }
    let gone: Vec<_> = names.iter().filter(|name| name.as_str() != "7#").collect();
    call(server, "POST", &path("/remove-experiments"), &json!({ "experiment_ids": gone })).await.ok();
    let found = call(server, "GET", &path("/experiment-ids"), &json!({})).await.ok();
    assert_eq!(found["experiment_ids"], json!(["7#"]));
    assert_eq!(rows(&site).await.iter().filter(|key| key.starts_with("EVALEXP#")).count(), 1);
    call(server, "DELETE", &path(""), &json!({})).await.ok();
    clear_up(&site, dataset).await;
    assert_eq!(rows(&site).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_schema_may_be_larger_than_an_item() {
    let site = Site::new().await;
    let server = &site.server;
    let dataset = dataset(server, "wide").await;
    for part in 0..3_u64 {
        let fields: BTreeMap<_, _> = (0..2_000).map(|number| (noise(part * 2_000 + number, 150), number)).collect();
        merge(server, &dataset, &json!([{ "inputs": fields }])).await.ok();
    }
    let found = call(server, "GET", &format!("datasets/{dataset}"), &json!({})).await.ok();
    let schema: Value = serde_json::from_str(found["dataset"]["schema"].as_str().unwrap()).unwrap();
    assert_eq!(schema["inputs"].as_object().unwrap().len(), 6_000);
    assert_eq!(records(server, &dataset, 2).await.len(), 3);
}

#[tokio::test]
async fn nothing_is_merged_into_a_dataset_that_is_gone() {
    for (request, nth) in [("GetItem", 1), ("BatchGetItem", 1), ("TransactWriteItems", 1), ("TransactWriteItems", 3)] {
        let site = Site::new().await;
        let (server, other) = (&site.server, site.other().await);
        let dataset = dataset(server, "going").await;
        let mut gate = site.faults.pause_before(request, nth);
        let merging = async {
            let mut statuses = Vec::new();
            for round in 0..4 {
                let sent: Value = (0..10).map(|number| json!({ "inputs": { "n": round * 10 + number } })).collect();
                statuses.push(merge(server, &dataset, &sent).await.status);
            }
            statuses
        };
        let deleting = async {
            gate.reached().await;
            call(&other, "DELETE", &format!("datasets/{dataset}"), &json!({})).await.ok();
            clear_up(&site, &dataset).await;
            gate.open();
        };
        let (statuses, ()) = futures::future::join(merging, deleting).await;
        let merged = usize::try_from(nth - 1).unwrap();
        let expected: Vec<_> = [200; 4].into_iter().take(merged).chain([400; 4]).take(4).collect();
        assert_eq!(statuses, expected, "{request} {nth}");
        assert_eq!(rows(&site).await, Vec::<String>::new(), "{request} {nth}");
    }
}
