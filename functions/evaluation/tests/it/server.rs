//! The function over a table of the test's own.

use std::ops::Deref;
use std::time::Duration;

use fts_indexer::{Batch, Indexer};
use serde_json::{Value, json};
use table::Table;
pub(crate) use test_site::{Answer, TABLE};
use test_site::{Api, ROOT};

/// Short, as most tests only wait for it.
const LEASE: Duration = Duration::from_millis(20);

/// One process of the server: this function, and the one that keeps experiments.
#[derive(Clone)]
pub(crate) struct Server(Api);

/// A server over a table of its own, with faults between them.
pub(crate) struct Site {
    base: test_site::Site,
    /// The server whose requests meet the faults.
    pub(crate) server: Server,
}

impl Deref for Site {
    type Target = test_site::Site;

    fn deref(&self) -> &test_site::Site {
        &self.base
    }
}

impl Site {
    pub(crate) async fn new() -> Self {
        let site = test_site::Site::new().await;
        let server = Server::on(&site.faulty(), LEASE).await;
        site.faults.reset_calls();
        Self { base: site, server }
    }

    /// Another process on the same table, whose requests meet no fault.
    pub(crate) async fn other(&self) -> Server {
        Server::on(&self.table, LEASE).await
    }

    /// A server whose requests meet the faults and that soon gives up.
    pub(crate) async fn impatient(&self) -> Server {
        Server::on(&self.base.impatient(), LEASE).await
    }

    /// Feeds the indexer with records of the stream; all of them have to be carried over.
    pub(crate) async fn index(&self, records: Vec<Value>) {
        let answer = Indexer::new(self.table.clone()).handle(Batch { records }).await;
        assert!(answer.batch_item_failures.is_empty(), "{answer:?}");
    }
}

impl Deref for Server {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.0
    }
}

impl Server {
    async fn on(table: &Table, lease: Duration) -> Self {
        let tracking = tracking::store::Store::with_lease(table.clone(), ROOT, lease);
        tracking.experiment_create_default(&mlflow_api::Workspace::default()).await.unwrap();
        let evaluation = evaluation::store::Store::with_lease(table.clone(), lease);
        Self(Api(service::joined(
            evaluation::router(&evaluation, test_site::everybody()),
            [tracking::router(&tracking, test_site::everybody())],
        )))
    }

    pub(crate) async fn experiment(&self, name: &str) -> String {
        let answer = self.post("experiments/create", json!({ "name": name })).await.ok();
        answer["experiment_id"].as_str().unwrap().to_owned()
    }
}
