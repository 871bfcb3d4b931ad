//! Whatever becomes of the requests of a creation, and of their answers: what a client is told to repeat did not happen, and
//! nothing happens twice.

use axum::body::Body;
use embedded_engine::faults::Trouble;
use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::server::{Answer, Server, Site};

/// A creation: the path, the body for an experiment's id, and how what it makes is told among the keys of all items.
struct Creation {
    path: &'static str,
    body: fn(&str) -> Value,
    is_one: fn(&str) -> bool,
}

impl Creation {
    async fn send(&self, server: &Server, body: &Value) -> Answer {
        let request = Request::post(format!("/api/{}", self.path)).header(CONTENT_TYPE, "application/json");
        server.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    async fn count(&self, site: &Site) -> usize {
        site.dump().await.keys().filter(|key| (self.is_one)(key)).count()
    }

    /// Lets the `nth` request, or all from it on, meet a trouble; whether it came to that many.
    async fn meets(&self, trouble: Trouble, nth: u64, calls: u64) -> bool {
        let site = Site::new().await;
        let other = site.other().await;
        let experiment = other.experiment("e").await;
        let server = site.impatient().await;
        let body = (self.body)(&experiment);
        let before = self.count(&site).await;
        site.faults.reset_calls();
        site.faults.trouble_at(trouble, nth, calls);
        let answer = self.send(&server, &body).await;
        site.faults.work_again();
        let made: u64 = site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
        let created = self.count(&site).await - before;
        let course = format!("{} {trouble:?} at {nth} for {calls}: {answer:?}", self.path);
        match answer.status {
            200 => assert_eq!(created, 1, "{course}"),
            408 | 429 | 500.. => {
                assert_eq!(created, 0, "{course}");
                self.send(&other, &body).await.ok();
                assert_eq!(self.count(&site).await - before, 1, "{course}");
            }
            _ => {
                assert!(created <= 1, "{course}");
                answer.refused(409, "ABORTED");
                assert_eq!(trouble, Trouble::AnswerLost, "{course}");
            }
        }
        made >= nth
    }

    async fn check(self) {
        for trouble in [Trouble::Throttled, Trouble::Disconnected, Trouble::AnswerLost] {
            for calls in [1, 2, u64::MAX] {
                let mut nth = 1;
                while self.meets(trouble, nth, calls).await {
                    nth += 1;
                }
                assert!(nth > 1);
            }
        }
    }
}

/// Entries of which each is too big for its document.
fn entries(count: usize) -> Vec<Value> {
    (0..count).map(|number| json!({ "key": format!("k{number:03}"), "value": "v".repeat(1_100) })).collect()
}

/// The kind of row in the partition of an experiment: the first part of its sort key, if it has as many parts.
fn is_row(key: &str, kind: &str, parts: usize) -> bool {
    let Some((partition, sort)) = key.split_once(' ') else { return false };
    partition.starts_with("EXP#") && sort.starts_with(kind) && sort.split('#').count() == parts
}

#[tokio::test]
async fn experiments() {
    let (path, is_one): (_, fn(&str) -> bool) = ("2.0/mlflow/experiments/create", |key| key.contains(" EXPNAME#"));
    Creation { path, body: |_| json!({ "name": "new" }), is_one }.check().await;
    Creation { path, body: |_| json!({ "name": "new", "tags": entries(90) }), is_one }.check().await;
}

#[tokio::test]
async fn runs() {
    let (path, is_one): (_, fn(&str) -> bool) = ("2.0/mlflow/runs/create", |key| is_row(key, "R#", 2));
    Creation { path, body: |id| json!({ "experiment_id": id }), is_one }.check().await;
    Creation { path, body: |id| json!({ "experiment_id": id, "tags": entries(120) }), is_one }.check().await;
}

#[tokio::test]
async fn logged_models() {
    let (path, is_one): (_, fn(&str) -> bool) = ("2.0/mlflow/logged-models", |key| is_row(key, "LM#", 2));
    Creation { path, body: |id| json!({ "experiment_id": id, "name": "m" }), is_one }.check().await;
    let big = |id: &str| json!({ "experiment_id": id, "name": "m", "params": entries(120) });
    Creation { path, body: big, is_one }.check().await;
}

/// What was written before the document is nobody's without it: neither search nor history see half a run.
#[tokio::test]
async fn rows_without_their_document_are_nobodys() {
    let site = Site::new().await;
    let other = site.other().await;
    let experiment = other.experiment("e").await;
    let run = other.run(&experiment).await;
    let server = site.impatient().await;
    // Reading the experiment, five requests for rows, and the transaction.
    site.faults.trouble_at(Trouble::Throttled, 3, u64::MAX);
    let body = json!({ "experiment_id": experiment, "tags": entries(200) });
    server.post("runs/create", body).await.refused(503, "TEMPORARILY_UNAVAILABLE");
    site.faults.work_again();
    assert!(site.dump().await.keys().any(|key| key.contains("#TAG#")), "rows were written");
    assert_eq!(other.search(json!({ "experiment_ids": [experiment] })).await, [run]);
}
