//! Scorers: versions without gaps, large scorers, and the state after deletions.

use futures::future::join_all;
use key_schema::Key;
use mlflow_api::response_size::MAX_JSON_BYTES;
use serde_json::{Value, json};

use crate::evaluation_datasets::{call, noise};
use crate::server::{Server, Site, TestResponse};

async fn register(server: &Server, experiment: &str, name: &str, serialized: &Value) -> TestResponse {
    let body = json!({ "experiment_id": experiment, "name": name, "serialized_scorer": serialized.to_string() });
    call(server, "POST", "scorers/register", &body).await
}

async fn get(server: &Server, path: &str, arguments: &[(&str, &str)]) -> TestResponse {
    server.get_at(&format!("/api/3.0/mlflow/scorers/{path}"), arguments).await
}

async fn versions(server: &Server, experiment: &str, name: &str) -> Vec<u64> {
    let found = get(server, "versions", &[("experiment_id", experiment), ("name", name)]).await.ok();
    found["scorers"].as_array().unwrap().iter().map(|scorer| scorer["scorer_version"].as_u64().unwrap()).collect()
}

async fn delete(server: &Server, experiment: &str, name: &str, version: Option<u64>) -> TestResponse {
    call(server, "DELETE", "scorers/delete", &json!({ "experiment_id": experiment, "name": name, "version": version }))
        .await
}

async fn rows(site: &Site) -> Vec<String> {
    site.dump().await.into_keys().filter(|key| key.contains("SCORER")).collect()
}

#[tokio::test]
async fn versions_have_no_gaps_whatever_is_lost() {
    for (refuse, lose) in [(10, 0), (0, 7)] {
        let site = Site::new().await;
        let experiment = site.server.experiment("e").await;
        site.faults.refuse_every(refuse);
        site.faults.lose_answer_every(lose);
        let (server, experiment) = (&site.server, experiment.as_str());
        let registered = join_all((0..8).map(|task| async move {
            let mut found = Vec::new();
            for round in 0..5 {
                let answer =
                    register(server, experiment, "shared", &json!({ "task": task, "round": round })).await.ok();
                found.push((
                    answer["version"].as_u64().unwrap(),
                    answer["scorer_id"].clone(),
                    answer["serialized_scorer"].clone(),
                ));
            }
            found
        }))
        .await
        .concat();
        site.faults.refuse_every(0);
        site.faults.lose_answer_every(0);
        assert_eq!(versions(server, experiment, "shared").await, (1..=40).collect::<Vec<_>>());
        for (version, id, serialized) in &registered {
            let version = version.to_string();
            let arguments = [("experiment_id", experiment), ("name", "shared"), ("version", version.as_str())];
            let found = get(server, "get", &arguments).await.ok()["scorer"].clone();
            assert_eq!((&found["scorer_id"], &found["serialized_scorer"]), (id, serialized));
        }
        let latest = get(server, "get", &[("experiment_id", experiment), ("name", "shared")]).await.ok();
        assert_eq!(latest["scorer"]["scorer_version"], 40);
    }
}

#[tokio::test]
async fn versions_are_deleted_and_registered_at_once() {
    let site = Site::new().await;
    site.faults.lose_answer_every(6);
    let (server, experiment) = (&site.server, site.server.experiment("e").await);
    for _ in 0..10 {
        register(server, &experiment, "s", &json!({})).await.ok();
    }
    let registering = join_all((0..4).map(|_| async { register(server, &experiment, "s", &json!({})).await.ok() }));
    let deleting = join_all((3..=9).map(|version| delete(server, &experiment, "s", Some(version))));
    let (_, deleted) = futures::future::join(registering, deleting).await;
    assert!(deleted.iter().all(|answer| answer.status == 200), "{deleted:?}");
    assert_eq!(versions(server, &experiment, "s").await, [1, 2, 10, 11, 12, 13, 14]);
    // As in MLflow, the number of the latest version is reused after that version is deleted.
    delete(server, &experiment, "s", Some(14)).await.ok();
    delete(server, &experiment, "s", Some(14)).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
    assert_eq!(register(server, &experiment, "s", &json!({})).await.ok()["version"], 14);
}

#[tokio::test]
async fn the_latest_version_is_never_one_that_is_gone() {
    let site = Site::new().await;
    let (server, other, experiment) = (&site.server, site.other().await, site.server.experiment("e").await);
    let register_all = async |name: &str| {
        for version in 1..=3 {
            register(server, &experiment, name, &json!({ "v": version })).await.ok();
        }
    };
    let latest = async |name: &str| {
        let found = get(server, "get", &[("experiment_id", &experiment), ("name", name)]).await.ok()["scorer"].clone();
        (found["scorer_version"].as_u64().unwrap(), found["serialized_scorer"].as_str().unwrap().to_owned())
    };
    // While a request deletes the latest version, another request deletes the previous version.
    register_all("a").await;
    let mut gate = site.faults.pause_before("TransactWriteItems", 1);
    let slow = async { delete(server, &experiment, "a", Some(3)).await.ok() };
    let fast = async {
        gate.reached().await;
        delete(&other, &experiment, "a", Some(2)).await.ok();
        gate.open();
    };
    futures::future::join(slow, fast).await;
    assert_eq!(versions(server, &experiment, "a").await, [1]);
    assert_eq!(latest("a").await, (1, json!({ "v": 1 }).to_string()));

    // While a request deletes the latest version, other requests replace both this version and the
    // previous one by versions with equal numbers.
    register_all("b").await;
    let mut gate = site.faults.pause_before("TransactWriteItems", 1);
    let slow = async { delete(server, &experiment, "b", Some(3)).await.ok() };
    let fast = async {
        gate.reached().await;
        for version in [3, 2] {
            delete(&other, &experiment, "b", Some(version)).await.ok();
        }
        // The test waits, because versions with equal numbers are distinguished by their creation
        // times.
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
        for version in [2, 3] {
            register(&other, &experiment, "b", &json!({ "new": version })).await.ok();
        }
        gate.open();
    };
    futures::future::join(slow, fast).await;
    assert_eq!(versions(server, &experiment, "b").await, [1, 2]);
    assert_eq!(latest("b").await, (2, json!({ "new": 2 }).to_string()));
}

#[tokio::test]
async fn a_scorer_that_changes_while_it_is_read_is_of_one_moment() {
    let site = Site::new().await;
    let (server, other, experiment) = (&site.server, site.other().await, site.server.experiment("e").await);
    let scorer = |seed: u64| json!({ "instructions": noise(seed, 600_000) });
    register(server, &experiment, "s", &scorer(1)).await.ok();
    let arguments = [("experiment_id", experiment.as_str()), ("name", "s")];
    for (version, new) in [(Some(1), Some(2)), (None, Some(3)), (Some(1), None)] {
        // The test waits, because times have a resolution of one ms.
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
        let mut gate = site.faults.pause_before("BatchGetItem", 1);
        let slow = async { get(server, "get", &arguments).await };
        let fast = async {
            gate.reached().await;
            delete(&other, &experiment, "s", version).await.ok();
            if let Some(seed) = new {
                register(&other, &experiment, "s", &scorer(seed)).await.ok();
            }
            gate.open();
        };
        let (found, ()) = futures::future::join(slow, fast).await;
        assert!(found == get(server, "get", &arguments).await, "{version:?} {new:?}");
        assert_eq!(found.status, if new.is_some() { 200 } else { 404 });
    }
}

#[tokio::test]
async fn a_scorer_may_be_larger_than_an_item() {
    let site = Site::new().await;
    site.faults.lose_answer_every(5);
    let (server, experiment) = (&site.server, site.server.experiment("e").await);
    let scorer = |seed: u64| json!({ "instructions": noise(seed, 900_000) });
    for version in 1..=3 {
        register(server, &experiment, "big", &scorer(version)).await.ok();
    }
    let arguments = [("experiment_id", experiment.as_str()), ("name", "big")];
    let latest = get(server, "get", &arguments).await.ok();
    assert_eq!(latest["scorer"]["serialized_scorer"], scorer(3).to_string());
    let all = get(server, "versions", &arguments).await.ok();
    let parsed = |scorer: &Value| serde_json::from_str::<Value>(scorer["serialized_scorer"].as_str().unwrap()).unwrap();
    assert_eq!(all["scorers"].as_array().unwrap().iter().map(parsed).collect::<Vec<_>>(), [1, 2, 3].map(scorer));
    delete(server, &experiment, "big", Some(3)).await.ok();
    let latest = get(server, "get", &arguments).await.ok();
    assert_eq!(latest["scorer"]["serialized_scorer"], scorer(2).to_string());
    let listed = get(server, "list", &arguments[..1]).await.ok();
    assert_eq!(listed["scorers"].as_array().unwrap().iter().map(parsed).collect::<Vec<_>>(), [scorer(2)]);
    delete(server, &experiment, "big", None).await.ok();
    assert_eq!(rows(&site).await, Vec::<String>::new());
}

/// Returns the keys of the parts of scorers.
async fn parts(site: &Site) -> Vec<Key> {
    let keys = site.dump().await.into_keys().filter(|key| key.contains("SCORERPART#"));
    let key = |key: String| key.split_once(' ').map(|(pk, sk)| Key { pk: pk.to_owned(), sk: sk.to_owned() });
    keys.filter_map(key).collect()
}

#[tokio::test]
async fn parts_of_a_version_that_comes_back_are_others() {
    let site = Site::new().await;
    let (server, experiment) = (&site.server, site.server.experiment("e").await);
    let scorer = |seed: u64| json!({ "instructions": noise(seed, 600_000) });
    register(server, &experiment, "s", &scorer(1)).await.ok();
    let kept = parts(&site).await;
    register(server, &experiment, "s", &scorer(2)).await.ok();
    let second: Vec<_> = parts(&site).await.into_iter().filter(|key| !kept.contains(key)).collect();
    assert!(!kept.is_empty() && !second.is_empty());
    delete(server, &experiment, "s", Some(2)).await.ok();
    assert_eq!(register(server, &experiment, "s", &scorer(2)).await.ok()["version"], 2);
    // The old parts may be deleted late and twice, which must not affect the new content.
    site.table.write_many(Vec::new(), &second).await.unwrap();
    let latest = get(server, "get", &[("experiment_id", &experiment), ("name", "s")]).await.ok();
    assert_eq!(latest["scorer"]["serialized_scorer"], scorer(2).to_string());

    // If two requests register a version concurrently, the slower one gets the next number. It
    // leaves only the parts of the version that it finally writes.
    let (before, other) = (parts(&site).await.len(), site.other().await);
    let mut gate = site.faults.pause_before("TransactWriteItems", 1);
    let slow = async { register(server, &experiment, "s", &scorer(3)).await.ok() };
    let fast = async {
        gate.reached().await;
        register(&other, &experiment, "s", &json!({})).await.ok();
        gate.open();
    };
    let (registered, ()) = futures::future::join(slow, fast).await;
    assert_eq!((registered["version"].as_u64(), parts(&site).await.len()), (Some(4), before + kept.len()));
}

#[tokio::test]
async fn hundreds_of_versions_go_with_their_scorer() {
    let site = Site::new().await;
    let (server, experiment) = (&site.server, site.server.experiment("e").await);
    for version in 1..=250 {
        assert_eq!(register(server, &experiment, "s", &json!({})).await.ok()["version"], version);
    }
    let config = json!({ "experiment_id": experiment, "name": "s", "sample_rate": 0, "filter_string": "x" });
    let config = call(server, "PUT", "scorers/online-config", &config).await.ok()["config"].clone();
    let arguments = [("scorer_ids", config["scorer_id"].as_str().unwrap())];
    assert_eq!(get(server, "online-configs", &arguments).await.ok(), json!({ "configs": [config] }));
    delete(server, &experiment, "s", None).await.ok();
    delete(server, &experiment, "s", None).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
    assert_eq!(get(server, "online-configs", &arguments).await.ok(), json!({ "configs": [] }));
    assert_eq!(rows(&site).await, Vec::<String>::new());
    let again = register(server, &experiment, "s", &json!({})).await.ok();
    assert!(again["version"] == 1 && again["scorer_id"] != config["scorer_id"]);
}

#[tokio::test]
async fn lists_are_of_active_experiments() {
    let site = Site::new().await;
    let server = &site.server;
    let experiments = [server.experiment("a").await, server.experiment("b").await, server.experiment("c").await];
    for experiment in &experiments {
        for name in ["z", "é", "a#b", &"long".repeat(500)] {
            register(server, experiment, name, &json!({})).await.ok();
            register(server, experiment, name, &json!({ "x": 1 })).await.ok();
        }
    }
    server.post("experiments/delete", json!({ "experiment_id": experiments[1] })).await.ok();
    let named = |answer: Value| -> Vec<(u64, String)> {
        let scorers = answer["scorers"].as_array().cloned().unwrap_or_default();
        let name = |scorer: &Value| scorer["scorer_name"].as_str().unwrap().chars().take(4).collect();
        scorers.iter().map(|scorer| (scorer["experiment_id"].as_u64().unwrap(), name(scorer))).collect()
    };
    let of = |experiment: &String| {
        ["a#b", "long", "z", "é"].map(|name| (experiment.parse::<u64>().unwrap(), name.to_owned()))
    };
    let both: Vec<_> = [of(&experiments[0]), of(&experiments[2])].concat();
    assert_eq!(named(get(server, "list", &[]).await.ok()), both);
    let all: Vec<_> = experiments.iter().rev().map(|experiment| ("experiment_ids", experiment.as_str())).collect();
    assert_eq!(named(get(server, "list", &all).await.ok()), both);
    assert_eq!(named(get(server, "list", &[("experiment_id", &experiments[2])]).await.ok()), of(&experiments[2]));
    get(server, "list", &[("experiment_id", &experiments[1])]).await.refused_as_deleted();
    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    let twice = [("experiment_ids", experiments[0].as_str()), ("experiment_ids", experiments[0].as_str())];
    assert_eq!(named(get(server, "list", &twice).await.ok()), of(&experiments[0]));
    let only_long = server.experiment("d").await;
    register(server, &only_long, &"x".repeat(2_000), &json!({})).await.ok();
    assert_eq!(named(get(server, "list", &[]).await.ok()).len(), 9);
}

#[tokio::test]
async fn scorers_of_many_experiments_are_read_together() {
    let site = Site::new().await;
    let server = &site.server;
    for name in ["a", "b", "c"] {
        register(server, &server.experiment(name).await, "s", &json!({})).await.ok();
    }
    site.faults.reset_calls();
    // The first query reads the workspace's list, so the second one is paused.
    let mut gate = site.faults.pause_before("Query", 2);
    let listing = async { get(server, "list", &[]).await.ok() };
    let others = async {
        gate.reached().await;
        while site.faults.calls("Query") < 4 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        gate.open();
    };
    let both = futures::future::join(listing, others);
    let (found, ()) = tokio::time::timeout(std::time::Duration::from_mins(5), both).await.unwrap();
    assert_eq!(found["scorers"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn what_is_refused_changes_nothing() {
    let site = Site::new().await;
    let (server, experiment) = (&site.server, site.server.experiment("e").await);
    register(server, &experiment, "s", &json!({ "a": 1 })).await.ok();
    let before = site.dump().await;
    for serialized in [
        json!([]),
        json!({ "call_source": "x" }),
        json!({ "builtin_scorer_pydantic_data": { "model": " " } }),
        json!({ "third_party_scorer_data": { "kwargs": { "api_base": "x" } } }),
    ] {
        register(server, &experiment, "s", &serialized).await.refused(400, "INVALID_PARAMETER_VALUE");
    }
    let gateway = json!({ "builtin_scorer_pydantic_data": { "model": "gateway:/x" } });
    register(server, &experiment, "s", &gateway).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
    register(server, "987654", "s", &json!({})).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
    delete(server, &experiment, "s", Some(2)).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
    for rate in [json!("x"), json!(-1), json!(1.5), json!(0.5)] {
        let config = json!({ "experiment_id": experiment, "name": "s", "sample_rate": rate });
        call(server, "PUT", "scorers/online-config", &config).await.refused(400, "INVALID_PARAMETER_VALUE");
    }
    assert_eq!(site.dump().await, before);
}

/// MLflow's lists of scorers have no pages. Lists that exceed the maximum size of a response are
/// therefore rejected, before they are decompressed.
#[tokio::test]
#[ignore = "registers 30 MB of scorers; part of `make test-slow`"]
async fn lists_that_no_answer_holds_are_refused() {
    let site = Site::new().await;
    let (server, experiment) = (&site.server, site.server.experiment("e").await);
    let arguments = [("experiment_id", experiment.as_str())];
    let long = json!({ "text": "x".repeat(MAX_JSON_BYTES / 7) });
    let refused = |answer: TestResponse| {
        let message = answer.refused(400, "INVALID_PARAMETER_VALUE");
        assert!(message.starts_with("The list of scorers"), "{message}");
    };
    for _ in 0..6 {
        register(server, &experiment, "one", &long).await.ok();
    }
    assert_eq!(versions(server, &experiment, "one").await, [1, 2, 3, 4, 5, 6]);
    register(server, &experiment, "one", &long).await.ok();
    refused(get(server, "versions", &[arguments[0], ("name", "one")]).await);
    for name in ["two", "three", "four", "five", "six"] {
        register(server, &experiment, name, &long).await.ok();
    }
    assert_eq!(get(server, "list", &arguments).await.ok()["scorers"].as_array().unwrap().len(), 6);
    register(server, &experiment, "seven", &long).await.ok();
    refused(get(server, "list", &arguments).await);
    refused(get(server, "list", &[]).await);
    // Even if the list is rejected, a single scorer in it can be read.
    get(server, "get", &[arguments[0], ("name", "one")]).await.ok();
}

#[tokio::test]
async fn a_row_of_another_name_is_not_the_scorers() {
    let site = Site::new().await;
    let server = &site.server;
    let [one, other] = test_site::hash_collisions::names();
    for name in [&one, &other] {
        assert_eq!(register(server, "0", name, &json!({ "of": name })).await.ok()["version"], 1);
    }
    // Requests cannot cause this state, so the test writes it directly.
    let key = key_schema::rows::Scorer::key(&mlflow_api::ExperimentId::DEFAULT, &one.as_str().into());
    let row = site.table.get(&key).await.unwrap().unwrap().with("name", table::text(&other));
    site.table.put(row, &table::Condition::Always).await.unwrap();
    let before = site.dump().await;
    for path in ["get", "versions"] {
        get(server, path, &[("experiment_id", "0"), ("name", &one)]).await.missing();
    }
    for version in [None, Some(1)] {
        delete(server, "0", &one, version).await.missing();
    }
    let config = json!({ "experiment_id": "0", "name": one, "sample_rate": 0.5 });
    call(server, "PUT", "scorers/online-config", &config).await.missing();
    let message = register(server, "0", &one, &json!({})).await.refused(400, "BAD_REQUEST");
    assert!(message.contains("Choose another name"), "{message}");
    assert_eq!(site.changes(&before).await.len(), 0);
    assert_eq!(versions(server, "0", &other).await, [1]);
}
