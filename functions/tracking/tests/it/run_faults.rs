//! Concurrent clients log to a run while the table throttles requests, loses responses, and
//! executes batches only in part.

use std::collections::BTreeSet;

use futures::future::join_all;
use serde_json::{Value, json};

use crate::indexed_site::index;
use crate::server::{Point, Server, Site, metric_json, point};

const TASKS: i64 = 8;
const ROUNDS: i64 = 8;

#[tokio::test]
async fn refused_calls_lose_nothing() {
    let site = Site::new().await;
    site.faults.refuse_every(10);
    log_from_many_clients(&site).await;
}

#[tokio::test]
async fn lost_answers_lose_and_repeat_nothing() {
    let site = Site::new().await;
    site.faults.lose_answer_every(7);
    log_from_many_clients(&site).await;
}

/// Returns the point of `loss` that a task logs in a round. The metric's latest point is neither
/// the one that was logged last nor the one with the greatest value.
fn loss(task: i64, round: i64) -> Point {
    let number = task * ROUNDS + round;
    (1_000 + number % 7, (number * 37) % 50, 0.25 * f64::from(i32::try_from(number).unwrap()))
}

async fn log_from_many_clients(site: &Site) {
    let experiment = site.server.experiment("shared").await;
    let run = site.server.run(&experiment).await;
    join_all((0..TASKS).map(|task| one_client(&site.server, &experiment, &run, task))).await;
    site.faults.refuse_every(0);
    site.faults.lose_answer_every(0);

    let mut expected: Vec<_> = (0..TASKS).flat_map(|task| (0..ROUNDS).map(move |round| loss(task, round))).collect();
    expected.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let history = site.server.history(&run, "loss").await;
    assert_eq!(history, expected);
    let steps: Vec<_> = site.server.history(&run, "batch").await.iter().map(|point| point.1).collect();
    assert_eq!(steps, (0..TASKS * ROUNDS * 3).collect::<Vec<_>>());
    let found = site.server.run_of(&run).await;
    let metrics = crate::server::by_key(&found["data"]["metrics"]);
    let latest = |(timestamp, step, value): &Point| (*step, *timestamp, *value);
    let latest = history.iter().max_by(|a, b| latest(a).partial_cmp(&latest(b)).unwrap()).unwrap();
    assert_eq!(point(&metrics["loss"]), *latest);
    assert_eq!(metrics.len(), 2);

    let params = crate::server::by_key(&found["data"]["params"]);
    assert_eq!(params.len(), usize::try_from(2 * TASKS * ROUNDS + 1).unwrap());
    let tags = crate::server::by_key(&found["data"]["tags"]);
    for task in 0..TASKS {
        assert_eq!(tags[&format!("tag{task}")], (ROUNDS - 1).to_string());
        assert_eq!(tags[&format!("batched{task}")], format!("{}", ROUNDS - 1).repeat(1_100));
        assert!(!tags.contains_key(&format!("passing{task}")));
        for round in 0..ROUNDS {
            assert_eq!(params[&format!("param{task}.{round}")], round.to_string());
            assert_eq!(params[&format!("batched{task}.{round}")], round.to_string());
        }
    }
    assert_eq!(params["same"], "for all");
    let found = site.server.get("experiments/get", &[("experiment_id", &experiment)]).await.ok();
    assert_eq!(crate::server::by_key(&found["experiment"]["tags"]).len(), usize::try_from(TASKS).unwrap());
    // After the run has been packed, the number of unsealed points is lower than the minimum for a
    // segment.
    index(site).await;
    let waiting = site.dump().await.into_iter().find(|(key, _)| key.ends_with("#METRIC")).unwrap().1;
    assert!(waiting[".loss"]["BS"].as_array().unwrap().len() < 10);
    assert_eq!(site.server.history(&run, "loss").await, expected);
}

async fn one_client(server: &Server, experiment: &str, run: &str, task: i64) {
    for round in 0..ROUNDS {
        server.log_metric(run, "loss", loss(task, round)).await.ok();
        server.log_param(run, &format!("param{task}.{round}"), &round.to_string()).await.ok();
        let first = (task * ROUNDS + round) * 3;
        let metrics: Vec<_> = (first..first + 3).map(|step| metric_json("batch", (step, step, 1.0))).collect();
        let batch = json!({
            "run_id": run,
            "metrics": metrics,
            "params": [
                { "key": format!("batched{task}.{round}"), "value": round.to_string() },
                { "key": "same", "value": "for all" },
            ],
            "tags": [{ "key": format!("batched{task}"), "value": round.to_string().repeat(1_100) }],
        });
        server.post("runs/log-batch", batch).await.ok();
        server.set_tag(run, &format!("tag{task}"), &round.to_string()).await.ok();
    }
    server.set_tag(run, &format!("passing{task}"), "x").await.ok();
    server.post("runs/delete-tag", json!({ "run_id": run, "key": format!("passing{task}") })).await.ok();
    let tag = json!({ "experiment_id": experiment, "key": format!("tag{task}"), "value": "x" });
    server.post("experiments/set-experiment-tag", tag).await.ok();
}

#[tokio::test]
async fn experiments_and_runs_are_made_and_changed_once() {
    for (refuse, lose) in [(5, 0), (0, 5)] {
        let site = Site::new().await;
        site.faults.refuse_every(refuse);
        site.faults.lose_answer_every(lose);
        let server = &site.server;
        let ids: BTreeSet<_> = join_all((0..6).map(|number| async move {
            let id = server.experiment(&format!("name {number}")).await;
            let renamed = json!({ "experiment_id": id, "new_name": format!("renamed {number}") });
            server.post("experiments/update", renamed).await.ok();
            server.post("experiments/delete", json!({ "experiment_id": id })).await.ok();
            server.post("experiments/restore", json!({ "experiment_id": id })).await.ok();
            let run = server.run(&id).await;
            server.post("runs/delete", json!({ "run_id": run })).await.ok();
            server.post("runs/restore", json!({ "run_id": run })).await.ok();
            server.post("runs/outputs", json!({ "run_id": run, "models": [{ "model_id": "m" }] })).await.ok();
            assert_eq!(server.search(json!({ "experiment_ids": [id] })).await, [run]);
            id
        }))
        .await
        .into_iter()
        .collect();
        assert_eq!(ids.len(), 6);
        let names = site.dump().await.into_keys().filter(|key| key.contains("EXPNAME#")).count();
        assert_eq!(names, 7, "the default one included");
    }
}

#[tokio::test]
async fn a_batch_sent_twice_is_a_batch_sent_once() {
    let site = Site::new().await;
    let run = site.server.run(&site.server.experiment("twice").await).await;
    let metrics: Vec<_> = (0..60)
        .map(|step| metric_json(if step % 3 == 0 { "a" } else { "b" }, (step, step, 1.0)))
        .chain([metric_json("single", (1, 1, f64::NAN)), metric_json("single", (1, 1, -0.0))])
        .collect();
    let entries = |name: &str, bytes: usize| -> Vec<_> {
        (0..30).map(|number| json!({ "key": format!("{name}{number}"), "value": "v".repeat(bytes) })).collect()
    };
    let batch = json!({
        "run_id": run,
        "metrics": metrics,
        "params": entries("small", 20).into_iter().chain(entries("large", 2_000)).collect::<Vec<_>>(),
        "tags": entries("tag", 1_500),
    });
    server_state_after(&site, &run, &batch).await;
    let before = server_state_after(&site, &run, &batch).await;
    site.faults.lose_answer_every(2);
    assert_eq!(server_state_after(&site, &run, &batch).await, before);
}

/// Logs the batch, and reads everything that it changed.
async fn server_state_after(site: &Site, run: &str, batch: &Value) -> (Value, Vec<Vec<String>>) {
    site.server.post("runs/log-batch", batch.clone()).await.ok();
    let histories = ["a", "b", "single"].map(|metric| async move {
        // The points are compared as text, because NaN is not equal to itself.
        site.server.history(run, metric).await.iter().map(|point| format!("{point:?}")).collect()
    });
    (site.server.run_of(run).await, join_all(histories).await)
}

#[tokio::test]
async fn batches_that_stay_half_done_lose_nothing() {
    let site = Site::new().await;
    site.faults.halve_batch_every(1);
    let server = &site.server;
    let experiment = server.experiment("halves").await;
    let run = server.run(&experiment).await;
    // 40 metrics with 12 points each become 40 segments in one request.
    let names: Vec<_> = (0..40).map(|number| format!("m{number}")).collect();
    let points: Vec<_> = names.iter().flat_map(|name| (0..12).map(|step| (name.as_str(), (step, step, 1.0)))).collect();
    server.log_points(&run, &points).await.ok();
    for name in &names {
        assert_eq!(server.history(&run, name).await.len(), 12, "{name}");
    }
    let runs = join_all((0..120).map(|time| server.run_at(&experiment, time))).await;
    join_all(runs.iter().map(|run| async { server.log_metric(run, "x", (1, 1, 1.0)).await.ok() })).await;
    let found = server.search(json!({ "experiment_ids": [experiment], "max_results": 1_000 })).await;
    assert_eq!(found[0], run);
    assert!(found[1..].iter().eq(runs.iter().rev()));
    let page = json!({ "experiment_ids": [experiment], "max_results": 1_000 });
    for run in &server.post("runs/search", page).await.ok()["runs"].as_array().unwrap()[1..] {
        assert_eq!(run["data"]["metrics"].as_array().unwrap().len(), 1);
    }
    assert!(site.faults.calls("BatchGetItem") > 7 && site.faults.calls("BatchWriteItem") > 4);
}
