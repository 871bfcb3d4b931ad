//! Users cannot write into the partition of another user's run, or have entities listed under it,
//! by way of their own entities.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::{Action, Guard, Visibility};
use embedded_engine::Engine;
use mlflow_api::{ExperimentId, Workspace};
use serde_json::{Value, json};
use service::FunctionContext;
use table::Table;
use test_site::{TestAuthorizer, TestClient};

use crate::test_server::{ROOT, TABLE, functions};

/// Returns the functions for a caller without access to this experiment.
fn closed_to(table: &Table, experiment: &str) -> TestClient {
    let closed = Guard::Experiment(ExperimentId::parse(experiment).unwrap());
    let judge = TestAuthorizer::new(Visibility::Everything, move |(_, guarded): &(Action, Guard)| *guarded != closed);
    // Entities that a request merely mentions are only checked by authorizers that examine guards.
    let judge = Arc::new(judge.looking());
    let tracking = FunctionContext::new(tracking::store::Store::new(table.clone(), ROOT), judge.clone());
    let registry = FunctionContext::new(registry::store::Store::new(table.clone(), ROOT), judge);
    let tracking = service::router(tracking::routes(), &tracking);
    TestClient(service::join_routers(tracking, [service::router(registry::routes(), &registry)]))
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).unwrap().as_str().unwrap().to_owned()
}

/// Returns the items in the partitions of an experiment and of a run.
async fn held(engine: &Engine, experiment: &str, run: &str) -> BTreeMap<String, Value> {
    let own = [format!("EXP#{experiment}"), format!("RUN#{run}")];
    let items = engine.items(TABLE).await.unwrap().into_iter();
    let items = items.filter(|item| own.contains(&text(item, "/PK/S")));
    items.map(|item| (text(&item, "/SK/S"), item)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_takes_its_run_writes_nothing_where_the_run_is() {
    let engine = Engine::memory().unwrap();
    let table = Table::new(engine.client(), TABLE);
    table.create_if_missing().await.unwrap();
    let store = tracking::store::Store::new(table.clone(), ROOT);
    store.experiment_create_default(&Workspace::default()).await.unwrap();
    let all = TestClient(functions(&table).await);
    let victim = text(&all.post("experiments/create", json!({ "name": "victim" })).await.ok(), "/experiment_id");
    let own = text(&all.post("experiments/create", json!({ "name": "own" })).await.ok(), "/experiment_id");
    let run = all.post("runs/create", json!({ "experiment_id": victim })).await.ok();
    let run = text(&run, "/run/info/run_id");
    let some = closed_to(&table, &victim);
    some.post("registered-models/create", json!({ "name": "m" })).await.ok();
    let model = json!({ "experiment_id": own, "name": "model", "source_run_id": run });
    let before = held(&engine, &victim, &run).await;

    // A caller who refers to the run must be allowed to read it.
    assert_eq!(some.post("logged-models", model.clone()).await.status, 403);
    let named = json!({ "name": "m", "source": "s3://elsewhere/model", "run_id": run });
    assert_eq!(some.post("model-versions/create", named).await.status, 403);
    let search = [("filter", format!("run_id = '{run}'"))];
    let search = search.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(some.get("model-versions/search", &search).await.ok().get("model_versions"), None);

    // A user with access to the run has created the logged model. As in MLflow, a model version that
    // is created from it refers to its run, and so does a model version that is created from that
    // version.
    let model = text(&all.post("logged-models", model).await.ok(), "/model/info/model_id");
    let of_model = json!({ "name": "m", "source": format!("models:/{model}"), "model_id": model });
    let of_version = json!({ "name": "m", "source": "models:/m/1" });
    for new in [of_model, of_version] {
        let version = some.post("model-versions/create", new).await.ok();
        assert_eq!(text(&version, "/model_version/run_id"), run);
    }
    let found = some.get("model-versions/search", &search).await.ok();
    assert_eq!(found["model_versions"].as_array().unwrap().len(), 2);
    assert_eq!(held(&engine, &victim, &run).await, before);
    some.call("DELETE", "registered-models/delete", json!({ "name": "m" })).await.ok();
    assert_eq!(some.get("model-versions/search", &search).await.ok().get("model_versions"), None);
    let left = engine.items(TABLE).await.unwrap();
    assert!(left.iter().all(|item| !text(item, "/PK/S").starts_with("MVRUN#")));
    assert_eq!(held(&engine, &victim, &run).await, before);
}
