//! Limits of DynamoDB that the engine itself does not have, implemented as an HTTP client in front
//! of an engine.
//!
//! [`faults`](crate::faults) injects the errors that a test requests. This module, in contrast,
//! rejects the requests that DynamoDB would reject, for tests and for load models. The `README.md`
//! of this crate lists what it imitates and what it does not.

mod batches;
mod collection_size;
mod consumed_capacity;
mod error_responses;
mod expression;
mod in_flight;
mod item_bytes;
mod item_size;
mod limited_engine;
mod partitions;
mod requested_items;
mod schema;
mod single_requests;
mod throughput;
mod token_bucket;
mod transactions;
mod validation;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::Value;

use crate::aws_json::{self, EngineResponse};
use crate::{Engine, EngineError, client_over};
use limited_engine::LimitedEngine;
pub use throughput::{PartitionUsage, Throughput};

/// An engine within DynamoDB's limits, and the handle that configures them. Clones share the same
/// limits.
///
/// Only for engines with a single table, because partitions are identified by their keys,
/// regardless of the table.
#[derive(Clone)]
pub struct EngineLimits(LimitedEngine);

impl fmt::Debug for EngineLimits {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Limits")
    }
}

impl EngineLimits {
    /// Puts limits in front of an engine. Partitions have unlimited throughput until
    /// [`set_throughput`](Self::set_throughput) is called.
    #[must_use]
    pub fn new(engine: &Engine) -> Self {
        let begin = Instant::now();
        Self::with_clock(engine, move || begin.elapsed())
    }

    /// Puts limits in front of an engine, with a custom clock. The clock returns the time since an
    /// arbitrary start, and must never go back.
    #[must_use]
    pub fn with_clock(engine: &Engine, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(LimitedEngine::new(engine, Arc::new(clock)))
    }

    /// Returns a client whose requests are subject to the limits.
    #[must_use]
    pub fn client(&self) -> Client {
        client_over(self.http_client())
    }

    /// Returns the HTTP client of [`client`](Self::client), for example for a
    /// [`FaultInjector`](crate::faults::FaultInjector).
    #[must_use]
    pub fn http_client(&self) -> SharedHttpClient {
        let connector = SharedHttpConnector::new(LimitedConnector(self.clone()));
        http_client_fn(move |_, _| connector.clone())
    }

    /// Sets the throughput of each partition, by its key. `None` means unlimited.
    /// [`Throughput::NONE`] throttles every request.
    pub fn set_throughput(&self, of: impl Fn(&str) -> Option<Throughput> + Send + Sync + 'static) {
        self.0.state().partitions.set_throughput(Arc::new(of));
    }

    /// Sets the maximum size of each item collection in bytes, by its partition key. `None` means
    /// unlimited, which is the default. DynamoDB's limit is 10 GB for tables with local indexes. A
    /// write to a limited collection reads the whole collection.
    pub fn set_collection_limit(&self, of: impl Fn(&str) -> Option<usize> + Send + Sync + 'static) {
        self.0.state().collection_limit = Some(Arc::new(of));
    }

    /// Sets the minimum duration of a write, in real time. Until that time has passed, transactions
    /// conflict with the write's items. By default, there is no minimum, and requests only conflict
    /// while the engine executes them.
    pub fn set_latency(&self, latency: Duration) {
        self.0.state().latency = latency;
    }

    /// Returns the size of an item collection in bytes: its items, and their entries in local
    /// indexes.
    pub async fn collection_bytes(&self, table: &str, partition: &str) -> Result<u64, EngineError> {
        let size =
            self.0.collection_size(table, partition).await.map_err(|error| EngineError::Refused(error.to_string()))?;
        Ok(size.unsigned_abs())
    }

    /// Returns the consumed capacity and the number of throttled requests of partitions, by their
    /// keys.
    #[must_use]
    pub fn usage(&self) -> BTreeMap<String, PartitionUsage> {
        self.0.state().partitions.usage()
    }

    /// Resets the usage counters. The remaining capacity of partitions is unaffected.
    pub fn reset_usage(&self) {
        self.0.state().partitions.reset_usage();
    }

    async fn answer(self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let operation = aws_json::operation(&request).to_owned();
        let (_, body) = aws_json::read(request).await?;
        self.within_limits(&operation, body).await?.into_sdk_response()
    }

    async fn within_limits(&self, operation: &str, body: Value) -> Result<EngineResponse, ConnectorError> {
        let is_about_items = matches!(
            operation,
            "GetItem"
                | "PutItem"
                | "UpdateItem"
                | "DeleteItem"
                | "Query"
                | "BatchGetItem"
                | "BatchWriteItem"
                | "TransactGetItems"
                | "TransactWriteItems"
        );
        if !is_about_items {
            return self.0.run(operation, &body).await;
        }
        if let Some(refused) = self.0.invalid(operation, &body).await? {
            return Ok(refused);
        }
        match operation {
            "BatchGetItem" | "BatchWriteItem" => self.0.batch(operation, body).await,
            "TransactGetItems" | "TransactWriteItems" => self.0.transaction(operation, body).await,
            _ => self.0.single(operation, body).await,
        }
    }
}

#[derive(Clone, Debug)]
struct LimitedConnector(EngineLimits);

impl HttpConnector for LimitedConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(self.0.clone().answer(request))
    }
}
