//! Inspection of requests to the table, between the SDK and the engine.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use embedded_engine::{Engine, client_over};
use serde_json::Value;
use table::Table;

use crate::test_server::TABLE;

type Look = Arc<dyn Fn(&str, &Value) + Send + Sync>;

/// Returns the engine's table. `look` is called with the operation and body of each request.
pub(crate) fn probed(engine: &Engine, look: impl Fn(&str, &Value) + Send + Sync + 'static) -> Table {
    let probe = Probe { look: Arc::new(look), inner: engine.http_client() };
    Table::new(client_over(SharedHttpClient::new(probe)), TABLE)
}

#[derive(Clone)]
struct Probe {
    look: Look,
    inner: SharedHttpClient,
}

impl fmt::Debug for Probe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Probe")
    }
}

impl HttpClient for Probe {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(ProbedConnector { look: Arc::clone(&self.look), inner })
    }
}

#[derive(Clone)]
struct ProbedConnector {
    look: Look,
    inner: SharedHttpConnector,
}

impl fmt::Debug for ProbedConnector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ProbedConnector")
    }
}

impl HttpConnector for ProbedConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let body = request.body().bytes().unwrap_or_default();
        let body: Value = serde_json::from_slice(body).unwrap();
        let operation = request.headers().get("x-amz-target").and_then(|target| target.split_once('.')).unwrap().1;
        (self.look)(operation, &body);
        self.inner.call(request)
    }
}

/// Returns the partition of the table or an index that a query reads, if this is the body of a
/// query.
pub(crate) fn queried(body: &Value) -> Option<&str> {
    let condition = body.get("KeyConditionExpression")?.as_str()?;
    let placeholder = condition.split_once('=').unwrap().1.split_whitespace().next().unwrap();
    Some(body["ExpressionAttributeValues"][placeholder]["S"].as_str().unwrap())
}

/// Collects the partitions that a request refers to, in keys, items and queries.
pub(crate) fn partitions_of(body: &Value, found: &mut BTreeSet<String>) {
    match body {
        Value::Object(object) => {
            found.extend(object.get("PK").and_then(|key| key["S"].as_str()).map(str::to_owned));
            found.extend(queried(body).map(str::to_owned));
            object.values().for_each(|value| partitions_of(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| partitions_of(item, found)),
        _ => {}
    }
}
