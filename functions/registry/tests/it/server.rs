//! A server for tests, which runs the function over a private table.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use embedded_engine::faults::FaultInjector;
use embedded_engine::limits::EngineLimits;
use registry::store::Store;
use serde_json::{Value, json};
use table::{RetryPolicy, Table};
use test_site::TestClient;
pub(crate) use test_site::{ROOT, TestResponse};

/// A server process.
#[derive(Clone)]
pub(crate) struct Server(TestClient);

/// A server over a private table, with an engine that injects faults.
pub(crate) struct Site {
    base: test_site::TestEnvironment,
    /// The server whose requests are subject to the injected faults.
    pub(crate) server: Server,
    /// Another process on this table, whose requests are not subject to faults.
    pub(crate) other: Server,
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
        let (server, other) = (Server::on(&site.faulty()), Server::on(&site.table));
        Self { base: site, server, other }
    }

    /// Creates a site in which writes take a while, and in which transactions that have an item in
    /// common conflict. As in DynamoDB, this includes transactions that only check the item.
    pub(crate) async fn with_conflicts() -> Self {
        let mut base = test_site::TestEnvironment::new().await;
        let limits = EngineLimits::new(&base.engine);
        limits.set_latency(Duration::from_millis(2));
        base.faults = FaultInjector::new(limits.http_client());
        // The retry limit is high, because on a busy machine it may take long until conflicts are
        // resolved.
        let retry =
            RetryPolicy { attempts: 100, patience: Duration::from_mins(2), changes: 500, ..base.faulty().retry() };
        let server = Server::on(&base.faulty().with_retry(retry.in_background()));
        Self { server, other: Server::on(&base.table), base }
    }

    /// Returns a copy of the site in its current state, without faults.
    pub(crate) fn copy(&self) -> Self {
        let base = self.base.copy();
        let (server, other) = (Server::on(&base.faulty()), Server::on(&base.table));
        Self { base, server, other }
    }

    /// Starts a server whose requests are subject to the injected faults, and that gives up after
    /// few retries.
    pub(crate) fn impatient(&self) -> Server {
        Server::on(&self.base.impatient())
    }
}

impl Deref for Server {
    type Target = TestClient;

    fn deref(&self) -> &TestClient {
        &self.0
    }
}

impl Server {
    pub(crate) fn on(table: &Table) -> Self {
        Self(TestClient(registry::router(&Store::new(table.clone(), ROOT), test_site::everybody())))
    }

    pub(crate) async fn delete(&self, path: &str, body: Value) -> TestResponse {
        self.call("DELETE", path, body).await
    }

    pub(crate) async fn model(&self, name: &str) {
        self.post("registered-models/create", json!({ "name": name })).await.ok();
    }

    /// Creates a version and returns its number.
    pub(crate) async fn version(&self, name: &str) -> u32 {
        self.version_of_run(name, "").await
    }

    pub(crate) async fn version_of_run(&self, name: &str, run: &str) -> u32 {
        let new = json!({ "name": name, "source": "s3://elsewhere/model", "run_id": run });
        let answer = self.post("model-versions/create", new).await.ok();
        answer["model_version"]["version"].as_str().unwrap().parse().unwrap()
    }

    pub(crate) async fn model_of(&self, name: &str) -> TestResponse {
        self.get("registered-models/get", &[("name", name)]).await
    }

    pub(crate) async fn version_at(&self, name: &str, version: u32) -> TestResponse {
        self.get("model-versions/get", &[("name", name), ("version", &version.to_string())]).await
    }

    pub(crate) async fn by_alias(&self, name: &str, alias: &str) -> TestResponse {
        self.get("registered-models/alias", &[("name", name), ("alias", alias)]).await
    }

    pub(crate) async fn set_alias(&self, name: &str, alias: &str, version: u32) -> TestResponse {
        let body = json!({ "name": name, "alias": alias, "version": version.to_string() });
        self.post("registered-models/alias", body).await
    }

    pub(crate) async fn set_version_tag(&self, name: &str, version: u32, key: &str, value: &str) -> TestResponse {
        let body = json!({ "name": name, "version": version.to_string(), "key": key, "value": value });
        self.post("model-versions/set-tag", body).await
    }

    pub(crate) async fn set_tag(&self, name: &str, key: &str, value: &str) -> TestResponse {
        self.post("registered-models/set-tag", json!({ "name": name, "key": key, "value": value })).await
    }

    pub(crate) async fn transition(&self, name: &str, version: u32, stage: &str, archive: bool) -> TestResponse {
        let body = json!({
            "name": name, "version": version.to_string(), "stage": stage, "archive_existing_versions": archive,
        });
        self.post("model-versions/transition-stage", body).await
    }

    pub(crate) async fn rename(&self, name: &str, new_name: &str) -> TestResponse {
        self.post("registered-models/rename", json!({ "name": name, "new_name": new_name })).await
    }

    /// Returns the versions that a filter finds, as pairs of name and number, ordered by both.
    pub(crate) async fn versions(&self, filter: &str) -> Vec<(String, u32)> {
        let order = [("filter", filter), ("order_by", "name"), ("order_by", "version_number")];
        let found = self.get("model-versions/search", &order).await.ok();
        let versions = found["model_versions"].as_array().cloned().unwrap_or_default();
        versions.iter().map(|version| (text(version, "name"), text(version, "version").parse().unwrap())).collect()
    }

    /// Returns the names of the models on all pages of a search.
    pub(crate) async fn models(&self, arguments: &[(&str, &str)]) -> Vec<String> {
        let mut names = Vec::new();
        let mut token = String::new();
        loop {
            let mut arguments = arguments.to_vec();
            arguments.push(("page_token", &token));
            let page = self.get("registered-models/search", &arguments).await.ok();
            let models = page["registered_models"].as_array().cloned().unwrap_or_default();
            names.extend(models.iter().map(|model| text(model, "name")));
            match page["next_page_token"].as_str() {
                Some(next) => next.clone_into(&mut token),
                None => return names,
            }
        }
    }
}

pub(crate) fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap().to_owned()
}

/// Returns the tags of a model or a version, by key.
pub(crate) fn tags(entity: &Value) -> BTreeMap<String, String> {
    let tags = entity["tags"].as_array().cloned().unwrap_or_default();
    tags.iter().map(|tag| (text(tag, "key"), text(tag, "value"))).collect()
}
