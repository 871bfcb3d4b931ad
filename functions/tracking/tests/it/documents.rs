//! Params and tags of every size and name are read exactly as they were logged.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use test_site::all_troubles;

use crate::server::{Server, Site, by_key};

async fn run(site: &Site) -> (String, String) {
    let experiment = site.server.experiment("e").await;
    let run = site.server.run(&experiment).await;
    (experiment, run)
}

/// Checks the run's data, as returned by `runs/get` and by both kinds of search.
async fn expect(server: &Server, experiment: &str, run: &str, what: &str, expected: &BTreeMap<String, Value>) {
    assert_eq!(server.data(run, what).await, *expected);
    for order in [json!([]), json!(["start_time ASC"])] {
        let search = json!({ "experiment_ids": [experiment], "order_by": order });
        let found = server.post("runs/search", search).await.ok();
        let run = found["runs"].as_array().unwrap().iter().find(|found| found["info"]["run_id"] == run).unwrap();
        assert_eq!(by_key(&run["data"][what]), *expected, "{order}");
    }
}

/// Returns 100 keys and values. A third of the values have the maximum length for a document.
fn hundred(name: &str, from: usize) -> Vec<(String, String)> {
    let value = |number: usize| if number.is_multiple_of(3) { "v".repeat(1_024) } else { number.to_string() };
    (from..from + 100).map(|number| (format!("{name}{number}"), value(number))).collect()
}

fn json_of(entries: &[(String, String)]) -> Vec<Value> {
    entries.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect()
}

#[tokio::test]
async fn thousands_of_params() {
    let site = Site::new().await;
    let (experiment, run) = run(&site).await;
    let mut expected = BTreeMap::new();
    for from in (0..2_000).step_by(100) {
        let params = hundred("p", from);
        let batch = json!({ "run_id": run, "params": json_of(&params) });
        site.server.post("runs/log-batch", batch).await.ok();
        expected.extend(params.into_iter().map(|(key, value)| (key, Value::from(value))));
    }
    site.server.log_param(&run, "one more", "x").await.ok();
    expected.insert("one more".to_owned(), "x".into());
    expect(&site.server, &experiment, &run, "params", &expected).await;
    let items = site.dump().await;
    let document = &items[&format!("EXP#{experiment} R#{run}")];
    let held = document["params"]["M"].as_object().unwrap().len();
    assert!(document.get("full").is_some() && held < 300, "{held}");
    assert_eq!(items.keys().filter(|key| key.contains("#PARAM#")).count(), 2_001 - held);
    for filter in ["params.p1999 = '1999'", "params.p0 LIKE 'vvv%' AND params.p1 = '1'"] {
        let search = json!({ "experiment_ids": [experiment], "filter": filter });
        assert_eq!(site.server.search(search).await, [run.as_str()]);
    }
    // A param keeps its value, whether it is in a row or in the document.
    for key in ["p0", "p1999", "one more"] {
        site.server.log_param(&run, key, "other").await.refused(400, "INVALID_PARAMETER_VALUE");
    }
}

#[tokio::test]
async fn thousands_of_tags_set_again_and_deleted() {
    let site = Site::new().await;
    let (experiment, run) = run(&site).await;
    let mut expected = site.server.data(&run, "tags").await;
    for from in (0..1_000).step_by(100) {
        let tags = hundred("t", from);
        site.server.post("runs/log-batch", json!({ "run_id": run, "tags": json_of(&tags) })).await.ok();
        expected.extend(tags.into_iter().map(|(key, value)| (key, Value::from(value))));
    }
    // Small values become large ones and vice versa, in the document and in rows.
    let turned: Vec<_> = [0, 1, 2, 3, 900, 901, 902, 903]
        .map(|number: usize| {
            let value = if number.is_multiple_of(2) { "w".repeat(3_000) } else { "w".to_owned() };
            (format!("t{number}"), value)
        })
        .to_vec();
    site.server.post("runs/log-batch", json!({ "run_id": run, "tags": json_of(&turned) })).await.ok();
    expected.extend(turned.into_iter().map(|(key, value)| (key, Value::from(value))));
    expect(&site.server, &experiment, &run, "tags", &expected).await;
    for number in [0, 1, 2, 500, 900, 901] {
        let key = format!("t{number}");
        let tag = json!({ "run_id": run, "key": key });
        site.server.post("runs/delete-tag", tag.clone()).await.ok();
        site.server.post("runs/delete-tag", tag).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
        expected.remove(&key);
    }
    expect(&site.server, &experiment, &run, "tags", &expected).await;
}

/// Tests a tag of a run and a tag of its experiment with three different forms in sequence. All
/// sequences are tested if `all_troubles` is set. Otherwise, only one third form follows each pair.
#[tokio::test]
async fn a_tag_grows_and_shrinks_and_goes() {
    let site = Site::new().await;
    let (experiment, run) = run(&site).await;
    let server = &site.server;
    let forms = ["s", "S", &"l".repeat(1_025), &"L".repeat(5_000), &"e".repeat(1_024), ""];
    let run_form = |value: &str| json!({ "run_id": run, "key": "k", "value": value });
    let experiment_form = |value: &str| json!({ "experiment_id": experiment, "key": "k", "value": value });
    for (place, first) in forms.into_iter().enumerate() {
        for (other, second) in forms.into_iter().enumerate() {
            // Each form still follows every other form, both in the first step and in the second.
            let one = (place + other) % forms.len();
            let thirds = if all_troubles() { &forms[..] } else { &forms[one..=one] };
            for third in thirds {
                for value in [first, second, *third] {
                    server.post("runs/set-tag", run_form(value)).await.ok();
                    server.post("experiments/set-experiment-tag", experiment_form(value)).await.ok();
                }
                assert_eq!(server.data(&run, "tags").await["k"], *third);
                let found = server.get("experiments/get", &[("experiment_id", &experiment)]).await.ok();
                assert_eq!(by_key(&found["experiment"]["tags"])["k"], *third);
            }
        }
        server.post("runs/delete-tag", run_form("")).await.ok();
        server.post("experiments/delete-experiment-tag", experiment_form("")).await.ok();
        server.post("runs/delete-tag", run_form("")).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
        let again = server.post("experiments/delete-experiment-tag", experiment_form("")).await;
        again.refused(404, "RESOURCE_DOES_NOT_EXIST");
        assert!(!site.dump().await.keys().any(|key| key.contains("#TAG#")));
    }
}

#[tokio::test]
async fn keys_of_every_kind_at_creation() {
    let site = Site::new().await;
    let (experiment, _) = run(&site).await;
    let long = "k".repeat(1_500);
    let keys = ["", "#", "a#b", "\0", "\0\0", "\0a", "a\0b", "😀", "$", ".", "R#x#TAG#y", "a.b", long.as_str()];
    for bytes in [1, 2_000] {
        let value = |key: &str| format!("{key}{}", "v".repeat(bytes));
        let tags: Vec<_> = keys.iter().map(|key| json!({ "key": key, "value": value(key) })).collect();
        let new = json!({ "experiment_id": experiment, "run_name": "odd", "tags": tags });
        let created = site.server.post("runs/create", new).await.ok()["run"].clone();
        let run = created["info"]["run_id"].as_str().unwrap();
        let mut expected: BTreeMap<_, _> = keys.iter().map(|key| ((*key).to_owned(), value(key).into())).collect();
        expected.insert("mlflow.runName".to_owned(), Value::from("odd"));
        assert_eq!(by_key(&created["data"]["tags"]), expected);
        expect(&site.server, &experiment, run, "tags", &expected).await;
        for key in keys.iter().filter(|key| !key.is_empty()) {
            site.server.post("runs/delete-tag", json!({ "run_id": run, "key": key })).await.ok();
            expected.remove(*key);
        }
        expect(&site.server, &experiment, run, "tags", &expected).await;
    }
}

#[tokio::test]
async fn a_run_is_created_with_more_tags_than_its_document_holds() {
    let site = Site::new().await;
    let (experiment, _) = run(&site).await;
    let tags: Vec<_> = (0..6).flat_map(|part| hundred("t", part * 100)).collect();
    let new = json!({ "experiment_id": experiment, "run_name": "n", "tags": json_of(&tags) });
    let created = site.server.post("runs/create", new).await.ok()["run"].clone();
    let run = created["info"]["run_id"].as_str().unwrap();
    let mut expected: BTreeMap<_, _> = tags.into_iter().map(|(key, value)| (key, Value::from(value))).collect();
    expected.insert("mlflow.runName".to_owned(), "n".into());
    expect(&site.server, &experiment, run, "tags", &expected).await;
    // Both kinds of tags can be set again.
    for key in ["t0", "t1", "t599", "t598", "new"] {
        site.server.set_tag(run, key, "again").await.ok();
        expected.insert(key.to_owned(), "again".into());
    }
    expect(&site.server, &experiment, run, "tags", &expected).await;
}

#[tokio::test]
async fn long_values_are_cut_where_mlflow_cuts_them() {
    let site = Site::new().await;
    let (_, run) = run(&site).await;
    site.server.log_param(&run, "p", &"😀".repeat(7_000)).await.ok();
    site.server.set_tag(&run, "t", &"😀".repeat(9_000)).await.ok();
    assert_eq!(site.server.data(&run, "params").await["p"], "😀".repeat(6_000));
    assert_eq!(site.server.data(&run, "tags").await["t"], "😀".repeat(8_000));
    // A hundred of the largest values in one call.
    let entry = |name: &str, number: usize, length: usize| {
        let value = "😀".repeat(length);
        json!({ "key": format!("{name}{number}"), "value": value })
    };
    let params: Vec<_> = (0..100).map(|number| entry("p", number, 6_000)).collect();
    let tags: Vec<_> = (0..100).map(|number| entry("t", number, 8_000)).collect();
    let batch = json!({ "run_id": run, "params": params, "tags": tags });
    site.server.post("runs/log-batch", batch).await.ok();
    assert_eq!(site.server.data(&run, "params").await.len(), 101);
    assert_eq!(site.server.data(&run, "tags").await.len(), 102);
}

/// Concurrent clients change one tag of a run whose document becomes full in the meantime.
#[tokio::test]
async fn tags_are_set_and_deleted_by_many_at_once() {
    let site = Site::new().await;
    site.faults.lose_answer_every(9);
    let (_, run) = run(&site).await;
    let (server, run) = (&site.server, run.as_str());
    futures::future::join_all((0..12_usize).map(|task| async move {
        for round in 0..10_usize {
            let value = task.to_string().repeat(if (task + round).is_multiple_of(2) { 2 } else { 1_100 });
            server.set_tag(run, "shared", &value).await.ok();
            server.set_tag(run, &format!("own{task}.{round}"), &"x".repeat(700)).await.ok();
            if round % 5 == 4 {
                let answer = server.post("runs/delete-tag", json!({ "run_id": run, "key": "shared" })).await;
                assert!([200, 404].contains(&answer.status), "{answer:?}");
            }
        }
    }))
    .await;
    server.set_tag(run, "shared", "last").await.ok();
    let tags = server.data(run, "tags").await;
    assert_eq!((&tags["shared"], tags.len()), (&json!("last"), 12 * 10 + 2));
}
