//! Creations whose requests fail in every possible way, see [`test_site::creations`].

use key_schema::rows;
use mlflow_api::{ExperimentId, ModelId};
use serde_json::{Value, json};
use table::{Condition, Item, Map, map, number, text};
use test_site::creations::{Creation, CreationSetup};
use test_site::{TableDump, TestClient};

use crate::server::{ROOT, Site};

fn logged_model() -> (ExperimentId, ModelId) {
    let experiment = ExperimentId::from_number(7).unwrap();
    (experiment, ModelId::new(1_700_000_000_000, experiment, 5))
}

/// Creates a site with a model `m` that has a version, and a logged model.
async fn site() -> Site {
    let site = Site::new().await;
    site.other.model("m").await;
    site.other.version("m").await;
    let (experiment, id) = logged_model();
    let item = Item::new(rows::LoggedModel::key(&experiment, &id))
        .with("artifact_uri", text(format!("{ROOT}/7/models/{id}/artifacts")))
        .with("source_run", text(""))
        .with("name", text("model"))
        .with("model_type", text(""))
        .with("status", number(2))
        .with("stage", text("active"))
        .with("created", number(1))
        .with("updated", number(1))
        .with("params", map(Map::new()))
        .with("tags", map(Map::new()));
    site.table.put(item, &Condition::item_missing()).await.unwrap();
    site
}

/// Returns the numbers of models, of versions, and of versions that the logged model lists.
fn count(dump: &TableDump) -> Vec<usize> {
    let rows = |kind: &str| dump.keys().filter(|key| key.contains(kind)).count();
    let listed = dump.iter().find(|(key, _)| key.contains("LM#")).unwrap().1;
    let listed = listed["tags"]["M"]["mlflow.modelVersions"]["S"].as_str().unwrap_or("[]");
    let listed: Vec<Value> = serde_json::from_str(listed).unwrap();
    let models = dump.values().filter(|item| item.get("aliases").is_some()).count();
    let versions = dump.values().filter(|item| item.get("source").is_some()).count();
    assert_eq!(rows(" RMNAME#"), models, "each model is listed");
    vec![models, versions, listed.len()]
}

async fn check(path: &'static str, body: Value, adds: &'static [usize]) {
    let ground = async || {
        let site = site().await;
        let (faulty, other) = (TestClient::clone(&site.impatient()), TestClient::clone(&site.other));
        CreationSetup { faulty, other, body: body.clone(), site: test_site::TestEnvironment::clone(&site) }
    };
    Creation { path, count, adds }.check(ground).await;
}

/// Returns tags that are each too large for their document.
fn big_tags(count: usize, bytes: usize) -> Vec<Value> {
    (0..count).map(|number| json!({ "key": format!("k{number:03}"), "value": "v".repeat(bytes) })).collect()
}

#[tokio::test]
async fn registered_models() {
    let path = "2.0/mlflow/registered-models/create";
    check(path, json!({ "name": "new" }), &[1, 0, 0]).await;
    check(path, json!({ "name": "new", "tags": big_tags(90, 1_100) }), &[1, 0, 0]).await;
}

#[tokio::test]
async fn model_versions() {
    let path = "2.0/mlflow/model-versions/create";
    let source = "s3://elsewhere/x";
    check(path, json!({ "name": "m", "source": source, "run_id": "r" }), &[0, 1, 0]).await;
    check(path, json!({ "name": "m", "source": source, "tags": big_tags(40, 33_000) }), &[0, 1, 0]).await;
    let (_, id) = logged_model();
    let of_logged = json!({ "name": "m", "source": format!("models:/{id}"), "model_id": id.to_string() });
    check(path, of_logged, &[0, 1, 1]).await;
}

/// An entity is created in one transaction, whose size is limited. Creations that do not fit into
/// it are rejected.
#[tokio::test]
async fn more_tags_than_a_transaction_takes_are_refused() {
    let site = site().await;
    let before = site.dump().await;
    let tags = big_tags(150, 33_000);
    let model = json!({ "name": "new", "tags": tags });
    site.server.post("registered-models/create", model).await.refused(400, "INVALID_PARAMETER_VALUE");
    let version = json!({ "name": "m", "source": "s3://elsewhere/x", "tags": tags });
    site.server.post("model-versions/create", version).await.refused(400, "INVALID_PARAMETER_VALUE");
    assert_eq!(site.dump().await, before);
}
