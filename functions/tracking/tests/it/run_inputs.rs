//! Datasets and models that runs read, and how datasets are stored.

use std::collections::BTreeSet;

use futures::future::join_all;
use serde_json::{Value, json};
use test_site::all_troubles;

use crate::indexed_site::index;
use crate::server::{Server, Site};

fn dataset(name: &str, digest: &str) -> Value {
    json!({ "name": name, "digest": digest, "source_type": "local", "source": format!("{name}.csv") })
}

fn used_for(dataset: &Value, context: &str) -> Value {
    json!({ "dataset": dataset, "tags": [{ "key": "mlflow.data.context", "value": context }] })
}

async fn log(server: &Server, run: &str, datasets: &[Value]) {
    server.post("runs/log-inputs", json!({ "run_id": run, "datasets": datasets })).await.ok();
}

async fn inputs(server: &Server, run: &str) -> Vec<Value> {
    server.run_of(run).await["inputs"]["dataset_inputs"].as_array().cloned().unwrap_or_default()
}

async fn summaries(server: &Server, experiment: &str) -> Vec<Value> {
    let request = http::Request::post("/ajax-api/2.0/mlflow/experiments/search-datasets")
        .header("content-type", "application/json")
        .body(json!({ "experiment_ids": [experiment] }).to_string().into());
    let answer = server.send(request.unwrap()).await.ok();
    answer["dataset_summaries"].as_array().cloned().unwrap_or_default()
}

/// The longest profile of a dataset that MLflow accepts.
const PROFILE: usize = 16_777_215;

/// Returns a text that is hardly compressible.
fn noise(characters: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let letters = (0..characters).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + u8::try_from(state >> 58).unwrap())
    });
    letters.collect()
}

#[tokio::test]
async fn the_largest_dataset_comes_back_byte_for_byte() {
    let site = Site::new().await;
    let experiment = site.server.experiment("large").await;
    let run = site.server.run(&experiment).await;
    let mut large = dataset("large", "d1");
    large["source"] = "é".repeat(65_535).into();
    large["schema"] = noise(1_048_575).into();
    // By default, only the beginning of the profile is incompressible. That part alone takes
    // several rows.
    let noisy = if all_troubles() { PROFILE } else { 2 << 20 };
    large["profile"] = (noise(noisy) + &"p".repeat(PROFILE - noisy)).into();
    log(&site.server, &run, &[used_for(&large, "train")]).await;
    let found = inputs(&site.server, &run).await;
    assert!(found == [used_for(&large, "train")], "the dataset has changed");
    let other = site.server.run(&experiment).await;
    let before = site.dump().await.len();
    log(&site.server, &other, &[json!({ "dataset": dataset("large", "d1") })]).await;
    assert_eq!(site.dump().await.len(), before + 2, "only the two rows of the link are written");
    let found = inputs(&site.server, &other).await;
    assert!(found == [json!({ "dataset": large })], "the first description of a dataset is kept");
    let context = |context: Value| {
        let mut summary = json!({ "experiment_id": experiment, "name": "large", "digest": "d1" });
        if !context.is_null() {
            summary["context"] = context;
        }
        summary
    };
    assert_eq!(summaries(&site.server, &experiment).await, [context(Value::Null), context("train".into())]);
}

#[tokio::test]
async fn many_runs_read_the_same_datasets_at_once() {
    for fault in 0..3 {
        let site = Site::new().await;
        let experiment = site.server.experiment("shared").await;
        let runs = join_all((0..12).map(|_| site.server.run(&experiment))).await;
        match fault {
            1 => site.faults.refuse_every(10),
            2 => site.faults.lose_answer_every(7),
            _ => {}
        }
        // Each run logs a shared dataset, and one that only this run uses. Every third run logs
        // both of them twice.
        let logged = runs.iter().enumerate().map(|(number, run)| {
            let server = &site.server;
            async move {
                let context = if number % 2 == 0 { "train" } else { "eval" };
                let own = dataset(&format!("own {number}"), "d");
                let datasets = [used_for(&dataset("all", "d"), context), json!({ "dataset": own })];
                log(server, run, &datasets).await;
                if number % 3 == 0 {
                    log(server, run, &datasets).await;
                }
            }
        });
        join_all(logged).await;
        site.faults.refuse_every(0);
        site.faults.lose_answer_every(0);
        for (number, run) in runs.iter().enumerate() {
            let names: Vec<_> =
                inputs(&site.server, run).await.iter().map(|input| input["dataset"]["name"].clone()).collect();
            assert_eq!(names, ["all".to_owned(), format!("own {number}")]);
        }
        let contexts = summaries(&site.server, &experiment).await;
        let of_all = contexts.iter().filter(|summary| summary["name"] == "all").map(|summary| &summary["context"]);
        assert_eq!(of_all.collect::<Vec<_>>(), ["eval", "train"]);
        assert_eq!(contexts.len(), 14);
    }
}

#[tokio::test]
async fn a_hundred_datasets_and_models_of_one_run() {
    let site = Site::new().await;
    let experiment = site.server.experiment("many").await;
    let run = site.server.run(&experiment).await;
    let datasets: Vec<_> =
        (0..100).map(|number| used_for(&dataset(&format!("set {number:03}"), "d"), "train")).collect();
    let models: Vec<_> = (0..150).map(|number| json!({ "model_id": format!("m-{number:03}") })).collect();
    let body = json!({ "run_id": run, "datasets": datasets, "models": models });
    site.server.post("runs/log-inputs", body.clone()).await.ok();
    let found = site.server.run_of(&run).await["inputs"].clone();
    assert_eq!(found["dataset_inputs"], json!(datasets));
    assert_eq!(found["model_inputs"], json!(models));
    let before = site.dump().await;
    site.server.post("runs/log-inputs", body).await.ok();
    assert_eq!(site.server.run_of(&run).await["inputs"], found);
    assert_eq!(site.dump().await, before, "repeating the call changes nothing");
    index(&site).await;
    let search =
        json!({ "experiment_ids": [experiment], "filter": "dataset.name LIKE 'set 0%' AND dataset.context = 'train'" });
    let page = site.server.post("runs/search", search).await.ok();
    assert_eq!(page["runs"][0]["inputs"]["dataset_inputs"], found["dataset_inputs"]);
    assert_eq!(page["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn datasets_of_which_much_is_said() {
    let site = Site::new().await;
    let experiment = site.server.experiment("verbose").await;
    let run = site.server.run(&experiment).await;
    let tags: Vec<_> =
        (0..250).map(|number| json!({ "key": format!("{number:0255}"), "value": "v".repeat(500) })).collect();
    let verbose = |number: usize| {
        let mut dataset = dataset(&format!("set {number:02}"), "d");
        dataset["source_type"] = "t".repeat(100_000).into();
        json!({ "dataset": dataset, "tags": tags })
    };
    let datasets: Vec<_> = (0..40).map(verbose).collect();
    log(&site.server, &run, &datasets).await;
    assert!(inputs(&site.server, &run).await == datasets);
    let before = site.dump().await.len();
    let mut large = dataset("large", "d");
    large["source_type"] = "t".repeat(400_000).into();
    let body = json!({ "run_id": run, "datasets": [verbose(50), { "dataset": large }] });
    site.server.post("runs/log-inputs", body).await.refused(400, "BAD_REQUEST");
    assert_eq!(site.dump().await.len(), before);
}

#[tokio::test]
async fn runs_of_a_dataset_are_found_across_experiments() {
    let site = Site::new().await;
    let mut expected = BTreeSet::new();
    for name in ["one", "two"] {
        let experiment = site.server.experiment(name).await;
        for _ in 0..3 {
            let run = site.server.run(&experiment).await;
            log(&site.server, &run, &[json!({ "dataset": dataset("iris", "d1") })]).await;
            expected.insert(run);
        }
        log(&site.server, &site.server.run(&experiment).await, &[json!({ "dataset": dataset("iris", "d2") })]).await;
    }
    let found = site.server.store.runs_of_dataset("iris", "d1").await.unwrap();
    assert_eq!(found.iter().map(|at| at.run.to_string()).collect::<BTreeSet<_>>(), expected);
    assert_eq!(site.server.store.runs_of_dataset("iris", "d3").await.unwrap(), []);
}

#[tokio::test]
async fn what_is_refused_leaves_nothing() {
    let site = Site::new().await;
    let experiment = site.server.experiment("refused").await;
    let (run, deleted) = (site.server.run(&experiment).await, site.server.run(&experiment).await);
    site.server.post("runs/delete", json!({ "run_id": deleted })).await.ok();
    let before = site.dump().await;
    let mut large = dataset("large", "d");
    large["profile"] = noise(100_000).into();
    let too_long = json!({ "dataset": dataset(&"n".repeat(501), "d") });
    let cases = [
        (run.as_str(), vec![json!({ "dataset": large }), too_long]),
        (run.as_str(), vec![json!({ "dataset": dataset("d", &"d".repeat(37)) })]),
        (deleted.as_str(), vec![json!({ "dataset": dataset("d", "d") })]),
    ];
    for (run, datasets) in cases {
        let answer = site.server.post("runs/log-inputs", json!({ "run_id": run, "datasets": datasets })).await;
        answer.refused(400, "INVALID_PARAMETER_VALUE");
    }
    site.server
        .post("runs/log-inputs", json!({ "run_id": "gone", "models": [] }))
        .await
        .refused(404, "RESOURCE_DOES_NOT_EXIST");
    assert_eq!(site.dump().await, before);
}

#[tokio::test]
async fn datasets_of_one_fnv_hash_are_two() {
    let site = Site::new().await;
    let server = &site.server;
    let run = server.run("0").await;
    let both = test_site::hash_collisions::COLLIDING_DATASETS.map(|name| json!({ "dataset": dataset(name, "d") }));
    log(server, &run, &both).await;
    let said = |input: &Value| format!("{} {}", input["dataset"]["name"], input["dataset"]["source"]);
    let found: BTreeSet<_> = inputs(server, &run).await.iter().map(said).collect();
    assert_eq!(found, both.iter().map(said).collect());
}

/// Another dataset's item, or its link to a run, is stored under the key of this dataset. Requests
/// cannot cause this state, so the test writes it directly.
#[tokio::test]
async fn an_item_of_another_dataset_is_not_ours() {
    for row in [" D#", "#INPUT#"] {
        let site = Site::new().await;
        let server = &site.server;
        let (run, second) = (server.run("0").await, server.run("0").await);
        log(server, &run, &[json!({ "dataset": dataset("ours", "d") })]).await;
        let items = site.dump().await;
        let (key, _) = items.iter().find(|(key, _)| key.contains(row)).unwrap();
        let key = key_schema::Key::from_text(key).unwrap();
        let item = site.table.get(&key).await.unwrap().unwrap().with("name", table::text("another"));
        site.table.put(item, &table::Condition::Always).await.unwrap();
        let before = site.dump().await;
        let reader = if row == "#INPUT#" { &run } else { &second };
        let again = json!({ "run_id": reader, "datasets": [{ "dataset": dataset("ours", "d") }] });
        let message = server.post("runs/log-inputs", again).await.refused(400, "BAD_REQUEST");
        assert!(message.contains("Choose another name"), "{message}");
        assert_eq!(site.changes(&before).await.len(), 0);
        let found = inputs(server, &run).await;
        assert!(found.len() == 1 && found[0]["dataset"]["source"] != "ours.csv", "{found:?}");
    }
}

/// In two experiments, there are datasets for which experiment, name and digest have equal FNV
/// hashes. Removing one experiment must keep the dataset of the other.
#[tokio::test]
async fn a_removed_experiment_takes_no_dataset_of_another() {
    let site = Site::new().await;
    let server = &site.server;
    let mut runs = Vec::new();
    for (number, name) in test_site::hash_collisions::COLLIDING_DATASETS_OF_TWO_EXPERIMENTS {
        let experiment = server.experiment(name).await;
        assert_eq!(experiment, number);
        let run = server.run(&experiment).await;
        let mut large = dataset(name, "d");
        large["schema"] = noise(100_000).into();
        log(server, &run, &[json!({ "dataset": large })]).await;
        runs.push((experiment, run, large));
    }
    let parts = async || site.dump().await.into_keys().filter(|key| key.starts_with("DATA#")).count();
    assert_eq!(parts().await, 2);
    server.post("experiments/delete", json!({ "experiment_id": runs[0].0 })).await.ok();
    let retention = retention::Retention::new(site.table.clone(), artifact_store::ArtifactStore::default());
    let retention = retention.leaving_artifacts(true);
    let workspace = mlflow_api::Workspace::default();
    let found = retention.deleted(&workspace, None).await.unwrap();
    retention.remove(&workspace, &found, &Silent).await.unwrap();
    assert_eq!(parts().await, 1);
    let left = inputs(server, &runs[1].1).await;
    assert_eq!(left[0]["dataset"]["schema"], runs[1].2["schema"]);
}

/// An observer of removals that fails if an entity is kept, and ignores all other events.
struct Silent;

impl retention::RemovalReport for Silent {
    fn removed(&self, _: retention::RemovedEntity) {}

    fn removed_traces(&self, _: mlflow_api::ExperimentId, _: u64) {}

    fn removed_histories(&self, _: mlflow_api::ExperimentId, _: u64) {}
    fn archived_histories(&self, _: mlflow_api::ExperimentId, _: u64) {}

    fn archived_traces(&self, _: mlflow_api::ExperimentId, _: u64) {}

    fn kept_files(&self, _: mlflow_api::ExperimentId, why: &str) {
        assert_eq!(why, "");
    }

    fn kept(&self, _: retention::RemovedEntity, why: &str) {
        assert_eq!(why, "");
    }
}
