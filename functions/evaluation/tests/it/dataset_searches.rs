//! Searches of evaluation datasets, and which datasets a caller may find.

use std::sync::Arc;

use access::{Action, Guard, Visibility};
use mlflow_api::ExperimentId;
use serde_json::json;

use crate::evaluation_datasets::{call, dataset};
use crate::server::Site;

#[tokio::test]
async fn lists_of_many_experiments_are_read_together() {
    let site = Site::new().await;
    let server = &site.server;
    for experiments in [json!(["a", "b"]), json!(["c"])] {
        let new = json!({ "name": "n", "experiment_ids": experiments });
        call(server, "POST", "datasets/create", &new).await.ok();
    }
    let search = json!({ "experiment_ids": ["a", "b", "c"] });
    site.faults.reset_calls();
    let mut gate = site.faults.pause_before("Query", 1);
    let searching = async { call(server, "POST", "datasets/search", &search).await.ok() };
    let others = async {
        gate.reached().await;
        while site.faults.calls("Query") < 3 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        gate.open();
    };
    let both = futures::future::join(searching, others);
    let (found, ()) = tokio::time::timeout(std::time::Duration::from_mins(5), both).await.unwrap();
    assert_eq!(found["datasets"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn searches_keep_their_place() {
    let site = Site::new().await;
    let server = &site.server;
    let mut ids = Vec::new();
    for number in 0..25 {
        ids.push(dataset(server, &format!("name {}", number % 4)).await);
        // The test waits between datasets, because ids with equal creation times in ms are in
        // random order.
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    ids.reverse();
    for (filter, order) in [("", json!([])), ("last_update_time > 0", json!(["last_update_time DESC"]))] {
        let mut search = json!({ "filter_string": filter, "order_by": order, "max_results": 4 });
        let mut found = Vec::new();
        loop {
            let page = call(server, "POST", "datasets/search", &search).await.ok();
            let datasets = page["datasets"].as_array().unwrap().iter();
            found.extend(datasets.map(|dataset| dataset["dataset_id"].as_str().unwrap().to_owned()));
            // The last dataset of a page is deleted before the next page is requested.
            if found.len() == 8 {
                call(server, "DELETE", &format!("datasets/{}", found[7]), &json!({})).await.ok();
            }
            match page["next_page_token"].as_str() {
                Some(token) => search["page_token"] = token.into(),
                None => break,
            }
        }
        assert_eq!(found, ids, "{filter}");
        ids.remove(7);
        search["filter_string"] = "name = 'x'".into();
        call(server, "POST", "datasets/search", &search).await.refused(400, "INVALID_PARAMETER_VALUE");
    }
}

/// Experiment ids of datasets may be any text, not only valid ids. The keys of the lists for long
/// texts contain a hash, which may collide.
#[tokio::test]
async fn a_dataset_in_the_list_of_another_text_is_not_found() {
    let site = Site::new().await;
    let server = &site.server;
    let [one, other] = test_site::hash_collisions::names();
    for experiment in [&one, &other] {
        let new = json!({ "name": &experiment[800..], "experiment_ids": [experiment] });
        call(server, "POST", "datasets/create", &new).await.ok();
    }
    let found = async |experiment: &str| {
        let search = json!({ "experiment_ids": [experiment] });
        let found = call(server, "POST", "datasets/search", &search).await.ok();
        let datasets = found["datasets"].as_array().cloned().unwrap_or_default();
        datasets.iter().map(|dataset| dataset["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found(&one).await, [&one[800..]]);
    assert_eq!(found(&other).await, [&other[800..]]);
    // Requests cannot cause this state, so the test writes it directly.
    let list = |experiment: &str| key_schema::rows::ExperimentEvaluationDataset::all(&experiment.into());
    let rows = site.table.query(table::Query::of(list(&other))).await.unwrap();
    let key = rows[0].key().unwrap();
    let pk = list(&one).range().partition().1.to_owned();
    let mut row = rows[0].clone();
    row.0.extend(table::Item::new(key_schema::Key { pk, ..key }).0);
    site.table.put(row, &table::Condition::Always).await.unwrap();
    assert_eq!(found(&one).await, [&one[800..]]);
}

#[tokio::test]
async fn the_experiments_of_a_dataset_are_those_that_the_caller_may_see() {
    let site = Site::new().await;
    let seen = site.server.experiment("seen").await;
    let hidden = site.server.experiment("hidden").await;
    let new = json!({ "name": "shared", "experiment_ids": [hidden, "no number", seen] });
    let created = call(&site.server, "POST", "datasets/create", &new).await.ok();
    let id = created["dataset"]["dataset_id"].as_str().unwrap().to_owned();
    let experiments = async |server: &test_site::TestClient| {
        let path = format!("/api/3.0/mlflow/datasets/{id}/experiment-ids");
        let mut found = server.get_at(&path, &[]).await.ok()["experiment_ids"].as_array().cloned().unwrap_or_default();
        found.sort_by_key(ToString::to_string);
        found
    };
    assert_eq!(experiments(&site.server).await.len(), 3);
    let closed = Guard::Experiment(ExperimentId::parse(&hidden).unwrap());
    let judge =
        test_site::TestAuthorizer::new(Visibility::nothing(), move |(_, what): &(Action, Guard)| *what != closed);
    let judge = judge.looking();
    let store = evaluation::store::Store::new(site.table.clone());
    let frame = service::FunctionContext::new(store, Arc::new(judge));
    let guarded = test_site::TestClient(service::router(evaluation::routes(), &frame));
    assert_eq!(experiments(&guarded).await, [json!(seen), json!("no number")]);
    let dataset = guarded.get_at(&format!("/api/3.0/mlflow/datasets/{id}"), &[]).await.ok();
    assert!(!dataset.to_string().contains("experiment_ids"), "{dataset}");
    let search = async |experiment: &str| {
        let named = json!({ "experiment_ids": [experiment] });
        guarded.call_at("POST", "/api/3.0/mlflow/datasets/search", named.to_string()).await
    };
    let found = search(&seen).await.ok();
    assert_eq!(found["datasets"][0]["dataset_id"], json!(id));
    assert_eq!(search(&hidden).await.status, 403);
    // Changing the dataset requires permission to update all of its experiments.
    let path = format!("/api/3.0/mlflow/datasets/{id}/tags");
    let tags = json!({ "tags": "{}" }).to_string();
    assert_eq!(guarded.call_at("PATCH", &path, tags).await.status, 403);
    assert_eq!(guarded.call_at("DELETE", &format!("/api/3.0/mlflow/datasets/{id}"), String::new()).await.status, 403);
}
