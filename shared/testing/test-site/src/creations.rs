//! Tests of creations with faults at their requests to the table and at the responses. If the
//! client retries after a response, the request must have had no effect, so that nothing is created
//! twice.

use embedded_engine::faults::InjectedFault;
use serde_json::Value;
use table::Table;

use crate::{TableDump, TestClient, TestEnvironment, TestResponse, all_troubles};

/// Numbers of consecutive requests that fail: only one, two, or all from the first failing one on.
const FAULT_LENGTHS: [u64; 3] = [1, 2, u64::MAX];

/// The environment in which a creation is tried once.
#[derive(Debug)]
pub struct CreationSetup {
    /// The table, and the injection of faults into requests to it.
    pub site: TestEnvironment,
    /// A server whose requests to the table are subject to the faults. It gives up after a few
    /// attempts.
    pub faulty: TestClient,
    /// A server whose requests to the table are not subject to faults.
    pub other: TestClient,
    /// The body of the request.
    pub body: Value,
}

impl CreationSetup {
    /// Returns an environment with an empty table. `server` creates a server over the table.
    pub async fn new(server: impl Fn(&Table) -> TestClient, body: Value) -> Self {
        let site = TestEnvironment::new().await;
        Self { faulty: server(&site.impatient()), other: server(&site.table), body, site }
    }
}

/// A kind of creation.
#[derive(Clone, Copy, Debug)]
pub struct Creation {
    /// Path of the route that creates the entity, below `/api/`.
    pub path: &'static str,
    /// Counts the created entities of each kind.
    pub count: fn(&TableDump) -> Vec<usize>,
    /// The numbers by which the creation increases these counts.
    pub adds: &'static [usize],
}

impl Creation {
    /// Tries the creation with each kind of fault at each of its requests to the table, each time
    /// in a new environment. A fault affects one request, two, or all from the first affected one
    /// on. If all faults are enabled, each fault is tried with all three lengths at each request.
    /// Otherwise, it is tried with one of them, which varies from request to request.
    pub async fn check(self, ground: impl AsyncFn() -> CreationSetup) {
        let rounds = if all_troubles() { FAULT_LENGTHS.len() } else { 1 };
        let troubles = [InjectedFault::Throttled, InjectedFault::Disconnected, InjectedFault::AnswerLost];
        for (place, trouble) in troubles.into_iter().enumerate() {
            for round in 0..rounds {
                for (nth, calls) in (1..).zip(FAULT_LENGTHS.into_iter().cycle().skip(place + round)) {
                    if !self.meets(ground().await, trouble, nth, calls).await {
                        assert!(nth > 1);
                        break;
                    }
                }
            }
        }
    }

    async fn send(&self, api: &TestClient, body: &Value) -> TestResponse {
        api.call_at("POST", &format!("/api/{}", self.path), body.to_string()).await
    }

    async fn count(&self, site: &TestEnvironment) -> Vec<usize> {
        (self.count)(&site.dump().await)
    }

    /// Injects a fault into `calls` requests, starting with the `nth` one. Returns whether at least
    /// `nth` requests were sent.
    async fn meets(&self, ground: CreationSetup, trouble: InjectedFault, nth: u64, calls: u64) -> bool {
        let CreationSetup { site, faulty, other, body } = ground;
        let before = self.count(&site).await;
        let after: Vec<_> = before.iter().zip(self.adds).map(|(before, added)| before + added).collect();
        assert_ne!(before, after);
        site.faults.reset_calls();
        site.faults.trouble_at(trouble, nth, calls);
        let answer = self.send(&faulty, &body).await;
        site.faults.work_again();
        let made: u64 = site.faults.all_calls().iter().map(|(_, calls)| calls).sum();
        let found = self.count(&site).await;
        let course = format!("{} {trouble:?} at {nth} for {calls}: {answer:?}", self.path);
        match answer.status {
            200 => assert_eq!(found, after, "{course}"),
            _ if answer.is_repeated() => {
                assert_eq!(found, before, "{course}");
                self.send(&other, &body).await.ok();
                assert_eq!(self.count(&site).await, after, "{course}");
            }
            _ => {
                assert!(found == before || found == after, "{course}");
                answer.refused(409, "ABORTED");
                assert_eq!(trouble, InjectedFault::AnswerLost, "{course}");
            }
        }
        made >= nth
    }
}
