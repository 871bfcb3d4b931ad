//! The policy for histories of metrics.

use std::time::Duration;

use clock::{Simulation, now_ms};
use mlflow_api::Workspace;
use retention::{Age, Policy, ToLog};
use serde_json::{Value, json};
use table::{Retry, Table};
use test_site::TABLE;
use workspaces::Workspaces;

use crate::lab::{Lab, remove_histories};

const LOSS: i64 = 11_500;

/// Runs a test on a clock that jumps to where somebody waits for.
fn timed(test: impl Future<Output = ()>) {
    let simulation = Simulation::begin();
    let test = Box::pin(test);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::select! { () = test => {}, () = simulation.drive() => {} }
    });
}

async fn set(lab: &Lab, age: &str) {
    Policy::Histories.write(&lab.site.table, Some(&Age::parse(age).unwrap())).await.unwrap();
}

/// Logs points of the metric `loss`, a call for each thousand.
async fn log(lab: &Lab, run: &str, steps: std::ops::Range<i64>) {
    let steps: Vec<_> = steps.collect();
    for steps in steps.chunks(1_000) {
        let point = |step: &i64| json!({ "key": "loss", "value": step, "timestamp": 1_000 + step, "step": step });
        let metrics: Vec<_> = steps.iter().map(point).collect();
        lab.post("runs/log-batch", json!({ "run_id": run, "metrics": metrics })).await;
    }
}

async fn end(lab: &Lab, run: &str, at: i64) {
    lab.post("runs/update", json!({ "run_id": run, "status": "FINISHED", "end_time": at })).await;
    lab.index().await;
    lab.rest().await;
}

/// A run with chart rows, which ended long ago.
async fn ended(lab: &Lab, points: i64) -> String {
    let new = lab.post("runs/create", json!({ "experiment_id": "0", "start_time": 1 })).await;
    let run = new["run"]["info"]["run_id"].as_str().unwrap().to_owned();
    log(lab, &run, 0..points).await;
    end(lab, &run, 20_000).await;
    run
}

async fn history(lab: &Lab, run: &str) -> Vec<i64> {
    let query = [("run_id", run), ("metric_key", "loss"), ("max_results", "25000")];
    let found = lab.api.get("metrics/get-history", &query).await.ok();
    found["metrics"].as_array().into_iter().flatten().map(|point| point["step"].as_i64().unwrap()).collect()
}

/// Whether only the latest point is left, and some that waited for a segment.
fn is_short(history: &[i64], latest: i64) -> bool {
    history.len() < 10 && history.last() == Some(&latest)
}

/// How many points its chart has, and the last of them.
async fn chart(lab: &Lab, run: &str) -> (usize, Option<i64>) {
    let query = [("run_ids", run), ("metric_key", "loss"), ("max_results", "320")];
    let found = lab.api.get("metrics/get-history-bulk-interval", &query).await.ok();
    let points = found["metrics"].as_array().cloned().unwrap_or_default();
    (points.len(), points.last().and_then(|point| point["step"].as_i64()))
}

async fn latest(lab: &Lab, run: &str) -> Value {
    lab.api.get("runs/get", &[("run_id", run)]).await.ok()["run"]["data"]["metrics"].clone()
}

async fn of_history(lab: &Lab, run: &str) -> usize {
    let items = lab.items(run).await;
    items.iter().filter(|key| key.contains("MHIST#") || key.contains("MCHART#")).count()
}

#[test]
fn what_a_policy_keeps_no_longer_is_gone_and_the_latest_points_stay() {
    timed(async {
        let lab = Lab::new().await;
        let (run, running) = (ended(&lab, LOSS).await, lab.run("0").await);
        lab.index().await;
        lab.rest().await;
        let before = latest(&lab, &run).await;
        assert_eq!(history(&lab, &run).await.len(), usize::try_from(LOSS).unwrap());
        assert_eq!(chart(&lab, &run).await.1, Some(LOSS - 1));
        let of_others = of_history(&lab, &running).await;
        assert!(of_history(&lab, &run).await > 10 && of_others > 0);

        for (age, gone) in [(None, 0), (Some("36500d"), 0), (Some("1h"), 1), (Some("1h"), 0)] {
            if let Some(age) = age {
                set(&lab, age).await;
            }
            let outcome = remove_histories(&lab.retention()).await;
            assert_eq!(outcome.removed.len(), gone, "{age:?}: {outcome:?}");
        }
        assert_eq!((of_history(&lab, &run).await, of_history(&lab, &running).await), (0, of_others));
        assert_eq!(latest(&lab, &run).await, before);
        assert!(is_short(&history(&lab, &run).await, LOSS - 1));
        assert_eq!(chart(&lab, &run).await.1, Some(LOSS - 1));
        let found = lab
            .post("runs/search", json!({ "experiment_ids": ["0"], "filter": format!("metrics.loss = {}", LOSS - 1) }));
        assert_eq!(found.await["runs"].as_array().unwrap().len(), 1);

        // The run goes on, and has a history again.
        log(&lab, &run, LOSS..2 * LOSS).await;
        lab.index().await;
        lab.rest().await;
        assert!(history(&lab, &run).await.ends_with(&(LOSS - 1..2 * LOSS).collect::<Vec<_>>()));
        let (points, last) = chart(&lab, &run).await;
        assert!(points > 300 && last == Some(2 * LOSS - 1), "{points} {last:?}");
        assert_eq!(remove_histories(&lab.retention()).await.removed.len(), 1);
        assert!(is_short(&history(&lab, &run).await, 2 * LOSS - 1));
    });
}

#[test]
fn it_may_stop_at_any_request_and_be_done_again() {
    timed(async {
        for request in 1.. {
            let lab = Lab::new().await;
            let run = ended(&lab, 1_100).await;
            set(&lab, "1h").await;
            let table = Table::new(lab.site.faults.client(), TABLE);
            let cut = lab.retention_over(table.with_retry(Retry { attempts: 1, ..Retry::default() }));
            lab.site.faults.cut_off_at(request);
            let outcome = cut.remove_old_histories(&Workspace::default(), &ToLog).await;
            lab.site.faults.work_again();
            // Readers see the whole history, or less, and never an error.
            assert!(history(&lab, &run).await.ends_with(&[1_099]));
            assert!(chart(&lab, &run).await.0 > 0);
            remove_histories(&lab.retention()).await;
            assert!(is_short(&history(&lab, &run).await, 1_099));
            assert_eq!(of_history(&lab, &run).await, 0, "{request}");
            if outcome.is_ok() {
                assert!(request > 6, "so few requests");
                break;
            }
        }
    });
}

/// Points come while the history is being removed: none of them is lost.
#[test]
fn a_run_that_is_packed_meanwhile_keeps_what_came() {
    timed(async {
        for put in [1, 2] {
            let lab = Lab::new().await;
            let run = ended(&lab, 2_600).await;
            set(&lab, "1h").await;
            let mut gate = lab.site.faults.pause_before(if put == 1 { "PutItem" } else { "DeleteItem" }, 1);
            let retention = lab.retention_over(Table::new(lab.site.faults.client(), TABLE));
            let removing = tokio::spawn(async move { remove_histories(&retention).await });
            gate.reached().await;
            let now = now_ms();
            let point = |step: i64| json!({ "key": "loss", "value": step, "timestamp": now + step, "step": step });
            let metrics: Vec<_> = (3_000..4_000).map(point).collect();
            lab.post("runs/log-batch", json!({ "run_id": run, "metrics": metrics })).await;
            lab.index().await;
            lab.rest().await;
            gate.open();
            removing.await.unwrap();
            let kept: Vec<_> = history(&lab, &run).await.into_iter().filter(|step| *step >= 3_000).collect();
            assert_eq!(kept, (3_000..4_000).collect::<Vec<_>>(), "{put}");
            assert!(chart(&lab, &run).await.0 > 100);
            remove_histories(&lab.retention()).await;
            assert!(history(&lab, &run).await.ends_with(&[3_999]));
            assert!(chart(&lab, &run).await.0 > 0);
        }
    });
}

/// A process that is always there looks at each experiment once a day.
#[test]
fn experiments_take_turns() {
    timed(async {
        let lab = Lab::new().await;
        ended(&lab, 50).await;
        set(&lab, "1h").await;
        let is_turn = (now_ms() / 3_600_000) % 24 == 0;
        let workspaces = Workspaces::new(lab.site.table.clone());
        let taking_turns = lab.retention().in_turn();
        assert!(taking_turns.remove_for(Duration::from_mins(1), &workspaces, &ToLog).await.unwrap());
        assert_eq!(remove_histories(&lab.retention()).await.removed.len(), usize::from(!is_turn));
    });
}
