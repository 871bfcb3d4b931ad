//! Permanent removal with a fault at each request: the remaining data is intact, and the next
//! removal completes the work.

use std::collections::BTreeMap;

use artifact_store::ArtifactStore;
use embedded_engine::StreamReader;
use fts_indexer::{Indexer, StreamBatch};
use key_schema::{Ordinal, rows};
use mlflow_api::{ExperimentId, RunId, Workspace};
use retention::{RemovalReport, RemovedEntity, Retention};
use serde_json::{Value, json};
use table::{Condition, Item, Table};
use test_site::{BACKGROUND_FAULTS, ROOT, TABLE, TestClient, TestEnvironment, tried};

use crate::faults::packing::timed;
use crate::faults::write_faults::view_cache::Seen;
use crate::faults::write_faults::{client_view, faulty_write};

/// A report that discards everything.
pub(crate) struct Silent;

impl RemovalReport for Silent {
    fn removed(&self, _: RemovedEntity) {}

    fn removed_traces(&self, _: ExperimentId, _: u64) {}

    fn removed_histories(&self, _: ExperimentId, _: u64) {}

    fn archived_traces(&self, _: ExperimentId, _: u64) {}

    fn archived_histories(&self, _: ExperimentId, _: u64) {}

    fn kept_files(&self, _: ExperimentId, _: &str) {}

    fn kept(&self, _: RemovedEntity, _: &str) {}
}

/// Removes all deleted entities. Their artifacts are left alone, because there is no artifact
/// storage here.
pub(crate) async fn all(table: &Table) -> Result<(), String> {
    let retention = Retention::new(table.clone(), ArtifactStore::default()).leaving_artifacts(true);
    let removed = async {
        let found = retention.deleted(&Workspace::default(), None).await?;
        retention.remove(&Workspace::default(), &found, &Silent).await
    };
    removed.await.map_err(|error| format!("{error:?}"))
}

async fn index(site: &TestEnvironment, stream: &StreamReader) {
    let records = stream.oldest(1_000).await.unwrap();
    let Some(last) = records.last().map(|last| last["dynamodb"]["SequenceNumber"].as_str().unwrap().to_owned()) else {
        return;
    };
    let answer = Indexer::new(site.table.clone()).as_only_indexer().handle(StreamBatch { records }).await;
    assert!(answer.batch_item_failures.is_empty());
    stream.forget_through(&last).await.unwrap();
}

async fn post(api: &TestClient, path: &str, body: Value) -> Value {
    api.post(path, body).await.ok()
}

fn id(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

async fn run(api: &TestClient, experiment: &str) -> String {
    let run = post(api, "runs/create", json!({ "experiment_id": experiment, "start_time": 1 })).await;
    let run = id(&run["run"]["info"]["run_id"]);
    let metrics: Vec<_> = (0..12).map(|at| json!({ "key": "m", "value": at, "timestamp": at, "step": at })).collect();
    let params = json!([{ "key": "p", "value": "p".repeat(1_100) }]);
    post(api, "runs/log-batch", json!({ "run_id": run, "metrics": metrics, "params": params })).await;
    run
}

/// Adds a chart row like that of a run with thousands of points, and points that are not packed
/// yet.
async fn log_more(site: &TestEnvironment, run: &str) {
    let row = rows::MetricChart::key(&RunId::parse(run).unwrap(), &"m".into(), &Ordinal(1), &Ordinal(0));
    site.table.put(Item::new(row), &Condition::item_missing()).await.unwrap();
    let api = faulty_write::api_with_journal(&site.table);
    // The points of the first call share an item with other calls. The points of the second call
    // have an item of their own.
    for names in [vec!["j".to_owned()], vec!["j".repeat(250), "k".repeat(250), "l".repeat(250)]] {
        let point = |name| json!({ "key": name, "value": 1, "timestamp": 1, "step": 1 });
        let metrics: Vec<_> = names.into_iter().map(point).collect();
        post(&api, "runs/log-batch", json!({ "run_id": run, "metrics": metrics })).await;
    }
    let keys: Vec<_> = site.dump().await.into_keys().filter(|key| key.starts_with(&format!("RUN#{run} "))).collect();
    for row in [" J#", " JC#", " MCHART#", " MHIST#"] {
        assert!(keys.iter().any(|key| key.contains(row)), "{row}: {keys:?}");
    }
}

async fn model(api: &TestClient, experiment: &str) -> String {
    let params = json!([{ "key": "p", "value": "p".repeat(1_100) }]);
    let new = json!({ "experiment_id": experiment, "name": "m", "params": params });
    id(&post(api, "logged-models", new).await["model"]["info"]["model_id"])
}

/// Creates two experiments with runs and logged models. Some of these and one of the experiments
/// are deleted.
async fn ground() -> TestEnvironment {
    let site = TestEnvironment::with_stream().await;
    let store = tracking::store::Store::new(site.table.clone(), ROOT);
    store.experiment_create_default(&Workspace::default()).await.unwrap();
    let api = faulty_write::api(&site.table);
    let stream = site.engine.stream(TABLE).await.unwrap().unwrap();
    for name in ["stays", "goes"] {
        let experiment = id(&post(&api, "experiments/create", json!({ "name": name })).await["experiment_id"]);
        run(&api, &experiment).await;
        model(&api, &experiment).await;
        let (run, model) = (run(&api, &experiment).await, model(&api, &experiment).await);
        index(&site, &stream).await;
        if name == "stays" {
            log_more(&site, &run).await;
        }
        post(&api, "runs/delete", json!({ "run_id": run })).await;
        api.call("DELETE", &format!("logged-models/{model}"), json!({})).await.ok();
        if name == "goes" {
            post(&api, "experiments/delete", json!({ "experiment_id": experiment })).await;
        }
    }
    drop(stream);
    site.engine.trim_stream(std::time::Duration::ZERO).await.unwrap();
    site
}

/// Returns everything that clients find, by entity id.
async fn found(site: &TestEnvironment) -> BTreeMap<String, Value> {
    let view = client_view::of(&faulty_write::api(&site.table), "/runs/").await.unwrap();
    let of = |list: &str, pointer: &str| {
        let entities = view[list].as_array().unwrap().iter();
        entities.map(|entity| (id(entity.pointer(pointer).unwrap()), entity.clone())).collect::<Vec<_>>()
    };
    let lists = [
        of("experiments", "/experiment_id"),
        of("runs", "/info/run_id"),
        of("models", "/info/model_id"),
        view["histories"].as_object().unwrap().clone().into_iter().collect(),
    ];
    lists.into_iter().flatten().collect()
}

/// Returns all items, except those that schedule another check of a run. Such items outlive a
/// removed run, and are deleted when they are due.
async fn left(site: &TestEnvironment) -> BTreeMap<String, Value> {
    site.dump().await.into_iter().filter(|(key, _)| !key.starts_with("LATER#")).collect()
}

#[test]
fn a_removal_survives_a_fault_at_each_of_its_requests() {
    timed(removals());
}

async fn removals() {
    let site = ground().await;
    let before = found(&site).await;
    let seen = Seen::of(&site, "").await;
    let clean = site.copy();
    clean.faults.keep_order();
    all(&clean.faulty()).await.unwrap();
    let (after, left) = (found(&clean).await, left(&clean).await);
    assert!(before.len() > after.len() && after.len() > 3, "{after:?}");
    let requests = clean.faults.order();
    assert!(requests.len() > 30, "{requests:?}");
    for (nth, operation) in (1..).zip(&requests) {
        for (trouble, calls) in tried(nth, operation, &BACKGROUND_FAULTS) {
            let course = format!("{trouble:?} at {nth} for {calls}");
            let copy = site.copy();
            copy.faults.trouble_at(trouble, nth, calls);
            let outcome = all(&copy.impatient()).await;
            copy.faults.work_again();
            // The remaining steps depend only on the content of the table, so they are skipped if
            // it has occurred before.
            let state = seen.state(&copy).await;
            let found = if let Some(found) = seen.found(&state) {
                found
            } else {
                // A search may still show a run whose document is removed and whose copy is not.
                // The stream makes the indexer remove the copy.
                index(&copy, &copy.engine.stream(TABLE).await.unwrap().unwrap()).await;
                let found = found(&copy).await;
                all(&copy.table).await.unwrap();
                assert!(self::left(&copy).await == left, "{course}");
                seen.keep(&state, found)
            };
            assert!(found.iter().all(|(id, entity)| before.get(id) == Some(entity)), "{course}: partially removed");
            assert!(after.iter().all(|(id, entity)| found.get(id) == Some(entity)), "{course}: removed too much");
            if calls == 1 {
                outcome.unwrap_or_else(|error| panic!("{course}: a single fault has to be tolerated, but {error}"));
                assert_eq!(*found, after, "{course}");
            }
        }
    }
}
