//! Costs that do not grow with the amount of data, and requests that have an effect only once,
//! however often they are sent.

use futures::future::join_all;
use mlflow_api::requests::runs::SearchRuns;
use serde_json::{Value, json};
use table::UsageMeter;
use tracking::store::{SearchBounds, Store};

use crate::indexed_site::index;
use crate::server::{LEASE, ROOT, Server, Site};

fn requests(site: &Site) -> u64 {
    let calls = site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
    site.faults.reset_calls();
    calls
}

#[tokio::test]
async fn a_run_is_deleted_and_restored_in_two_requests() {
    let site = Site::new().await;
    let server = &site.server;
    let run = server.run(&server.experiment("e").await).await;
    let names: Vec<_> = (0..300).map(|number| format!("m{number}")).collect();
    let points: Vec<_> = names.iter().flat_map(|name| (0..3).map(|step| (name.as_str(), (step, step, 1.0)))).collect();
    server.log_points(&run, &points).await.ok();
    let tags: Vec<_> =
        (0..100).map(|number| json!({ "key": number.to_string(), "value": "v".repeat(2_000) })).collect();
    server.post("runs/log-batch", json!({ "run_id": run, "tags": tags })).await.ok();
    requests(&site);
    for path in ["runs/delete", "runs/restore"] {
        server.post(path, json!({ "run_id": run })).await.ok();
        assert_eq!(requests(&site), 2, "{path}");
    }
}

/// In addition to reading the states of the experiments, the search makes two requests per
/// experiment: for the marks, and for one list.
#[tokio::test]
async fn a_search_of_many_experiments_asks_each_twice() {
    let site = Site::new().await;
    let mut ids = Vec::new();
    for number in 0..120 {
        ids.push(site.server.experiment(&format!("e {number}")).await);
    }
    let new = json!({ "experiment_id": ids[7], "run_name": "serious-newt-353", "start_time": 1 });
    site.server.post("runs/create", new).await.ok();
    index(&site).await;
    for order in ["start_time DESC", "metrics.m"] {
        requests(&site);
        let filter = "attributes.run_name LIKE '%serious-newt%' AND params.a != 'x'";
        let search = json!({ "experiment_ids": ids, "filter": filter, "order_by": [order] });
        assert!(site.server.search(search).await.is_empty());
        let search = json!({ "experiment_ids": ids, "filter": "attributes.run_name LIKE '%serious-newt%'", "order_by": [order] });
        assert_eq!(site.server.search(search).await.len(), 1);
        let asked = requests(&site);
        assert!(asked <= 2 * (3 * 120 + 10), "{order}: {asked}");
    }
}

/// A search for the newest runs of a long experiment, none of whose runs is indexed. It must fill
/// the page without reading the whole experiment.
#[tokio::test]
async fn a_page_of_a_long_experiment_that_is_not_indexed_is_not_the_whole() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("e").await;
    for number in 0..240 {
        let run = server.run_at(&experiment, number).await;
        let value = if number == 0 { "rare" } else { "often" };
        server.post("runs/log-parameter", json!({ "run_id": run, "key": "p", "value": value })).await.ok();
    }
    let meter = UsageMeter::default();
    let store = Store::with_lease(site.table.clone().metered(meter.clone()), ROOT, LEASE);
    let mut units = Vec::new();
    for (marks, value, expected) in [(1_000, "often", 3), (100, "often", 3), (1_000, "rare", 1), (100, "rare", 1)] {
        let server = Server::with(&store.clone().with_search_bounds(SearchBounds { marks, newest: 40 }));
        let search = SearchRuns {
            experiment_ids: vec![experiment.clone()],
            max_results: Some(3),
            filter: format!("params.p = '{value}'"),
            run_view_type: None,
            order_by: Vec::new(),
            page_token: String::new(),
        };
        meter.take();
        let found = server.store.run_search(&search).await.unwrap();
        assert_eq!(found.runs.len(), expected);
        units.push(meter.take().read_units);
    }
    let [whole, newest, whole_rare, newest_rare] = units[..] else { unreachable!() };
    assert!(newest < whole / 2.0, "{newest} units, and {whole}");
    // A search that does not fill the page from the newest runs has read these runs in vain. A run
    // that was logged to in two portions costs three units.
    assert!(newest_rare < whole_rare + 240.0, "{newest_rare} units, and {whole_rare}");
}

/// What one process writes is visible to another process at once, even if no global index has been
/// updated.
#[tokio::test]
async fn another_process_sees_everything_at_once() {
    let site = Site::new().await;
    let (a, b) = (&site.server, site.other().await);
    site.faults.freeze_global_indexes(&site.engine).unwrap();
    let experiment = a.experiment("e").await;
    for round in 0..10 {
        let run = a.run(&experiment).await;
        assert_eq!(b.run_of(&run).await["info"]["experiment_id"], experiment);
        b.log_metric(&run, "m", (round, round, 1.0)).await.ok();
        assert_eq!(a.data(&run, "metrics").await["m"]["step"], round);
        let name = format!("name {round}");
        b.post("experiments/update", json!({ "experiment_id": experiment, "new_name": name })).await.ok();
        let found = a.get("experiments/get-by-name", &[("experiment_name", &name)]).await.ok();
        assert_eq!(found["experiment"]["experiment_id"], experiment);
    }
}

#[tokio::test]
async fn a_run_whose_creation_lost_its_answer_is_made_once() {
    let site = Site::new().await;
    let server = &site.server;
    let experiment = server.experiment("e").await;
    site.faults.lose_answer_every(2);
    let tags = json!([{ "key": "large", "value": "v".repeat(2_000) }]);
    let mut made = Vec::new();
    for _ in 0..5 {
        let new = json!({ "experiment_id": experiment, "tags": tags });
        let run = server.post("runs/create", new).await.ok();
        made.push(run["run"]["info"]["run_id"].as_str().unwrap().to_owned());
    }
    site.faults.lose_answer_every(0);
    let mut found = server.search(json!({ "experiment_ids": [experiment] })).await;
    found.sort();
    made.sort();
    assert_eq!(found, made);
}

async fn record(server: &Server, run: &str, name: &str) {
    let model = json!({ "artifact_path": name, "flavors": {}, "run_id": run, "utc_time_created": "now" });
    server.post("runs/log-model", json!({ "run_id": run, "model_json": model.to_string() })).await.ok();
}

async fn recorded(server: &Server, run: &str) -> usize {
    let tag = server.data(run, "tags").await["mlflow.log-model.history"].clone();
    serde_json::from_str::<Value>(tag.as_str().unwrap()).unwrap().as_array().unwrap().len()
}

#[tokio::test]
async fn models_recorded_at_once_are_all_kept() {
    for (lose, models, bytes) in [(0, 6, 10), (5, 6, 10), (0, 8, 400)] {
        let site = Site::new().await;
        let server = &site.server;
        let run = server.run(&server.experiment("e").await).await;
        site.faults.lose_answer_every(lose);
        let names: Vec<_> = (0..models).map(|number| format!("{number}{}", "m".repeat(bytes))).collect();
        join_all(names.iter().map(|name| record(server, &run, name))).await;
        assert_eq!(recorded(server, &run).await, models, "{bytes}");
    }
}
