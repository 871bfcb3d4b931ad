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

#[tokio::test]
async fn evaluation_datasets() {
    let (path, is_one): (_, fn(&str) -> bool) = ("3.0/mlflow/datasets/create", |key| key.ends_with(" ED#META"));
    Creation { path, body: |id| json!({ "name": "d", "experiment_ids": [id] }), is_one }.check().await;
    let big = |_: &str| {
        let experiments: Vec<_> = (0..130).map(|number| number.to_string()).collect();
        let tags: Vec<_> = (0..20).map(|number| (format!("k{number}"), Value::from("v".repeat(1_100)))).collect();
        let tags = Value::Object(tags.into_iter().collect()).to_string();
        json!({ "name": "d", "experiment_ids": experiments, "tags": tags })
    };
    Creation { path, body: big, is_one }.check().await;
}

#[tokio::test]
async fn scorers() {
    let (path, is_one): (_, fn(&str) -> bool) = ("3.0/mlflow/scorers/register", |key| key.contains(" SCORERV#"));
    let new = |id: &str| json!({ "experiment_id": id, "name": "s", "serialized_scorer": "{}" });
    Creation { path, body: new, is_one }.check().await;
}
