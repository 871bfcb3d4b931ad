//! Checks that every declared attribute is written by some request. The reverse, that no item has
//! an attribute that `key-schema` does not declare, is checked whenever a test reads the whole
//! table.

use std::collections::{BTreeMap, BTreeSet};

use fts_indexer::{Indexer, StreamBatch};
use key_schema::rows::RowDescription;
use mlflow_api::ExperimentId;
use run_index::{RunIndex, UnmarkedRuns};
use serde_json::json;

use crate::indexed_site::{changes, index};
use test_site::key_of;

use crate::server::Site;

/// Returns the attributes that are declared for a row but that no item in the table has, by row.
async fn not_written(site: &Site) -> Vec<String> {
    let mut missing = BTreeMap::new();
    for item in site.items().await {
        let row = RowDescription::of(&key_of(&item)).unwrap();
        let names: BTreeSet<_> = row.attributes().map(|attribute| attribute.name).collect();
        let missing = missing.entry(row.name).or_insert(names);
        for attribute in row.attributes() {
            if item.as_object().unwrap().keys().any(|name| attribute.is_named(name)) {
                missing.remove(attribute.name);
            }
        }
    }
    missing.into_iter().flat_map(|(row, names)| names.into_iter().map(move |name| format!("{row} {name}"))).collect()
}

#[tokio::test]
async fn what_is_declared_is_written() {
    let site = Site::new().await;
    let server = &site.server;
    let long = "x".repeat(2_000);
    let experiment = server.experiment("e").await;
    let run = server.run(&experiment).await;
    for (key, value) in [("short", "1"), ("long", &long)] {
        let tag = json!({ "experiment_id": experiment, "key": key, "value": value });
        server.post("experiments/set-experiment-tag", tag).await.ok();
        server.set_tag(&run, key, value).await.ok();
        server.log_param(&run, key, value).await.ok();
    }
    for step in 0..25 {
        server.log_metric(&run, "m", (step, step, 0.5)).await.ok();
    }
    let params = json!([{ "key": "short", "value": "1" }, { "key": "long", "value": long }]);
    let model =
        json!({ "experiment_id": experiment, "name": "m", "source_run_id": run, "params": params, "tags": params });
    let model = server.post("logged-models", model).await.ok()["model"]["info"]["model_id"].clone();
    let metric = json!({ "key": "m", "value": 1, "timestamp": 1, "step": 1, "model_id": model });
    server.post("runs/log-batch", json!({ "run_id": run, "metrics": [metric] })).await.ok();
    let dataset = json!({ "name": "d", "digest": "1", "source_type": "local", "source": "d.csv" });
    let datasets = json!([{ "dataset": dataset, "tags": [{ "key": "mlflow.data.context", "value": "train" }] }]);
    let inputs = json!({ "run_id": run, "datasets": datasets, "models": [{ "model_id": model }] });
    server.post("runs/log-inputs", inputs).await.ok();
    let outputs = json!({ "run_id": run, "models": [{ "model_id": model, "step": 1 }] });
    server.post("runs/outputs", outputs).await.ok();
    server.post("runs/update", json!({ "run_id": run, "status": "FINISHED", "end_time": 2 })).await.ok();
    server.post("runs/delete", json!({ "run_id": run })).await.ok();
    server.post("runs/restore", json!({ "run_id": run })).await.ok();
    index(&site).await;
    // A run with a journal. It has ended, but calls may still rely on its mark.
    let long = server.run(&experiment).await;
    let names: Vec<_> = (0..80).map(|number| format!("layer/{number:03}")).collect();
    for step in 0..4 {
        let points: Vec<_> = names.iter().map(|name| (name.as_str(), (step, step, 0.5))).collect();
        server.log_points(&long, &points).await.ok();
    }
    server.post("runs/update", json!({ "run_id": long, "status": "FINISHED", "end_time": 2 })).await.ok();
    Indexer::new(site.table.clone()).handle(StreamBatch { records: changes(&site).await }).await;
    // A run that is postponed and then indexed.
    let running = server.run(&experiment).await;
    let indexer = Indexer::new(site.table.clone());
    for step in 0..2 {
        server.log_metric(&running, "m", (step, step, 0.5)).await.ok();
        indexer.handle(StreamBatch { records: changes(&site).await }).await;
    }
    indexer.with_clock(|| entities::now_ms() + 600_000).tick().await.unwrap();
    server.post("runs/delete", json!({ "run_id": running })).await.ok();
    let mut unmarked = UnmarkedRuns::all(ExperimentId::parse(&experiment).unwrap());
    RunIndex::new(site.table.clone()).mark_runs(&mut unmarked, 1_000).await.unwrap();
    assert!(unmarked.is_empty());
    // Attributes that occur only in special cases: full, wide or large items, incomplete copies,
    // and unusual settings. Other special cases are runs whose artifacts are outside their
    // experiment's artifact location, deleted logged models, and imported entities.
    let expected = [
        "Config archive",
        "Config archive_after",
        "Config archived_per_pass",
        "Config experiment",
        "Config from",
        "Config indexed",
        "Config kept_for",
        "Config own",
        "Config searched",
        "Dataset content_id",
        "Dataset content_parts",
        "Experiment archive_scanned",
        "Experiment forgotten",
        "Experiment full",
        "Experiment histories_archived",
        "Experiment imp",
        "Experiment looked",
        "Experiment owner",
        "Experiment workspace",
        "IndexedCopy artifact_uri",
        "IndexedCopy entries",
        "IndexedCopy fields",
        "IndexedCopy stale",
        "LoggedModel full",
        "LoggedModel imp",
        "LoggedModel stage",
        "LoggedModelMetrics segments",
        "Run artifact_uri",
        "Run full",
        "Run imp",
        "RunMetrics wide",
    ];
    assert_eq!(not_written(&site).await, expected);
}
