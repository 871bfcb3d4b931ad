//! A param has one value, even if different values are logged concurrently.

use futures::future::join_all;
use serde_json::json;

use crate::server::{Server, Site, TestResponse};

/// How a task logs its value.
#[derive(Clone, Copy)]
enum Way {
    Alone,
    /// In a batch with other params.
    Batch,
    /// In a batch with other params that need rows.
    BatchWithRows,
}

async fn log(server: &Server, run: &str, task: usize, way: Way, value: &str) -> TestResponse {
    let more = |bytes: usize| json!({ "key": format!("more{task}"), "value": "m".repeat(bytes) });
    let batch = |more| json!({ "run_id": run, "params": [more, { "key": "k", "value": value }] });
    match way {
        Way::Alone => server.log_param(run, "k", value).await,
        Way::Batch => server.post("runs/log-batch", batch(more(5))).await,
        Way::BatchWithRows => server.post("runs/log-batch", batch(more(2_000))).await,
    }
}

/// Logs the values concurrently, and checks that exactly one of them was accepted.
async fn race(site: &Site, run: &str, values: &[String], ways: &[Way]) {
    let tasks = values.iter().cycle().zip(ways.iter().cycle()).enumerate().take(16);
    let answers = join_all(tasks.map(|(task, (value, way))| async move {
        (value, task, *way, log(&site.server, run, task, *way, value).await)
    }))
    .await;
    let params = site.server.data(run, "params").await;
    let winner = params["k"].as_str().unwrap();
    assert!(values.iter().any(|value| value == winner));
    for (value, task, way, answer) in answers {
        let accepted = value == winner;
        if accepted {
            answer.ok();
        } else {
            let message = answer.refused(400, "INVALID_PARAMETER_VALUE");
            assert!(message.starts_with("Changing param values is not allowed."), "{message}");
        }
        let with_others = !matches!(way, Way::Alone);
        assert_eq!(params.contains_key(&format!("more{task}")), accepted && with_others, "all or nothing");
    }
    // Logging the accepted value again changes nothing, and other values are still rejected.
    let before = site.dump().await;
    site.server.log_param(run, "k", winner).await.ok();
    site.server.log_param(run, "k", "another").await.refused(400, "INVALID_PARAMETER_VALUE");
    let batch = json!({ "run_id": run, "params": [{ "key": "k", "value": winner }], "tags": [] });
    site.server.post("runs/log-batch", batch).await.ok();
    assert_eq!(site.dump().await, before);
}

fn values(bytes: &[usize]) -> Vec<String> {
    bytes.iter().enumerate().map(|(number, bytes)| format!("{number}").repeat(*bytes)).collect()
}

async fn every_race(lose: u64, params_before: usize) {
    use Way::{Alone, Batch, BatchWithRows};
    for bytes in [[3, 3, 3, 3], [2_000, 2_000, 2_000, 2_000], [3, 2_000, 1_024, 1_025]] {
        for ways in [&[Alone][..], &[Batch], &[BatchWithRows], &[Alone, Alone, Batch, Batch, BatchWithRows]] {
            let site = Site::new().await;
            let run = site.server.run(&site.server.experiment("race").await).await;
            for hundred in 0..params_before / 100 {
                let params: Vec<_> = (0..100)
                    .map(|number| json!({ "key": format!("before {hundred}.{number}"), "value": "v".repeat(500) }))
                    .collect();
                site.server.post("runs/log-batch", json!({ "run_id": run, "params": params })).await.ok();
            }
            site.faults.lose_answer_every(lose);
            race(&site, &run, &values(&bytes), ways).await;
        }
    }
}

#[tokio::test]
async fn one_value_wins() {
    every_race(0, 0).await;
}

#[tokio::test]
async fn one_value_wins_where_answers_are_lost() {
    every_race(5, 0).await;
}

#[tokio::test]
async fn one_value_wins_in_a_document_that_is_full() {
    every_race(0, 100).await;
}

#[tokio::test]
async fn a_batch_with_one_conflict_writes_nothing() {
    let site = Site::new().await;
    let run = site.server.run(&site.server.experiment("e").await).await;
    site.server.log_param(&run, "a", "1").await.ok();
    site.server.log_param(&run, "large", &"1".repeat(2_000)).await.ok();
    let before = site.dump().await;
    for conflict in ["a", "large"] {
        for bytes in [1, 2_000] {
            let mut params: Vec<_> =
                (0..60).map(|number| json!({ "key": format!("p{number}"), "value": "v".repeat(bytes) })).collect();
            params.push(json!({ "key": conflict, "value": "2" }));
            let batch = json!({
                "run_id": run,
                "params": params,
                "tags": [{ "key": "t", "value": "v" }],
                "metrics": [{ "key": "m", "value": 1, "timestamp": 1, "step": 1 }],
            });
            site.server.post("runs/log-batch", batch).await.refused(400, "INVALID_PARAMETER_VALUE");
            assert_eq!(site.dump().await, before);
        }
    }
}

/// A batch that contains two different values of one param is always rejected, even if the param
/// already has one of these values.
#[tokio::test]
async fn a_batch_that_contradicts_itself_is_refused() {
    let site = Site::new().await;
    let run = site.server.run(&site.server.experiment("e").await).await;
    let batch = json!({ "run_id": run, "params": [{ "key": "a", "value": "1" }, { "key": "a", "value": "2" }] });
    site.server.post("runs/log-batch", batch).await.refused(400, "INVALID_PARAMETER_VALUE");
    assert!(site.server.data(&run, "params").await.is_empty());
}
