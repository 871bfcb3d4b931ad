//! Deletion of an experiment by one process while another one writes to its runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt};
use serde_json::{Value, json};

use crate::server::{Server, Site, TestResponse};

/// Length of the leases. It is so long that a lease taken just before a deletion is still valid
/// when the deletion starts.
const LEASE: Duration = Duration::from_millis(400);

async fn two_processes() -> (Site, Server, Server) {
    let site = Site::new().await;
    let a = Server::on(&site.table, LEASE).await;
    let b = Server::on(&site.table, LEASE).await;
    (site, a, b)
}

async fn set_stage(server: &Server, what: &str, id: &str) {
    let (resource, _) = what.split_once('/').unwrap();
    let key = if resource == "runs" { "run_id" } else { "experiment_id" };
    server.post(what, json!({ key: id })).await.ok();
}

/// Makes every kind of write to a run, and to the experiment itself.
async fn writes(server: &Server, experiment: &str, run: &str) -> Vec<TestResponse> {
    let batch = |what: &str, entry: Value| json!({ "run_id": run, what: [entry] });
    let model = json!({ "artifact_path": "p", "flavors": {}, "run_id": run, "utc_time_created": "now" }).to_string();
    let mut answers = vec![
        server.log_metric(run, "loss", (2, 2, 2.0)).await,
        server.log_metric(run, "new", (2, 2, 2.0)).await,
        server.log_param(run, "late", "1").await,
        server.set_tag(run, "late", "1").await,
    ];
    for (path, body) in [
        ("runs/log-batch", batch("metrics", json!({ "key": "loss", "value": 1, "timestamp": 9, "step": 9 }))),
        ("runs/log-batch", batch("params", json!({ "key": "late", "value": "1" }))),
        ("runs/log-batch", batch("params", json!({ "key": "late and large", "value": "1".repeat(3_000) }))),
        ("runs/log-batch", batch("tags", json!({ "key": "late", "value": "1" }))),
        ("runs/log-batch", json!({ "run_id": run })),
        ("runs/delete-tag", json!({ "run_id": run, "key": "early" })),
        ("runs/update", json!({ "run_id": run, "status": "FAILED" })),
        ("runs/update", json!({ "run_id": run })),
        ("runs/outputs", batch("models", json!({ "model_id": "m" }))),
        ("runs/log-model", json!({ "run_id": run, "model_json": model })),
        ("runs/create", json!({ "experiment_id": experiment })),
        ("experiments/set-experiment-tag", json!({ "experiment_id": experiment, "key": "late", "value": "1" })),
        ("experiments/delete-experiment-tag", json!({ "experiment_id": experiment, "key": "early" })),
    ] {
        answers.push(server.post(path, body).await);
    }
    answers
}

async fn stage(server: &Server, run: &str) -> String {
    server.run_of(run).await["info"]["lifecycle_stage"].as_str().unwrap().to_owned()
}

async fn count(server: &Server, experiment: &str, view: &str) -> usize {
    let search = json!({ "experiment_ids": [experiment], "run_view_type": view, "max_results": 2_000 });
    server.search(search).await.len()
}

#[tokio::test]
async fn a_deletion_is_seen_by_all_processes_and_costs_the_same_for_any_number_of_runs() {
    let (site, a, b) = two_processes().await;
    let experiment = a.experiment("many runs").await;
    let id = experiment.parse().unwrap();
    let make = |_| async {
        let new = tracking::store::NewRun { start_time: 5, ..Default::default() };
        let experiment = mlflow_api::ExperimentId::from_number(id).unwrap();
        a.store.run_create(experiment, &new).await.unwrap()
    };
    stream::iter(0..999).map(make).buffer_unordered(16).for_each(|_| async {}).await;
    let run = a.run(&experiment).await;
    a.set_tag(&run, "early", "1").await.ok();
    let tag = json!({ "experiment_id": experiment, "key": "early", "value": "1" });
    a.post("experiments/set-experiment-tag", tag).await.ok();

    // This call takes a lease that is still valid when the deletion starts.
    a.log_metric(&run, "loss", (1, 1, 1.0)).await.ok();
    let begin = Instant::now();
    let counted = Server::on(&table::Table::new(site.faults.client(), test_site::TABLE), LEASE).await;
    site.faults.reset_calls();
    set_stage(&counted, "experiments/delete", &experiment).await;
    assert!(begin.elapsed() >= LEASE);
    assert_eq!(site.faults.all_calls().iter().map(|(_, calls)| calls).sum::<u64>(), 2);
    let before = site.dump().await;
    for answer in writes(&a, &experiment, &run).await {
        answer.refused_as_deleted();
    }
    assert_eq!(site.dump().await, before);
    let found = a.get("experiments/get", &[("experiment_id", &experiment)]).await.ok();
    assert_eq!(found["experiment"]["lifecycle_stage"], "deleted");
    assert_eq!(stage(&a, &run).await, "deleted");
    assert_eq!((count(&a, &experiment, "ACTIVE_ONLY").await, count(&a, &experiment, "DELETED_ONLY").await), (0, 1_000));

    set_stage(&b, "experiments/restore", &experiment).await;
    assert_eq!(stage(&a, &run).await, "active");
    assert_eq!((count(&a, &experiment, "ACTIVE_ONLY").await, count(&a, &experiment, "DELETED_ONLY").await), (1_000, 0));
    for answer in writes(&a, &experiment, &run).await {
        answer.ok();
    }
}

#[tokio::test]
async fn a_restored_experiment_is_written_to_at_once() {
    let (_site, a, b) = two_processes().await;
    let experiment = a.experiment("back").await;
    let run = a.run(&experiment).await;
    set_stage(&b, "experiments/delete", &experiment).await;
    a.log_metric(&run, "loss", (1, 1, 1.0)).await.refused_as_deleted();
    set_stage(&b, "experiments/restore", &experiment).await;
    a.log_metric(&run, "loss", (1, 1, 1.0)).await.ok();
    a.log_param(&run, "p", "1").await.ok();
    assert_eq!(a.history(&run, "loss").await, [(1, 1, 1.0)]);
}

#[tokio::test]
async fn no_call_that_begins_after_the_answer_succeeds() {
    let (_site, a, b) = two_processes().await;
    let experiment = a.experiment("race").await;
    let run = a.run(&experiment).await;
    let done = AtomicBool::new(false);
    let logging = async {
        let mut accepted = Vec::new();
        for step in 0.. {
            let begin = Instant::now();
            let answer = match step % 3 {
                0 => a.log_metric(&run, "loss", (step, step, 1.0)).await,
                1 => a.set_tag(&run, "step", &step.to_string()).await,
                _ => a.log_param(&run, &format!("p{step}"), "1").await,
            };
            match answer.status {
                200 => accepted.push(begin),
                _ => answer.refused_as_deleted(),
            }
            if done.load(Ordering::Relaxed) {
                return accepted;
            }
        }
        accepted
    };
    let deletion = async {
        tokio::task::yield_now().await;
        set_stage(&b, "experiments/delete", &experiment).await;
        let answered = Instant::now();
        // Further calls after the deletion has returned must fail as well.
        for _ in 0..20 {
            a.set_tag(&run, "x", "y").await.refused_as_deleted();
        }
        done.store(true, Ordering::Relaxed);
        answered
    };
    let (accepted, answered) = tokio::join!(logging, deletion);
    assert!(!accepted.is_empty());
    assert!(accepted.iter().all(|begin| *begin < answered));
}

#[tokio::test]
async fn the_experiment_overrules_what_happened_to_its_runs_before() {
    let (_site, a, b) = two_processes().await;
    let experiment = a.experiment("stages").await;
    let (alone, kept, bare) = (a.run(&experiment).await, a.run(&experiment).await, a.run(&experiment).await);
    for run in [&alone, &kept] {
        a.log_metric(run, "loss", (1, 1, 1.0)).await.ok();
    }
    set_stage(&a, "runs/delete", &alone).await;
    assert_eq!(count(&a, &experiment, "ACTIVE_ONLY").await, 2);
    a.log_metric(&alone, "loss", (2, 2, 1.0)).await.refused_as_deleted();
    set_stage(&b, "experiments/delete", &experiment).await;

    // A run that was restored inside a deleted experiment can be logged to, whether or not metrics
    // had been logged to it before.
    for run in [&kept, &bare] {
        set_stage(&b, "runs/restore", run).await;
        assert_eq!(stage(&a, run).await, "active");
        a.log_metric(run, "loss", (3, 3, 3.0)).await.ok();
        a.log_param(run, "inside", "1").await.ok();
        a.set_tag(run, "inside", &"1".repeat(2_000)).await.ok();
        let update = json!({ "run_id": run, "status": "FINISHED" });
        assert_eq!(a.post("runs/update", update).await.ok()["run_info"]["lifecycle_stage"], "active");
    }
    a.log_metric(&alone, "loss", (2, 2, 1.0)).await.refused_as_deleted();
    assert_eq!((count(&a, &experiment, "ACTIVE_ONLY").await, count(&a, &experiment, "DELETED_ONLY").await), (2, 1));
    set_stage(&a, "runs/delete", &bare).await;
    a.log_metric(&bare, "loss", (4, 4, 4.0)).await.refused_as_deleted();

    set_stage(&b, "experiments/restore", &experiment).await;
    for run in [&alone, &kept, &bare] {
        assert_eq!(stage(&a, run).await, "active");
        a.log_metric(run, "loss", (5, 5, 5.0)).await.ok();
        a.log_param(run, "after", "1").await.ok();
    }
    assert_eq!((count(&a, &experiment, "ACTIVE_ONLY").await, count(&a, &experiment, "DELETED_ONLY").await), (3, 0));
    set_stage(&a, "runs/delete", &kept).await;
    assert_eq!((count(&b, &experiment, "ACTIVE_ONLY").await, count(&b, &experiment, "DELETED_ONLY").await), (2, 1));
    b.log_metric(&kept, "loss", (6, 6, 6.0)).await.refused_as_deleted();
    set_stage(&b, "experiments/delete", &experiment).await;
    assert_eq!(count(&a, &experiment, "DELETED_ONLY").await, 3);
}

/// A process relies on a cached state of the experiment that is two changes old. The run has been
/// deleted in the meantime.
#[tokio::test]
async fn a_run_deleted_while_the_experiment_goes_and_comes_stays_deleted() {
    let (_site, a, b) = two_processes().await;
    let experiment = a.experiment("there and back").await;
    let run = a.run(&experiment).await;
    a.log_metric(&run, "loss", (1, 1, 1.0)).await.ok();
    let deletion = tokio::spawn({
        let (b, experiment) = (b.clone(), experiment.clone());
        async move { set_stage(&b, "experiments/delete", &experiment).await }
    });
    // The experiment is restored as soon as the deletion has been written, before the response to
    // the deletion.
    let restored =
        async { while b.post("experiments/restore", json!({ "experiment_id": experiment })).await.status != 200 {} };
    tokio::time::timeout(Duration::from_mins(5), restored).await.unwrap();
    set_stage(&b, "runs/delete", &run).await;
    a.log_metric(&run, "loss", (2, 2, 2.0)).await.refused_as_deleted();
    a.log_param(&run, "p", "1").await.refused_as_deleted();
    a.set_tag(&run, "t", "1").await.refused_as_deleted();
    deletion.await.unwrap();
    assert_eq!(a.history(&run, "loss").await, [(1, 1, 1.0)]);
}
