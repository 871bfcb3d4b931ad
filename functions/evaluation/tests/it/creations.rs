//! Creations whose requests fail in every possible way, see [`test_site::creations`].

use serde_json::{Value, json};
use test_site::creations::{Creation, CreationSetup};
use test_site::{TableDump, TestClient};

use crate::server::Site;

/// Tests a creation that posts `body` for an experiment's id.
async fn check(path: &'static str, count: fn(&TableDump) -> Vec<usize>, body: fn(&str) -> Value) {
    let ground = async || {
        let site = Site::new().await;
        let other = site.other().await;
        let body = body(&other.experiment("e").await);
        let faulty = TestClient::clone(&*site.impatient().await);
        CreationSetup { faulty, other: TestClient::clone(&other), body, site: test_site::TestEnvironment::clone(&site) }
    };
    Creation { path, count, adds: &[1] }.check(ground).await;
}

#[tokio::test]
async fn evaluation_datasets() {
    let count = |dump: &TableDump| vec![dump.keys().filter(|key| key.ends_with(" ED#META")).count()];
    let big = |_: &str| {
        let experiments: Vec<_> = (0..130).map(|number| number.to_string()).collect();
        let tags: Vec<_> = (0..20).map(|number| (format!("k{number}"), Value::from("v".repeat(1_100)))).collect();
        let tags = Value::Object(tags.into_iter().collect()).to_string();
        json!({ "name": "d", "experiment_ids": experiments, "tags": tags })
    };
    for body in [|id: &str| json!({ "name": "d", "experiment_ids": [id] }), big] {
        check("3.0/mlflow/datasets/create", count, body).await;
    }
}

#[tokio::test]
async fn scorers() {
    let count = |dump: &TableDump| vec![dump.keys().filter(|key| key.contains(" SCORERV#")).count()];
    let new = |id: &str| json!({ "experiment_id": id, "name": "s", "serialized_scorer": "{}" });
    check("3.0/mlflow/scorers/register", count, new).await;
}
