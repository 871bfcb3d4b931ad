//! A server for tests, which runs the function over a private table.

use std::ops::Deref;
use std::time::Duration;

use serde_json::{Value, json};
use table::Table;
use test_site::TestClient;
use webhooks::store::Store;

/// A URL whose host is a public IP address, so that no name has to be resolved.
pub(crate) const URL: &str = "https://93.184.216.34/hook";

/// A server over a private table, with an engine that injects faults.
pub(crate) struct Site {
    base: test_site::TestEnvironment,
    /// The server.
    pub(crate) server: Server,
}

/// A server process.
#[derive(Clone)]
pub(crate) struct Server(TestClient);

impl Deref for Site {
    type Target = test_site::TestEnvironment;

    fn deref(&self) -> &test_site::TestEnvironment {
        &self.base
    }
}

impl Deref for Server {
    type Target = TestClient;

    fn deref(&self) -> &TestClient {
        &self.0
    }
}

impl Site {
    pub(crate) async fn new() -> Self {
        Self::with(|store| store).await
    }

    /// Creates a site. `configured` takes the default store and returns the one that the server uses.
    pub(crate) async fn with(configured: impl FnOnce(Store) -> Store) -> Self {
        let base = test_site::TestEnvironment::new().await;
        let server = Server::on(&configured(store(&base.faulty())));
        Self { base, server }
    }

    /// Returns a server whose requests to the table are subject to injected faults, and that gives
    /// up after few retries.
    pub(crate) fn impatient(&self) -> Server {
        Server::on(&store(&self.base.impatient()))
    }

    /// Returns another process of the server, whose requests to the table always succeed.
    pub(crate) fn other(&self) -> Server {
        Server::on(&store(&self.table))
    }
}

/// Returns a store that does not delay the responses to changes.
pub(crate) fn store(table: &Table) -> Store {
    Store::new(table.clone()).with_lease(Duration::ZERO)
}

/// Returns the body of a request that creates a webhook for the creation of model versions.
pub(crate) fn new_webhook(name: &str) -> Value {
    json!({ "name": name, "url": URL, "events": [{ "entity": "MODEL_VERSION", "action": "CREATED" }] })
}

impl Server {
    pub(crate) fn on(store: &Store) -> Self {
        Self(TestClient(webhooks::router(store, test_site::everybody())))
    }

    /// Creates a webhook, and returns its id.
    pub(crate) async fn create(&self, body: Value) -> String {
        let created = self.post("webhooks", body).await.ok();
        created["webhook"]["webhook_id"].as_str().unwrap().to_owned()
    }

    /// Changes a webhook, and returns its new state.
    pub(crate) async fn update(&self, id: &str, body: Value) -> Value {
        self.call("PATCH", &format!("webhooks/{id}"), body).await.ok()["webhook"].clone()
    }
}
