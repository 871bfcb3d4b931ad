//! A server for tests, which runs the function over a private table.

use std::ops::Deref;
use std::time::Duration;

use fts_indexer::{Indexer, StreamBatch};
use serde_json::{Value, json};
use table::Table;
use test_site::{ROOT, TestClient};
pub(crate) use test_site::{TABLE, TestResponse};

/// Length of the leases. It is short, because most tests wait until leases have expired.
const LEASE: Duration = Duration::from_millis(20);

/// A server process with the functions `evaluation` and `traces`, and with `tracking` to create
/// experiments.
#[derive(Clone)]
pub(crate) struct Server(TestClient);

/// A server over a private table, with an engine that injects faults.
pub(crate) struct Site {
    base: test_site::TestEnvironment,
    /// The server whose requests are subject to the injected faults.
    pub(crate) server: Server,
}

impl Deref for Site {
    type Target = test_site::TestEnvironment;

    fn deref(&self) -> &test_site::TestEnvironment {
        &self.base
    }
}

impl Site {
    pub(crate) async fn new() -> Self {
        let site = test_site::TestEnvironment::new().await;
        let server = Server::on(&site.faulty(), LEASE).await;
        site.faults.reset_calls();
        Self { base: site, server }
    }

    /// Starts another process on this table, whose requests to the table always succeed.
    pub(crate) async fn other(&self) -> Server {
        Server::on(&self.table, LEASE).await
    }

    /// Starts a server whose requests are subject to the injected faults, and that gives up after
    /// few retries.
    pub(crate) async fn impatient(&self) -> Server {
        Server::on(&self.base.impatient(), LEASE).await
    }

    /// Passes stream records to the indexer, and checks that it has processed all of them.
    pub(crate) async fn index(&self, records: Vec<Value>) {
        let answer = Indexer::new(self.table.clone()).handle(StreamBatch { records }).await;
        assert!(answer.batch_item_failures.is_empty(), "{answer:?}");
    }
}

impl Deref for Server {
    type Target = TestClient;

    fn deref(&self) -> &TestClient {
        &self.0
    }
}

impl Server {
    async fn on(table: &Table, lease: Duration) -> Self {
        let tracking = tracking::store::Store::with_lease(table.clone(), ROOT, lease);
        tracking.experiment_create_default(&mlflow_api::Workspace::default()).await.unwrap();
        let traces = traces::store::Store::with_lease(table.clone(), artifact_store::ArtifactStore::default(), lease);
        let evaluation = evaluation::store::Store::with_lease(table.clone(), lease);
        Self(TestClient(service::join_routers(
            evaluation::router(&evaluation, test_site::everybody()),
            [tracking::router(&tracking, test_site::everybody()), traces::router(&traces, test_site::everybody())],
        )))
    }

    pub(crate) async fn experiment(&self, name: &str) -> String {
        let answer = self.post("experiments/create", json!({ "name": name })).await.ok();
        answer["experiment_id"].as_str().unwrap().to_owned()
    }
}
