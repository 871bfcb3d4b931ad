//! The global indexes are frozen. Only runs whose ids were made elsewhere depend on them.

use entities::marked_item;
use key_schema::{Descending, Stage, index, rows};
use mlflow_api::{ExperimentId, RunId};
use serde_json::json;
use table::{Item, Map, map, number, text};

use crate::server::{Server, Site};

#[tokio::test]
async fn what_was_written_is_read_at_once() {
    let site = Site::new().await;
    site.faults.freeze_global_indexes(&site.engine).unwrap();
    let server = &site.server;
    let experiment = server.experiment("fresh").await;
    let found = server.get("experiments/get-by-name", &[("experiment_name", "fresh")]).await.ok();
    assert_eq!(found["experiment"]["experiment_id"], experiment);
    let all = server.post("experiments/search", json!({ "max_results": 10 })).await.ok();
    assert_eq!(all["experiments"].as_array().unwrap().len(), 2);
    let run = server.run(&experiment).await;
    server.log_metric(&run, "loss", (1, 1, 0.5)).await.ok();
    server.log_param(&run, "p", &"x".repeat(2_000)).await.ok();
    server.set_tag(&run, "t", "1").await.ok();
    assert_eq!(server.data(&run, "metrics").await["loss"]["value"], 0.5);
    assert_eq!(server.history(&run, "loss").await, [(1, 1, 0.5)]);
    for filter in ["", "params.p LIKE 'x%' AND metrics.loss < 1 AND tags.t = '1'"] {
        let search = json!({ "experiment_ids": [experiment], "filter": filter });
        assert_eq!(server.search(search).await, [run.as_str()]);
    }
    let rename = json!({ "experiment_id": experiment, "new_name": "fresher" });
    server.post("experiments/update", rename).await.ok();
    let found = server.get("experiments/get-by-name", &[("experiment_name", "fresher")]).await.ok();
    assert_eq!(found["experiment"]["experiment_id"], experiment);
    server.post("runs/delete", json!({ "run_id": run })).await.ok();
    assert_eq!(server.run_of(&run).await["info"]["lifecycle_stage"], "deleted");
    assert!(server.search(json!({ "experiment_ids": [experiment] })).await.is_empty());
    server.post("experiments/delete", json!({ "experiment_id": experiment })).await.ok();
    let all = server.post("experiments/search", json!({ "max_results": 10 })).await.ok();
    assert_eq!(all["experiments"].as_array().unwrap().len(), 1);
}

/// Writes a run's items to the table, without the endpoints, as importing a database does.
async fn import(site: &Site, experiment: &str, run: &str) {
    let experiment = ExperimentId::parse(experiment).unwrap();
    let run = RunId::parse(run).unwrap();
    let item = Item::new(rows::Run::key(&experiment, &run))
        .with("name", text("imported"))
        .with("user", text("ada"))
        .with("status", text("FINISHED"))
        .with("start_time", number(77))
        .with("artifact_uri", text("s3://elsewhere"))
        .with("params", map(Map::new()))
        .with("tags", map(Map::from([("mlflow.runName".to_owned(), text("imported"))])))
        .indexed(index::RunsByStage::key(&Stage::Active, &Descending(77), &run))
        .indexed(index::RunsByTime::key(&Descending(77), &run))
        .indexed(index::RunLocation::key(&run, &experiment));
    site.table.put(marked_item(item, &run), &table::Condition::item_missing()).await.unwrap();
}

async fn use_everything(server: &Server, experiment: &str, run: &str) {
    assert_eq!(server.run_of(run).await["info"]["run_name"], "imported");
    for step in 0..25 {
        server.log_metric(run, "loss", (step, step, 1.0)).await.ok();
    }
    assert_eq!(server.history(run, "loss").await.len(), 25);
    server.log_param(run, "p", "1").await.ok();
    server.set_tag(run, "t", &"1".repeat(2_000)).await.ok();
    server.post("runs/delete-tag", json!({ "run_id": run, "key": "t" })).await.ok();
    server.post("runs/update", json!({ "run_id": run, "run_name": "imported" })).await.ok();
    server.post("runs/delete", json!({ "run_id": run })).await.ok();
    server.log_metric(run, "loss", (99, 99, 1.0)).await.refused_as_deleted();
    server.post("runs/restore", json!({ "run_id": run })).await.ok();
    for filter in ["", "metrics.loss = 1 AND params.p = '1'"] {
        let search = json!({ "experiment_ids": [experiment], "filter": filter });
        assert!(server.search(search).await.contains(&run.to_owned()));
    }
}

#[tokio::test]
async fn a_run_from_elsewhere_is_found_when_the_index_knows_it() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("imports").await;
    server.run_at(&experiment, 80).await;
    site.faults.freeze_global_indexes(&site.engine).unwrap();
    let ids = ["f47ac10b58cc4372a5670e02b2c3d479", "run-1", "run", "A_b-C"];
    for run in ids {
        import(&site, &experiment, run).await;
        server.get("runs/get", &[("run_id", run)]).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
        server.log_metric(run, "loss", (1, 1, 1.0)).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
        server.post("runs/delete", json!({ "run_id": run })).await.refused(404, "RESOURCE_DOES_NOT_EXIST");
        assert_eq!(server.history(run, "loss").await, []);
        // A search needs no global index.
        assert!(server.search(json!({ "experiment_ids": [experiment] })).await.contains(&run.to_owned()));
    }
    site.faults.catch_up();
    for run in ids {
        use_everything(server, &experiment, run).await;
    }
    let found = server.search(json!({ "experiment_ids": [experiment], "max_results": 1 })).await;
    assert_eq!(found.len(), 1 + ids.len());
    assert!(found[1..].is_sorted());
}
